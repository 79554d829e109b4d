//! `import`: traces of other tools, made into a run.

use std::path::PathBuf;

use collect::run::RunFolder;
use types::{Bytes, Hardware, Metrics, UserError};

pub use crate::pipeline::model::workload::WorkloadRequest;
pub use crate::pipeline::requests::RequestFile;
pub use crate::pipeline::subject::NamedSubject;
pub use crate::pipeline::tables::TablesRequest;
pub use crate::pipeline::trace::regions::RegionChoice;
pub use crate::pipeline::trace::{MEMORY, STANDARD_INPUT, importable};
pub use collect::tool::ncu::Preset as NcuPreset;

use crate::RunRequest;
use crate::pipeline::folder::bundle::{self, Bundle};
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::requests::Requests;
use crate::pipeline::subject::imported::Imported;
use crate::pipeline::trace::TraceFiles;
use crate::pipeline::{folder::assumptions, model::analytic, recorded::provenance, subject::imported, tables};

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

/// The outcome.
#[derive(Debug)]
pub struct Import {
    /// Everything the files tell.
    pub metrics: Metrics,
    /// The run folder.
    pub folder: PathBuf,
    /// Why the run is partial; empty when it is not.
    pub missing: Vec<String>,
}

/// Reads the files, analyses them and writes everything into a run folder.
///
/// Files that cannot be opened or are of an unknown kind are found before the folder is made; after that an error leaves
/// a folder that says so.
pub fn import(
    request: &ImportRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Import, UserError> {
    let named = request.subject.named_hardware()?;
    let files = TraceFiles::open(&request.files, progress)?;
    let requests = request.requests.as_ref().map(Requests::read).transpose()?;
    let device = named.as_ref().map(|hardware| hardware.id.clone());
    let run_request = RunRequest { model: request.subject.model_id(), device, ..run_request };
    let EndedRun { value: metrics, folder, missing } = run(run_request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        folder.end_step("prepare")?;
        collect::spill::start(folder.path(), request.memory);
        fill(folder, request, &files, requests.as_ref(), named.as_ref(), progress)
    })?;
    Ok(Import { metrics, folder, missing })
}

fn fill(
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
        timeline: traces.timeline(),
    };
    analytic::write_traced(folder, &metrics, request.subject.model.as_ref(), hardware.as_ref())?;
    bundle::write(folder, &bundle)?;
    folder.end_step("report")?;
    Ok((metrics, traces.missing))
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::pages::run::import_terminal(&analysis::view::run(metrics))
}
