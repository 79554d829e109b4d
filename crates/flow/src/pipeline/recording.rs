//! The timeline of an earlier run: where it was recorded, checked against what the run has of it.

use std::path::PathBuf;

use collect::run::{StoredRun, sha256};
use types::{Exit, Failure, InputSet, Metrics};

use super::provenance::INPUTS;

/// Why a run has no timeline to read again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
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
    /// A file of the run cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system or the reader said.
        reason: String,
    },
}

impl Failure for RecordingError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoTimeline { .. } => Exit::Usage,
            Self::SourceGone { .. } | Self::Unreadable { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoTimeline { .. } => Some(
                "runs with a timeline of a device come from `llm-perf profile -- COMMAND` on a GPU and from `llm-perf import`"
                    .to_owned(),
            ),
            Self::SourceGone { .. } => Some("put it back where it was, or import it again".to_owned()),
            Self::Unreadable { .. } => None,
        }
    }
}

/// What a run measured, and the files that its timeline was read from.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) metrics: Metrics,
    pub(crate) files: Vec<PathBuf>,
}

impl Recording {
    /// Finds the files of a run.
    pub(crate) fn of(run: &StoredRun) -> Result<Self, RecordingError> {
        let metrics = metrics(run)?;
        let files = files(run, &metrics)?;
        Ok(Self { metrics, files })
    }
}

/// Where a source of a run is: in the run, where it was when it was read, or, seen from another folder, at its whole path.
fn place(run: &StoredRun, source: &str) -> PathBuf {
    let recorded = || -> Option<PathBuf> {
        let text = std::fs::read_to_string(run.path().join(INPUTS)).ok()?;
        let inputs: InputSet = serde_saphyr::from_str(&text).ok()?;
        inputs.files.iter().find(|file| file.name == source).map(|file| PathBuf::from(&file.path))
    };
    let near = [run.path().join(source), PathBuf::from(source)];
    let found = near.into_iter().find(|path| path.is_file()).or_else(|| recorded().filter(|path| path.is_file()));
    found.unwrap_or_else(|| PathBuf::from(source))
}

/// What a run measured.
pub(crate) fn metrics(run: &StoredRun) -> Result<Metrics, RecordingError> {
    let file = run.path().join("metrics.json");
    let failed = |reason: String| RecordingError::Unreadable { path: file.clone(), reason };
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}

/// The files that the timeline of a run was read from, each with the digest that the run has of it.
pub(crate) fn files(run: &StoredRun, metrics: &Metrics) -> Result<Vec<PathBuf>, RecordingError> {
    let id = || run.manifest().run_id.clone();
    let reason = "nothing was recorded";
    let trace = metrics.conditions.trace.as_ref();
    let trace = trace.ok_or_else(|| RecordingError::NoTimeline { run: id(), reason })?;
    let mut files = Vec::new();
    for source in &trace.sources {
        let path = place(run, &source.path);
        let gone = |state| RecordingError::SourceGone { path: path.clone(), state, run: id() };
        let bytes = std::fs::read(&path).map_err(|_| gone("is gone"))?;
        if sha256(&bytes) != source.sha256 {
            return Err(gone("has changed"));
        }
        files.push(path);
    }
    Ok(files)
}
