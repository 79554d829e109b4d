//! `profile -- COMMAND`: any program, measured from outside.
//!
//! It is run as it is, with what it prints kept in files: wall time, processor time, memory, and its devices as their driver
//! sees them. What it does inside our collector tells, in one more run, so that times stay plain.

mod recorded;
mod turns;
mod watching;

use analysis::{CommandRuns, Evidence, Subject};
use collect::Command;
use collect::run::RunFolder;
use regex::bytes::Regex;
use report::pages::run::{Assumptions, Setting};
use types::{Environment, Metrics, UserError};

pub use recorded::Recording;
pub use types::Collector;
pub use watching::CommandEnd;

use crate::RunRequest;
use crate::pipeline::folder::bundle::{self, Bundle};
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::progress::Progress;
use crate::pipeline::subject::NamedSubject;
use crate::pipeline::target::{Target, no_command};
use crate::pipeline::{device::machine, recorded::provenance};
use crate::runner::error::wrong_setting;

/// What to measure.
#[derive(Debug)]
pub struct CommandRequest {
    /// The commands; several take turns.
    pub targets: Vec<Target>,
    /// Runs before measuring, of each.
    pub warmup_rounds: u32,
    /// Measured runs, of each.
    pub repeats: u32,
    /// Run by a shell before each run, and not timed.
    pub prepare: Option<String>,
    /// Run by a shell after each run, and not timed.
    pub cleanup: Option<String>,
    /// When a command that does not end by itself is ended.
    pub end: CommandEnd,
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
) -> Result<EndedRun<Metrics>, UserError> {
    if request.repeats == 0 {
        return Err(wrong_setting("dataset.sampling.repeats", "at least 1", "0"));
    }
    progress(Progress::Doing("inspecting the machine"));
    let environment = machine::capture(request.subject.config_dir.as_deref())?;
    // A device that nobody knows fails before anything runs.
    request.subject.named_hardware()?;
    let Some(first) = request.targets.first() else {
        return Err(no_command());
    };
    let inputs = provenance::of_command(first.argv());
    run(run_request, |folder| {
        provenance::write(folder, &inputs)?;
        fill(folder, request, &environment, config_yaml, progress, stop)
    })
}

fn fill(
    folder: &mut RunFolder,
    request: &CommandRequest,
    environment: &Environment,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(Metrics, Vec<String>), UserError> {
    folder.write_file("config.yaml", config_yaml.as_bytes())?;
    folder.write_json("env.json", environment)?;
    folder.end_step("prepare")?;

    let turns::Turns { runs, mut missing } = turns::take(folder, request, progress, stop)?;
    folder.end_step("measure")?;
    let of_target = |(target, runs): (&Target, _)| CommandRuns { command: target.description(), runs };
    let mut commands = request.targets.iter().zip(runs).map(of_target);
    let command = commands.next();
    let beside: Vec<CommandRuns> = commands.collect();
    let metrics = match command {
        Some(command) if beside.is_empty() && missing.is_empty() && request.recording.is_wanted(environment) => {
            progress(Progress::Doing("recording: one more run with the collector"));
            let recorded = recorded::pass(folder, request, stop, progress)?;
            missing.extend(recorded.missing.iter().cloned());
            let metrics = recorded.metrics(folder, request, command)?;
            folder.end_step("record")?;
            metrics
        }
        command => {
            let subject = Subject { run: recorded::header(folder.id()), ..Subject::default() };
            crate::pipeline::metrics::metrics(
                &subject,
                &Evidence { command, commands_beside: beside, missing: missing.clone(), ..Evidence::default() },
            )
        }
    };
    folder.write_json("metrics.json", &metrics)?;
    let assumptions = assumptions(&metrics, request);
    bundle::write(
        folder,
        &Bundle { metrics: &metrics, environment, assumptions, kernels: None, operator_rows: None, timelines: &[] },
    )?;
    folder.end_step("report")?;
    Ok((metrics, missing))
}

/// A command line as something to measure.
pub fn shell_target(line: &str) -> Result<Target, UserError> {
    if line.trim().is_empty() {
        return Err(no_command());
    }
    Target::command(["/bin/sh", "-c", line].map(Into::into).to_vec())
}

/// A pattern that a flag gives.
pub fn pattern(flag: &'static str, text: &str) -> Result<Regex, UserError> {
    Regex::new(text).map_err(|error| {
        let found = format!("`{text}` ({})", error.to_string().lines().last().unwrap_or_default());
        wrong_setting(flag, "a regular expression", &found)
    })
}

/// A command line of the user's, for the system's shell.
fn shell(line: &str) -> Command {
    Command::new("/bin/sh", ["-c", line])
}

fn assumptions(metrics: &Metrics, request: &CommandRequest) -> Assumptions {
    Assumptions {
        run: metrics.run.id.clone(),
        device: Vec::new(),
        repeats: vec![Setting::new("warm-up rounds", request.warmup_rounds), Setting::new("repeats", request.repeats)],
        batch: Vec::new(),
        model: request.targets.iter().map(|target| Setting::new("command", target.description())).collect(),
        decoding: Vec::new(),
        preprocessing: Vec::new(),
        profiling: vec![
            Setting::new("times", "from start to end, without a profiler"),
            Setting::new(
                "device work",
                match metrics.conditions.trace {
                    Some(_) => "from one more run with the collector, which is slower",
                    None => "not recorded",
                },
            ),
            Setting::new(
                "CPU time and memory",
                "as counted by the system for the command and the child processes it waited for",
            ),
            Setting::new("devices", "utilisation, memory and power, sampled from the driver ten times per second"),
        ],
        data: vec![Setting::new("standard input", "empty")],
        repeat_command: None,
    }
}

/// One line per command, as `hyperfine --export-csv` writes it.
pub fn csv(metrics: &Metrics) -> String {
    report::pages::run::command_csv(&analysis::view::run(metrics))
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::pages::run::command_terminal(&analysis::view::run(metrics))
}
