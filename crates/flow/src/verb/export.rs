//! `export`: the timeline of a run in the format of another tool.
//!
//! A run keeps what was recorded, or where the imported file is; it is read again, checked against the digest the run has of
//! it, and written in the other format. Nothing in the run changes.

use std::fmt;
use std::path::{Path, PathBuf};

use collect::run::{StoredRun, sha256};
use types::{Exit, Failure};

use crate::CollectError;
use crate::pipeline::error::ImportError;
use crate::pipeline::recorded::provenance::NATIVE_TRACE;
use crate::pipeline::recorded::recording::{Recording, RecordingError};
use crate::pipeline::tables::of_run::{self as run_tables, RunTablesError};
use crate::pipeline::trace;

/// A format a timeline can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Trace events, as Perfetto and Chrome open them.
    Perfetto,
    /// Stacks with their time, one on a line.
    Collapsed,
    /// A folder of Parquet tables.
    Parquet,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The run has no timeline.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Something is in the way.
    #[error("{} already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The export cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A source that a reader refuses.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Tables that cannot be written.
    #[error(transparent)]
    Tables(#[from] RunTablesError),
    /// The run.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl Failure for ExportError {
    fn exit(&self) -> Exit {
        match self {
            Self::Exists { .. } => Exit::Usage,
            Self::Recording(error) => error.exit(),
            Self::Tables(error) => error.exit(),
            Self::Io { .. } | Self::Import(_) | Self::Collect(_) => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Recording(error) => error.hint(),
            Self::Exists { .. } => Some("nothing was overwritten; choose another file with `--out FILE`".to_owned()),
            Self::Io { .. } => None,
            Self::Import(error) => error.hint(),
            Self::Tables(error) => error.hint(),
            Self::Collect(error) => error.hint(),
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Perfetto => "perfetto",
            Self::Collapsed => "collapsed",
            Self::Parquet => "parquet",
        })
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
pub fn export(run: &StoredRun, format: ExportFormat, out: Option<&Path>) -> Result<PathBuf, ExportError> {
    let id = run.manifest().run_id.clone();
    let path = out.map_or_else(|| PathBuf::from(format.file_name(&id)), Path::to_owned);
    if path.symlink_metadata().is_ok() {
        return Err(ExportError::Exists { path });
    }
    let unwritable = |error: report::ReportError| ExportError::Io { path: path.clone(), reason: error.to_string() };
    let recorded = || timeline(run, &id);
    let bytes = match format {
        _ if run.has_file(NATIVE_TRACE) => native(run, &id, format)?,
        ExportFormat::Perfetto => report::export::perfetto_json(&recorded()?).map_err(unwritable)?.into_bytes(),
        ExportFormat::Collapsed => report::export::collapsed_stacks(&recorded()?).into_bytes(),
        ExportFormat::Parquet => {
            run_tables::write(run, &path)?;
            return Ok(path);
        }
    };
    let failed = |error: std::io::Error| ExportError::Io { path: path.clone(), reason: error.to_string() };
    std::fs::write(&path, bytes).map_err(failed)?;
    Ok(path)
}

/// The operators of our own engine, which were written down when they ran.
fn native(run: &StoredRun, id: &str, format: ExportFormat) -> Result<Vec<u8>, ExportError> {
    if format != ExportFormat::Perfetto {
        let reason = "its operators ran on the host, which only `--format perfetto` exports";
        return Err(RecordingError::NoTimeline { run: id.to_owned(), reason }.into());
    }
    let path = run.path().join(NATIVE_TRACE);
    let changed = || RecordingError::SourceGone { path: path.clone(), state: "has changed", run: id.to_owned() };
    let packed = run
        .read(NATIVE_TRACE)
        .map_err(|error| RecordingError::Unreadable { path: path.clone(), reason: error.to_string() })?;
    if run.manifest().files.iter().all(|file| file.path != NATIVE_TRACE || file.sha256 != sha256(&packed)) {
        return Err(changed().into());
    }
    Ok(report::export::native_unpacked(&packed).map_err(|_| changed())?)
}

fn timeline(run: &StoredRun, id: &str) -> Result<types::timeline::Timeline, ExportError> {
    let nothing = |reason| RecordingError::NoTimeline { run: id.to_owned(), reason }.into();
    let mut timelines = trace::timelines(&Recording::of(run)?.files)?;
    match (timelines.pop(), timelines.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(nothing("its sources contain only sums and counters")),
        (Some(_), false) => Err(nothing("it has several timelines, one per rank; import and export them one by one")),
    }
}
