//! `profile -- COMMAND`: any program, measured from outside.
//!
//! It is run as it is, with what it prints kept in files: wall time, processor time, memory, and its devices as their driver
//! sees them. What it does inside our collector tells, in one more run, so that times stay plain.

mod recorded;

use std::ffi::OsString;

use analysis::{CommandRuns, Evidence, Subject};
use collect::Command;
use collect::environment::GpuSampler;
use collect::process::{self, Ending, Interrupt, Limits, ProcessOutcome};
use collect::run::RunFolder;
use report::profile::{Assumptions, Setting};
use types::{CommandRun, DeviceUse, Environment, Metrics};

pub use recorded::Recording;
pub use types::Collector;

use super::Profile;
use crate::RunRequest;
use crate::pipeline::bundle::{self, Bundle};
use crate::pipeline::progress::Progress;
use crate::pipeline::run::{EndedRun, run};
use crate::pipeline::subject::NamedSubject;
use crate::pipeline::target::{Target, TargetError};
use crate::pipeline::{machine, provenance};
use crate::runner::error::ProfileError;

/// What to measure.
#[derive(Debug)]
pub struct CommandRequest {
    /// The command.
    pub target: Target,
    /// Runs before measuring.
    pub warmup_rounds: u32,
    /// Measured runs.
    pub repeats: u32,
    /// Whether it is run once more with our collector inside.
    pub recording: Recording,
    /// Model, workload and device, as far as the user names them.
    pub subject: NamedSubject,
}

/// Runs the command, measures it and writes everything into a run folder.
pub fn profile(
    request: &CommandRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Profile, ProfileError> {
    if request.repeats == 0 {
        let key = "dataset.sampling.repeats";
        return Err(ProfileError::Setting { key, expected: "at least 1", found: "0".to_owned() });
    }
    progress(Progress::Doing("looking at the machine"));
    let environment = machine::capture(request.subject.config_dir.as_deref())?;
    // A device that nobody knows fails before anything runs.
    request.subject.named_hardware()?;
    let inputs = provenance::of_command(request.target.argv());
    let EndedRun { value: metrics, folder, missing } = run(run_request, |folder| {
        provenance::write(folder, &inputs)?;
        fill(folder, request, &environment, config_yaml, progress, stop)
    })?;
    Ok(Profile { metrics, inputs, folder, missing, part_of_rank: None })
}

fn fill(
    folder: &mut RunFolder,
    request: &CommandRequest,
    environment: &Environment,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, Vec<String>), ProfileError> {
    folder.write_file("config.yaml", config_yaml.as_bytes())?;
    folder.write_json("env.json", environment)?;
    folder.end_step("prepare")?;

    let total = request.warmup_rounds + request.repeats;
    let mut runs = Vec::new();
    let mut missing = Vec::new();
    for number in 0..total {
        let warmup = number < request.warmup_rounds;
        let doing = if warmup { "warming up" } else { "measuring" };
        progress(Progress::Doing(&format!("{doing}: run {} of {total}", number + 1)));
        let (ProcessOutcome { ending, usage, .. }, devices) =
            run_once(folder, request, &format!("command-{number}"), &[], stop)?;
        if stop() {
            return Err(ProfileError::Stopped { done: number.into(), total: total.into() });
        }
        let exit_code = match ending {
            Ending::Code(code) => Some(code),
            _ => None,
        };
        if !ending.is_success() {
            missing.push(format!("run {} of the command {ending}; see logs/command-{number}.stderr", number + 1));
        }
        runs.push(CommandRun {
            warmup,
            wall_ns: usage.wall,
            user_ns: usage.user,
            system_ns: usage.system,
            peak_memory_bytes: usage.peak_memory,
            exit_code,
            devices,
        });
        // A command that fails will do so again.
        if !ending.is_success() {
            break;
        }
    }
    folder.end_step("measure")?;
    let command = CommandRuns { command: request.target.description(), runs };
    let metrics = if missing.is_empty() && request.recording.is_wanted(environment) {
        progress(Progress::Doing("recording: one more run with the collector inside"));
        let recorded = recorded::pass(folder, request, stop, progress)?;
        missing.extend(recorded.missing.iter().cloned());
        let metrics = recorded.metrics(folder.id(), request, command)?;
        folder.end_step("record")?;
        metrics
    } else {
        let subject = Subject { run: recorded::header(folder.id()), ..Subject::default() };
        analysis::metrics(&subject, &Evidence { command: Some(command), ..Evidence::default() })
    };
    folder.write_json("metrics.json", &metrics)?;
    let assumptions = assumptions(&metrics, request);
    bundle::write(
        folder,
        &Bundle { metrics: &metrics, environment, assumptions, kernels: None, operator_rows: None, timeline: None },
    )?;
    folder.end_step("report")?;
    Ok((metrics, missing))
}

/// One run, to its end.
fn run_once(
    folder: &mut RunFolder,
    request: &CommandRequest,
    name: &str,
    variables: &[(OsString, OsString)],
    stop: &dyn Fn() -> bool,
) -> Result<(ProcessOutcome, Vec<DeviceUse>), ProfileError> {
    let Some(command) = Command::of_words(request.target.argv()) else {
        return Err(ProfileError::Target(TargetError::Empty));
    };
    let command = command.with_variables(request.target.environment().iter().chain(variables).cloned());
    let sampler = GpuSampler::start();
    let finished = process::run(folder, name, command, &Limits::default(), Interrupt::Asked(stop));
    let devices = sampler.finish();
    Ok((finished?, devices))
}

fn assumptions(metrics: &Metrics, request: &CommandRequest) -> Assumptions {
    Assumptions {
        run: metrics.run.id.clone(),
        device: Vec::new(),
        repeats: vec![Setting::new("warm-up rounds", request.warmup_rounds), Setting::new("repeats", request.repeats)],
        batch: Vec::new(),
        model: vec![Setting::new("command", request.target.description())],
        decoding: Vec::new(),
        preprocessing: Vec::new(),
        profiling: vec![
            Setting::new("times", "from its start to its end, without a profiler"),
            Setting::new(
                "device work",
                match metrics.conditions.trace {
                    Some(_) => "from one more run with the collector inside, which is slower",
                    None => "not recorded",
                },
            ),
            Setting::new("processor time and memory", "as the system counts them for it and what it waited for"),
            Setting::new("devices", "utilisation, memory and power ten times a second, as their driver has them"),
        ],
        data: vec![Setting::new("standard input", "empty")],
        repeat_command: None,
    }
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::profile::command_terminal(&analysis::view::run(metrics))
}
