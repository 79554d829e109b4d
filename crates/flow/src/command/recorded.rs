//! One more run of a command, with our collector inside: its kernels, copies and ranges, from whichever processes used CUDA.

use collect::run::RunFolder;
use collect::tool::inject::{InjectSettings, Injection};
use types::{Collector, Environment, Metrics, Nanos, Overhead, QualityCounter, Severity, TracedWorkload};

use super::{CommandRequest, run_once};
use crate::import::{self, Subject, SubjectWorkload};
use crate::profile::{ProfileError, Progress};

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
            Collector::Inject => true,
            Collector::Nsys | Collector::None => false,
        }
    }
}

/// What the run with the collector told.
pub(super) struct Recorded {
    metrics: Option<Metrics>,
    wall: Nanos,
    quality: Vec<QualityCounter>,
    pub(super) missing: Vec<String>,
}

/// Runs the command with the collector, and sums up what it wrote.
pub(super) fn pass(
    folder: &mut RunFolder,
    request: &CommandRequest,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Recorded, ProfileError> {
    // The folder appears with the first file that is prepared in it.
    let place = folder.prepare(&format!("{TRACE}/process-0.wire"))?;
    let trace = place.parent().map(std::path::Path::to_owned).unwrap_or_default();
    let injection = Injection::prepare(&trace, request.recording.settings.clone())?;
    let ran = run_once(folder, request, "recorded", &injection.variables(), stop);
    let files = injection.gather()?;
    let (finished, _) = ran?;
    let mut missing = Vec::new();
    if !finished.succeeded() {
        missing.push(format!("the run with the collector {}; see logs/recorded.stderr", finished.ending));
    }
    let mut names = Vec::new();
    for file in files {
        if let Some(name) = file.file_name().map(|name| format!("{TRACE}/{}", name.to_string_lossy())) {
            folder.adopt(&name)?;
            names.push(name);
        }
    }
    let mut recorded = Recorded { metrics: None, wall: finished.usage.wall, quality: Vec::new(), missing };
    if names.is_empty() {
        recorded.quality.push(QualityCounter {
            counter: "no_process_collected".to_owned(),
            value: 1,
            share: None,
            severity: Severity::Warning,
            remedy: "no process of the command used CUDA or NVTX, or the library could not be loaded into it; \
                     `llm-perf doctor` tries the library"
                .to_owned(),
        });
        return Ok(recorded);
    }
    let (parts, sources) = import::read_collected(folder.path(), &names)?;
    recorded.missing.extend(parts.missing.iter().cloned());
    let subject = Subject {
        run_id: folder.id(),
        engine: Some("command".to_owned()),
        weights: None,
        model: None,
        workload: SubjectWorkload::Known(Box::new(TracedWorkload {
            workload: None,
            evidence: Vec::new(),
            missing: Vec::new(),
        })),
        named: None,
        config_dir: request.config_dir.as_deref(),
        plain: None,
    };
    let mut tell = |what: &str| progress(Progress::Doing(what));
    recorded.metrics = Some(import::summarise(&subject, parts, sources, &mut tell)?.metrics);
    Ok(recorded)
}

impl Recorded {
    /// Puts what was recorded beside what was measured plainly. Totals and stages are of the recorded run, so that their
    /// shares are of one thing; the plain runs stay in `command`.
    pub(super) fn add_to(self, metrics: &mut Metrics) {
        let command = metrics.command.take();
        let median = command.as_ref().and_then(|command| command.wall_ms.as_ref()).map(|times| times.median);
        let baseline = median.map(|milliseconds| Nanos::new((milliseconds * 1e6).round() as i64));
        if let Some(recorded) = self.metrics {
            *metrics = recorded;
        }
        if let Some(facts) = &mut metrics.trace {
            facts.recorded_here = true;
        }
        metrics.command = command;
        metrics.quality.extend(self.quality);
        let share = baseline.filter(|baseline| *baseline > Nanos::ZERO);
        let share = share.map(|baseline| (self.wall - baseline).get() as f64 / baseline.get() as f64);
        metrics.overhead =
            Overhead { baseline_ns: baseline, profiled_ns: Some(self.wall), share, baseline_spread: None };
    }
}
