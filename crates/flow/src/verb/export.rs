//! `export`: the timeline of a run in the format of another tool.
//!
//! A run keeps what was recorded, or where the imported file is; it is read again, checked against the digest the run has of
//! it, and written in the other format. Nothing in the run changes.

use std::path::{Path, PathBuf};

use collect::run::{StoredRun, sha256};
use types::{Metrics, UserError};

use crate::pipeline::recorded::provenance::{self, NATIVE_TRACE};
use crate::pipeline::recorded::recording::{Recording, no_timeline, source_gone, unreadable};
use crate::pipeline::tables::of_run as run_tables;
use crate::pipeline::trace::{self, Placed};

types::named! {
    /// A format a timeline can be written in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ExportFormat {
        /// Trace events, as Perfetto and Chrome open them.
        Perfetto = "perfetto",
        /// Stacks with their time, one on a line.
        Collapsed = "collapsed",
        /// A folder of Parquet tables.
        Parquet = "parquet",
    }
}

impl ExportFormat {
    /// What such a file is called.
    pub fn file_name(self, run_id: &str) -> String {
        match self {
            Self::Perfetto => format!("{run_id}.perfetto.json"),
            Self::Collapsed => format!("{run_id}.collapsed.txt"),
            Self::Parquet => format!("{run_id}.tables"),
        }
    }
}

/// Writes the timeline of a run; where to.
pub fn export(run: &StoredRun, format: ExportFormat, out: Option<&Path>) -> Result<PathBuf, UserError> {
    let id = run.manifest().run_id.clone();
    let path = out.map_or_else(|| PathBuf::from(format.file_name(&id)), Path::to_owned);
    if path.symlink_metadata().is_ok() {
        return Err(UserError::usage(format!("{} already exists", path.display()))
            .hint("nothing was overwritten; choose another file with `--out FILE`"));
    }
    let unwritable = |reason: String| UserError::failed(format!("cannot write {}: {reason}", path.display()));
    let recorded = || timeline(run, &id);
    let bytes = match format {
        _ if run.has_file(NATIVE_TRACE) => native(run, &id, format)?,
        ExportFormat::Perfetto => {
            let (metrics, placed) = recorded()?;
            let groups = &metrics.breakdown.operator_groups.by_shape;
            let json = report::export::perfetto_json(&placed.timeline, &placed.view(), groups);
            json.map_err(|error| unwritable(error.to_string()))?.into_bytes()
        }
        ExportFormat::Collapsed => report::export::collapsed_stacks(&recorded()?.1.timeline).into_bytes(),
        ExportFormat::Parquet => {
            run_tables::write(run, &path)?;
            return Ok(path);
        }
    };
    collect::write_whole(&path, &bytes).map_err(|error| unwritable(error.to_string()))?;
    Ok(path)
}

/// The operators of our own engine, which were written down when they ran.
fn native(run: &StoredRun, id: &str, format: ExportFormat) -> Result<Vec<u8>, UserError> {
    if format != ExportFormat::Perfetto {
        let reason = "its operators ran on the host, which only `--format perfetto` exports";
        return Err(no_timeline(id, reason));
    }
    let path = run.path().join(NATIVE_TRACE);
    let changed = || source_gone(&path, "has changed", id);
    let packed = run.read(NATIVE_TRACE).map_err(|error| unreadable(&path, &error))?;
    if run.manifest().files.iter().all(|file| file.path != NATIVE_TRACE || file.sha256 != sha256(&packed)) {
        return Err(changed());
    }
    report::export::native_unpacked(&packed).map_err(|_| changed())
}

fn timeline(run: &StoredRun, id: &str) -> Result<(Metrics, Placed), UserError> {
    let Recording { metrics, files } = Recording::of(run)?;
    let mut timelines = trace::placed(&files, metrics.run.model.as_deref())?;
    match (timelines.pop(), timelines.is_empty()) {
        (Some(only), true) => Ok((metrics, Placed { modules: provenance::modules(run.path()), ..only })),
        (None, _) => Err(no_timeline(id, "its sources contain only sums and counters")),
        (Some(_), false) => {
            Err(no_timeline(id, "it has several timelines, one per rank; import and export them one by one"))
        }
    }
}
