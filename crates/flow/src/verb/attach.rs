//! `attach`: processes that already run are recorded for some seconds, and what they did becomes a run.

use std::path::Path;

use collect::tool::inject::{AttachRequest, WaitingProcesses};
use types::{Metrics, UserError};

use crate::RunRequest;
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::imported_run::{self, ImportRequest};
use crate::pipeline::trace::TraceFiles;

/// Folder of the files, in the run's folder.
const TRACE: &str = "trace";

/// The outcome.
#[derive(Debug)]
pub struct Attached {
    /// Everything the files tell.
    pub metrics: Metrics,
    /// The run folder.
    pub folder: std::path::PathBuf,
    /// Why the run is partial; empty when it is not.
    pub missing: Vec<String>,
}

/// Records the processes and writes a run. Those that cannot be recorded are told before the folder is made.
pub fn attach(
    what: &AttachRequest,
    request: ImportRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
    stop: &dyn Fn() -> bool,
) -> Result<Attached, UserError> {
    let named = request.subject.named_hardware()?;
    let processes = WaitingProcesses::find(&what.target)?;
    let device = named.as_ref().map(|hardware| hardware.id.clone());
    let run_request = RunRequest { model: request.subject.model_id(), device, ..run_request };
    let EndedRun { value: metrics, folder, missing } = run(run_request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        // The folder appears with the first file that is prepared in it.
        let place = folder.prepare(&format!("{TRACE}/process-0.wire"))?;
        let trace = place.parent().map(Path::to_owned).unwrap_or_default();
        folder.end_step("prepare")?;
        progress(&format!("recording {} for {:?}", count(processes.count()), what.duration));
        let (files, mut missing) = processes.begin(what)?.finish(&trace, stop);
        for file in &files {
            if let Some(name) = file.file_name() {
                folder.adopt(&format!("{TRACE}/{}", name.to_string_lossy()))?;
            }
        }
        folder.end_step("record")?;
        if files.is_empty() {
            return Err(UserError::failed(format!("nothing was recorded: {}", missing.join("; "))));
        }
        let request = ImportRequest { files, ..request };
        let traces = TraceFiles::open(&request.files, progress)?;
        let (metrics, more) = imported_run::fill(folder, &request, &traces, None, named.as_ref(), progress)?;
        missing.extend(more);
        Ok((metrics, missing))
    })?;
    Ok(Attached { metrics, folder, missing })
}

fn count(processes: usize) -> String {
    if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") }
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::pages::run::import_terminal(&analysis::view::run(metrics))
}
