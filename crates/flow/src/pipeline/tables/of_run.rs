//! The tables of a run that is there already, made from what it recorded or imported.

use std::path::Path;

use collect::run::StoredRun;
use types::UserError;

use crate::pipeline::recorded::recording::Recording;
use crate::pipeline::tables::{self, TablesRequest};
use crate::pipeline::trace;

/// Writes the tables of every rank of a run into a folder; the run is the job.
pub(crate) fn write(run: &StoredRun, folder: &Path) -> Result<(), UserError> {
    let Recording { metrics, files } = Recording::of(run)?;
    let there = folder.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    collect::spill::start(there, trace::MEMORY);
    let placed = trace::placed(&files, metrics.run.model.as_deref())?;
    let sources = metrics.conditions.trace.as_ref().map(|trace| trace.sources.as_slice()).unwrap_or_default();
    let request = TablesRequest { folder: folder.to_owned(), job: run.manifest().run_id.clone() };
    tables::write(&request, &placed, sources, &metrics)?;
    Ok(())
}
