//! The runs of the commands: one after the other in turns, so that what changes on the machine meanwhile meets all of them.

use std::ffi::OsString;

use collect::Command;
use collect::disturbance::{self, MachineReading, OwnTimes};
use collect::environment::GpuSampler;
use collect::process::{self, Ending, Interrupt, Limits, PeakMemory, Usage};
use collect::run::RunFolder;
use types::{Bytes, CommandRun, DeviceUse, Disturbance, UserError};

use super::watching::{WatchedRun, Watcher};
use super::{CommandRequest, shell};
use crate::pipeline::progress::Progress;
use crate::pipeline::target::{Target, no_command};

/// Most a command may print. One that floods its output is stopped before it fills the disk.
const MOST_OUTPUT: Bytes = Bytes::new(4 << 30);

/// What the runs gave.
pub(super) struct Turns {
    /// Runs of each command, in order.
    pub(super) runs: Vec<Vec<CommandRun>>,
    /// Why the run is partial; empty when it is not.
    pub(super) missing: Vec<String>,
}

/// Runs every command as often as asked for.
pub(super) fn take(
    folder: &mut RunFolder,
    request: &CommandRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Turns, UserError> {
    let rounds = request.warmup_rounds + request.repeats;
    let total = rounds as usize * request.targets.len();
    let mut turns = Turns { runs: request.targets.iter().map(|_| Vec::new()).collect(), missing: Vec::new() };
    let runner = Runner::new(request);
    let mut done = 0;
    for round in 0..rounds {
        for (index, target) in request.targets.iter().enumerate() {
            let warmup = round < request.warmup_rounds;
            let doing = if warmup { "warming up" } else { "measuring" };
            progress(Progress::Doing(&format!("{doing}: run {} of {total}", done + 1)));
            let name = match request.targets.len() {
                1 => format!("command-{round}"),
                _ => format!("command-{index}-{round}"),
            };
            turns.missing.extend(aside(folder, request.prepare.as_deref(), &name, "prepare", stop)?);
            if turns.missing.is_empty() {
                let ran = runner.run(folder, target, &name, &[], progress, stop)?;
                turns.runs[index].push(ran.run(warmup));
                turns.missing.extend(ran.missing(&name));
                turns.missing.extend(aside(folder, request.cleanup.as_deref(), &name, "cleanup", stop)?);
            }
            if stop() {
                turns.missing = vec![format!("stopped by the user after {done} of {total} runs")];
            }
            // A command that fails will do so again.
            if !turns.missing.is_empty() {
                return Ok(turns);
            }
            done += 1;
        }
    }
    Ok(turns)
}

/// Runs a command of the user's before or after a timed one; says what went wrong with it.
fn aside(
    folder: &mut RunFolder,
    line: Option<&str>,
    name: &str,
    what: &str,
    stop: &dyn Fn() -> bool,
) -> Result<Option<String>, UserError> {
    let Some(line) = line else { return Ok(None) };
    let log = format!("{name}-{what}");
    let finished = process::run(folder, &log, shell(line), &Limits::default(), Interrupt::Asked(stop))?;
    Ok((!finished.succeeded()).then(|| format!("the command of --{what} {}; see logs/{log}.stderr", finished.ending)))
}

/// One run of a command.
pub(super) struct Turn {
    pub(super) watched: WatchedRun,
    devices: Vec<DeviceUse>,
    disturbance: Disturbance,
}

/// Runs commands and watches them.
pub(super) struct Runner<'a> {
    request: &'a CommandRequest,
    sampler: GpuSampler,
}

impl<'a> Runner<'a> {
    pub(super) fn new(request: &'a CommandRequest) -> Self {
        Self { request, sampler: GpuSampler::start() }
    }

    /// One run, to its end.
    pub(super) fn run(
        &self,
        folder: &mut RunFolder,
        target: &Target,
        name: &str,
        variables: &[(OsString, OsString)],
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<Turn, UserError> {
        let Some(command) = Command::of_words(target.argv()) else {
            return Err(no_command());
        };
        let command = command.with_variables(target.environment().iter().chain(variables).cloned());
        let logs = [process::stdout_log(name), process::stderr_log(name)];
        let watched = logs.into_iter().map(|log| folder.path().join(log)).collect();
        let limits = Limits { time: self.request.end.after, size: Some(MOST_OUTPUT), watched, ..Limits::default() };
        let watcher = Watcher::new(folder, name, &self.request.end)?;
        self.sampler.watch();
        let before = MachineReading::now();
        let watched = watcher.run(folder, name, command, &limits, progress, stop);
        let after = MachineReading::now();
        let devices = self.sampler.finish();
        let watched = watched?;
        let Usage { user, system, switches_involuntary, first_thread, .. } = watched.outcome.usage;
        let own = OwnTimes {
            cpu: user + system,
            waited: first_thread.map(|[_, waited]| waited),
            cpu_of_waiting: first_thread.map(|[ran, _]| ran),
            switches: Some(switches_involuntary),
        };
        let mut disturbance = after.since(&before, own);
        disturbance.causes.extend(devices.iter().flat_map(disturbance::of_device));
        Ok(Turn { watched, devices, disturbance })
    }
}

impl Turn {
    fn run(&self, warmup: bool) -> CommandRun {
        let (outcome, usage) = (&self.watched.outcome, &self.watched.outcome.usage);
        CommandRun {
            warmup,
            wall_ns: usage.wall,
            start_ns: Some(usage.start),
            user_ns: usage.user,
            system_ns: usage.system,
            peak_memory_bytes: match usage.peak_memory {
                PeakMemory::Known(bytes) => Some(bytes),
                PeakMemory::AtMost(_) | PeakMemory::Unknown => None,
            },
            peak_memory_at_most_bytes: match usage.peak_memory {
                PeakMemory::AtMost(bytes) => Some(bytes),
                PeakMemory::Known(_) | PeakMemory::Unknown => None,
            },
            exit_code: match outcome.ending {
                Ending::Code(code) => Some(code),
                _ => None,
            },
            ended_for: self.watched.ended_for.clone(),
            left_running: outcome.left_running,
            outlier: false,
            disturbance: Some(self.disturbance.clone()),
            devices: self.devices.clone(),
        }
    }

    fn missing(&self, name: &str) -> Vec<String> {
        let ending = self.watched.outcome.ending;
        let is_well = ending.is_success() || self.watched.ended_for.is_some();
        let failed = (!is_well).then(|| format!("a run of the command {ending}; see logs/{name}.stderr"));
        failed.into_iter().chain(self.watched.missing.iter().cloned()).collect()
    }
}
