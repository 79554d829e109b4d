//! One more run of a command, with our collector inside: its kernels, copies and ranges, from whichever processes used CUDA.

use analysis::{CommandRuns, Evidence, Subject, command_overhead};
use collect::run::RunFolder;
use collect::tool::inject::{InjectSettings, Injection};
use types::{Collector, Environment, Metrics, Nanos, QualityCounter, RunHeader, Severity, UserError};

use super::CommandRequest;
use super::turns::Runner;
use crate::pipeline::progress::Progress;
use crate::pipeline::recorded::provenance;
use crate::pipeline::subject::{ResolvedSubject, TracedRun, WorkloadSource, resolve};
use crate::pipeline::target::no_command;
use crate::pipeline::trace::Traces;

/// Folder of the files, in the run's folder.
const TRACE: &str = "trace";

/// Whether and what to record.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Whether: [`Collector::Auto`] records where the machine has a GPU.
    pub collector: Collector,
    /// What.
    pub settings: InjectSettings,
}

impl Recording {
    pub(super) fn is_wanted(&self, environment: &Environment) -> bool {
        match self.collector {
            Collector::Auto => !environment.gpus.is_empty() && Injection::is_built_in(),
            Collector::Inject | Collector::Both => true,
            Collector::Nsys | Collector::None => false,
        }
    }
}

/// What the run with the collector showed.
pub(super) struct RecordedRun {
    traces: Option<Traces>,
    wall: Nanos,
    quality: Vec<QualityCounter>,
    pub(super) missing: Vec<String>,
}

/// Runs the command with the collector, and reads what it wrote.
pub(super) fn pass(
    folder: &mut RunFolder,
    request: &CommandRequest,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<RecordedRun, UserError> {
    // The folder appears with the first file that is prepared in it.
    let place = folder.prepare(&format!("{TRACE}/process-0.wire"))?;
    let trace = place.parent().map(std::path::Path::to_owned).unwrap_or_default();
    let injection = Injection::prepare(&trace, request.recording.settings.clone())?;
    let Some(target) = request.targets.first() else {
        return Err(no_command());
    };
    let ran = Runner::new(request).run(folder, target, "recorded", &injection.variables(), progress, stop);
    let files = injection.gather()?;
    let ran = ran?;
    let (finished, mut missing) = (ran.watched.outcome, ran.watched.missing);
    if !finished.succeeded() && ran.watched.ended_for.is_none() {
        missing.push(format!("the run with the collector {}; see logs/recorded.stderr", finished.ending));
    }
    let mut names = Vec::new();
    for file in files {
        if let Some(name) = file.file_name().map(|name| format!("{TRACE}/{}", name.to_string_lossy())) {
            folder.adopt(&name)?;
            names.push(name);
        }
    }
    let mut recorded = RecordedRun { traces: None, wall: finished.usage.wall, quality: Vec::new(), missing };
    if names.is_empty() {
        recorded.quality.push(QualityCounter::new("no_process_collected", Severity::Warning, 1));
        return Ok(recorded);
    }
    let mut tell = |what: &str| progress(Progress::Doing(what));
    let traces = Traces::of_collector(folder.path(), &names, request.subject.model_id().as_deref(), &mut tell)?;
    recorded.missing.extend(traces.missing.iter().cloned());
    recorded.traces = Some(traces);
    Ok(recorded)
}

/// A command by itself says nothing of a model.
pub(super) fn header(run_id: &str) -> RunHeader {
    RunHeader { id: run_id.to_owned(), engine: "command".to_owned(), ..RunHeader::default() }
}

impl RecordedRun {
    /// What was recorded beside what was measured plainly. Totals and stages are of the recorded run, so that their shares
    /// are of one thing; the plain runs stay in `command`.
    pub(super) fn metrics(
        self,
        folder: &mut RunFolder,
        request: &CommandRequest,
        command: CommandRuns,
    ) -> Result<Metrics, UserError> {
        let overhead = Some(command_overhead(&command, self.wall));
        let run_id = folder.id().to_owned();
        let Some(traces) = &self.traces else {
            let subject = Subject { run: header(&run_id), ..Subject::default() };
            let (command, quality, missing) = (Some(command), self.quality, self.missing);
            return Ok(crate::pipeline::metrics::metrics(
                &subject,
                &Evidence { command, overhead, quality, missing, ..Evidence::default() },
            ));
        };
        let named = request.subject.named_hardware()?;
        let traced = TracedRun {
            run_id: &run_id,
            engine: Some("command".to_owned()),
            weights: None,
            model: request.subject.model.as_ref(),
            workload: WorkloadSource::Request(&request.subject.workload),
            named: named.as_ref(),
            config_dir: request.subject.config_dir.as_deref(),
            rate_may_lack: true,
        };
        let ResolvedSubject { subject, devices, quality, modules, .. } = resolve(&traced, traces)?;
        provenance::write_modules(folder, &modules)?;
        let mut evidence = traces.evidence(&devices);
        if let Some(trace) = &mut evidence.trace {
            trace.recorded_here = true;
        }
        evidence.missing = self.missing;
        evidence.command = Some(command);
        evidence.overhead = overhead;
        evidence.quality.extend(quality.into_iter().chain(self.quality));
        Ok(crate::pipeline::metrics::metrics(&subject, &evidence))
    }
}
