//! `import`: traces of other tools, made into a run.

use types::{Metrics, UserError};

pub use crate::pipeline::imported_run::ImportRequest;
pub use crate::pipeline::model::workload::WorkloadRequest;
pub use crate::pipeline::requests::RequestFile;
pub use crate::pipeline::subject::NamedSubject;
pub use crate::pipeline::tables::TablesRequest;
pub use crate::pipeline::trace::regions::RegionChoice;
pub use crate::pipeline::trace::{MEMORY, STANDARD_INPUT, importable};
pub use collect::tool::ncu::Preset as NcuPreset;

use crate::RunRequest;
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::imported_run;
use crate::pipeline::requests::Requests;
use crate::pipeline::trace::TraceFiles;

/// Reads the files, analyses them and writes everything into a run folder.
///
/// Files that cannot be opened or are of an unknown kind are found before the folder is made; after that an error leaves
/// a folder that says so.
pub fn import(
    request: &ImportRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<EndedRun<Metrics>, UserError> {
    let named = request.subject.named_hardware()?;
    let files = TraceFiles::open(&request.files, progress)?;
    let requests = request.requests.as_ref().map(Requests::read).transpose()?;
    let device = named.as_ref().map(|hardware| hardware.id.clone());
    let run_request = RunRequest { model: request.subject.model_id(), device, ..run_request };
    run(run_request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        folder.end_step("prepare")?;
        collect::spill::start(folder.path(), request.memory);
        imported_run::fill(folder, request, &files, requests.as_ref(), named.as_ref(), progress)
    })
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::pages::run::import_terminal(&analysis::view::run(metrics))
}
