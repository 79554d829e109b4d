//! `export`: the timeline of a run in the format of another tool.
//!
//! A run keeps what was recorded, or where the imported file is; it is read again, checked against the digest the run has of
//! it, and written in the other format. Nothing in the run changes.

use std::fmt;
use std::path::{Path, PathBuf};

use collect::run::{StoredRun, sha256};
use types::{Exit, Failure, Metrics};

use crate::CollectError;
use crate::pipeline::error::ImportError;
use crate::pipeline::trace;

/// A format a timeline can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// SQLite, as Nsight Systems exports it.
    Sqlite,
    /// Trace events, as Perfetto and Chrome open them.
    Perfetto,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A run that recorded nothing.
    #[error("{run} has no timeline: {reason}")]
    NoTimeline {
        /// The run.
        run: String,
        /// What it has instead.
        reason: &'static str,
    },
    /// A source that is not what it was.
    #[error("{} {state} since {run} was made", path.display())]
    SourceGone {
        /// The file.
        path: PathBuf,
        /// `is gone`, `has changed`.
        state: &'static str,
        /// The run.
        run: String,
    },
    /// Something is in the way.
    #[error("{} is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file of the run cannot be read, or the export not written.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system or the reader said.
        reason: String,
    },
    /// A source that a reader refuses.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The run.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl Failure for ExportError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoTimeline { .. } | Self::Exists { .. } => Exit::Usage,
            Self::SourceGone { .. } | Self::Io { .. } | Self::Import(_) | Self::Collect(_) => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoTimeline { .. } => Some(
                "runs with one come from `llm-perf profile -- COMMAND` on a GPU and from `llm-perf import`".to_owned(),
            ),
            Self::SourceGone { .. } => Some("put it back where it was, or import it again".to_owned()),
            Self::Exists { .. } => Some("nothing was overwritten; name another file with `--out FILE`".to_owned()),
            Self::Io { .. } => None,
            Self::Import(error) => error.hint(),
            Self::Collect(error) => error.hint(),
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "sqlite",
            Self::Perfetto => "perfetto",
        })
    }
}

impl ExportFormat {
    /// What such a file is called.
    pub fn file_name(self, run_id: &str) -> String {
        match self {
            Self::Sqlite => format!("{run_id}.sqlite"),
            Self::Perfetto => format!("{run_id}.perfetto.json"),
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
    let timeline = timeline(run, &id)?;
    let bytes = match format {
        ExportFormat::Sqlite => report::export::nsys_sqlite(&timeline, analysis::kernel::short_name),
        ExportFormat::Perfetto => report::export::perfetto_json(&timeline)
            .map_err(|error| ExportError::Io { action: "write", path: path.clone(), reason: error.to_string() })?
            .into_bytes(),
    };
    let failed =
        |error: std::io::Error| ExportError::Io { action: "write", path: path.clone(), reason: error.to_string() };
    std::fs::write(&path, bytes).map_err(failed)?;
    Ok(path)
}

fn timeline(run: &StoredRun, id: &str) -> Result<types::timeline::Timeline, ExportError> {
    let file = run.path().join("metrics.json");
    let failed = |reason: String| ExportError::Io { action: "read", path: file.clone(), reason };
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    let metrics: Metrics = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let nothing = |reason| ExportError::NoTimeline { run: id.to_owned(), reason };
    let sources = metrics.conditions.trace.map(|trace| trace.sources).ok_or_else(|| nothing("nothing was recorded"))?;
    let mut found = Vec::new();
    for source in &sources {
        let inside = run.path().join(&source.path);
        let path = if inside.is_file() { inside } else { PathBuf::from(&source.path) };
        let gone = |state| ExportError::SourceGone { path: path.clone(), state, run: id.to_owned() };
        let bytes = std::fs::read(&path).map_err(|_| gone("is gone"))?;
        if sha256(&bytes) != source.sha256 {
            return Err(gone("has changed"));
        }
        found.push(path);
    }
    let mut timelines = trace::timelines(&found)?;
    match (timelines.pop(), timelines.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(nothing("its sources hold sums and counters only")),
        (Some(_), false) => Err(nothing("it has several, one for each rank; import and export them one by one")),
    }
}
