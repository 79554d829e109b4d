//! A run of traces that were recorded by others, or of processes that already ran: read, analysed and written.

use std::path::PathBuf;

use collect::run::RunFolder;
use types::{Bytes, Hardware, Metrics, UserError};

use super::folder::assumptions;
use super::folder::bundle::{self, Bundle};
use super::model::analytic;
use super::recorded::provenance;
use super::requests::{RequestFile, Requests};
use super::subject::NamedSubject;
use super::subject::imported::{self, Imported};
use super::tables::{self, TablesRequest};
use super::trace::TraceFiles;
use super::trace::regions::RegionChoice;

/// What to import.
#[derive(Debug)]
pub struct ImportRequest {
    /// The files of one run; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// What they are of.
    pub subject: NamedSubject,
    /// Which regions of pages of counters are shown.
    pub regions: RegionChoice,
    /// Where Parquet tables go, if anybody wants them.
    pub tables: Option<TablesRequest>,
    /// Requests that their server answered meanwhile.
    pub requests: Option<RequestFile>,
    /// Memory for large lists of rows; more spill to files.
    pub memory: Bytes,
}

/// Fills the folder of a run with what files tell.
pub(crate) fn fill(
    folder: &mut RunFolder,
    request: &ImportRequest,
    files: &TraceFiles,
    requests: Option<&Requests>,
    named: Option<&Hardware>,
    progress: &mut dyn FnMut(&str),
) -> Result<(Metrics, Vec<String>), UserError> {
    let subject = &request.subject;
    let traces = files.read(subject.model_id().as_deref(), &request.regions, progress)?;
    provenance::write(folder, &provenance::of_sources(&traces.sources))?;
    progress("summing up");
    let Imported { traces, metrics, hardware } =
        imported::analyse(folder.id(), traces, subject, named, &request.regions, requests)?;
    folder.write_json("metrics.json", &metrics)?;
    folder.end_step("import")?;

    if let Some(request) = &request.tables {
        progress("writing tables");
        tables::write(request, &traces.placed, &traces.sources, &metrics)?;
    }

    progress("writing reports");
    let environment = assumptions::imported_environment(&metrics, &folder.manifest().started_at);
    folder.write_json("env.json", &environment)?;
    let assumptions = assumptions::of_trace(&metrics, hardware.as_ref());
    let bundle = Bundle {
        metrics: &metrics,
        environment: &environment,
        assumptions,
        kernels: None,
        operator_rows: None,
        timelines: &traces.placed,
    };
    analytic::write_traced(folder, &metrics, request.subject.model.as_ref(), hardware.as_ref())?;
    bundle::write(folder, &bundle)?;
    folder.end_step("report")?;
    Ok((metrics, traces.missing))
}
