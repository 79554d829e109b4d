//! The tables of a run that is there already, made from what it recorded or imported.

use std::path::Path;

use collect::run::StoredRun;
use types::{Exit, Failure};

use crate::pipeline::error::ImportError;
use crate::pipeline::error::tables::TablesError;
use crate::pipeline::recorded::recording::{Recording, RecordingError};
use crate::pipeline::tables::{self, TablesRequest};
use crate::pipeline::trace;

/// Why a run has no tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunTablesError {
    /// The run has no timeline.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A source that a reader refuses.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Tables that cannot be written.
    #[error(transparent)]
    Tables(#[from] TablesError),
}

impl Failure for RunTablesError {
    fn exit(&self) -> Exit {
        match self {
            Self::Recording(error) => error.exit(),
            Self::Import(error) => error.exit(),
            Self::Tables(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Recording(error) => error.hint(),
            Self::Import(error) => error.hint(),
            Self::Tables(error) => error.hint(),
        }
    }
}

/// Writes the tables of every rank of a run into a folder; the run is the job.
pub(crate) fn write(run: &StoredRun, folder: &Path) -> Result<(), RunTablesError> {
    let Recording { metrics, files } = Recording::of(run)?;
    let there = folder.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    collect::spill::start(there, trace::MEMORY);
    let placed = trace::placed(&files, metrics.run.model.as_deref())?;
    let sources = metrics.conditions.trace.as_ref().map(|trace| trace.sources.as_slice()).unwrap_or_default();
    let request = TablesRequest { folder: folder.to_owned(), job: run.manifest().run_id.clone() };
    tables::write(&request, &placed, sources, &metrics)?;
    Ok(())
}
