//! Runs a program to its end: the one place that starts processes.
//!
//! A process has a group of its own, so that ending it also ends what it started. It can be limited in time and in what it
//! writes, stopped by the user, and given a channel to talk back on; its end is seen when it happens, with what it used.
//! What its output means is left to callers.

mod channel;
mod ending;
mod exit;
mod family;
mod guard;
mod interrupt;
mod limits;
mod listening;
mod logs;
mod stream;
mod usage;

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use types::{Nanos, UserError};

pub use channel::{ANSWER_VARIABLE, Lines, send_answer};
pub use ending::Ending;
pub use interrupt::{Interrupt, StopRequest};
pub use limits::{Limits, MOST_LOG, size_of};
pub use listening::listening_process;
pub use logs::{answer, run, run_for_answer, stderr_log, stdout_log};
pub use usage::{PeakMemory, Usage};

use crate::Command;
use crate::error::not_started;
use exit::{ExitWatch, monotonic};
use family::{Family, signal_group};
use interrupt::ForwardedSignals;
use limits::Watch;
use stream::Stream;

/// A process that runs.
#[derive(Debug)]
pub struct Process {
    id: libc::pid_t,
    program: PathBuf,
    started: Instant,
    /// When it was asked for and when it was the program, by the clock of its end.
    began: [Nanos; 2],
    exit: ExitWatch,
    own_memory: u64,
    stdout: Stream,
    stderr: Stream,
}

/// A process that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOutcome {
    /// The process that was started.
    pub process: u32,
    /// How.
    pub ending: Ending,
    /// What it used.
    pub usage: Usage,
    /// Processes it left running that were ended after it.
    pub left_running: u32,
    /// What is kept in memory of its standard output: the end of a file, the start of a stream.
    pub stdout: String,
    /// The same of its standard error.
    pub stderr: String,
}

impl Process {
    /// Starts it.
    pub fn start(command: &Command) -> Result<Self, UserError> {
        Self::spawn(command, None)
    }

    /// Starts it with a channel: a pipe of its own, whose number a variable tells it.
    pub fn start_with_channel(command: &Command) -> Result<(Self, Lines), UserError> {
        let (lines, writer) = Lines::open().map_err(|reason| not_started(&command.program, reason))?;
        Ok((Self::spawn(command, Some(writer))?, lines))
    }

    fn spawn(command: &Command, channel: Option<OwnedFd>) -> Result<Self, UserError> {
        let Command { program, arguments, environment, folder, stdout, stderr } = command;
        let mut starting = std::process::Command::new(program);
        starting.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        starting.stdin(Stdio::null()).stdout(stream::target(stdout)?).stderr(stream::target(stderr)?);
        starting.process_group(0);
        if let Some(folder) = folder {
            starting.current_dir(folder);
        }
        let number = channel.as_ref().map(AsRawFd::as_raw_fd);
        if let Some(number) = number {
            starting.env(channel::CHANNEL_VARIABLE, number.to_string());
        }
        let mut family = Family::lock();
        // Without anything to do in between, the system makes a process of the program straight away. A copy of this process, which
        // `pre_exec` needs, takes time in proportion to its memory, and the program would seem slower by that.
        if number.is_some() || !family.is_guarded() {
            let us = std::process::id();
            // SAFETY: between fork and exec only system calls are made, all of which are safe there; `channel` outlives the
            // spawn.
            unsafe {
                starting.pre_exec(move || {
                    end_with_parent(us)?;
                    match number.map(|number| libc::fcntl(number, libc::F_SETFD, 0)) {
                        Some(-1) => Err(std::io::Error::last_os_error()),
                        _ => Ok(()),
                    }
                });
            }
        }
        let own_memory = usage::own_peak();
        starting.envs(family.expect());
        let (started, asked) = (Instant::now(), monotonic());
        let spawned = starting.spawn();
        if spawned.is_err() {
            family.expect_none();
        }
        let mut child = spawned.map_err(|reason| not_started(&command.program, reason))?;
        let began = [asked, monotonic()];
        let id = libc::pid_t::try_from(child.id())
            .map_err(|_| not_started(&command.program, std::io::ErrorKind::Other.into()))?;
        let exit = ExitWatch::of(id);
        family.add(id);
        drop(family);
        let stdout = Stream::of(stdout, child.stdout.take());
        let stderr = Stream::of(stderr, child.stderr.take());
        Ok(Self { id, program: program.clone(), started, began, exit, own_memory, stdout, stderr })
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        exit::has_ended(self.id)
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id.unsigned_abs()
    }

    /// Ends it at once, with everything it started.
    pub fn kill(&self) {
        signal_group(self.id, libc::SIGKILL);
    }

    /// Waits for its end. Where it does not end well, what it left running ends with it: that would go on writing into files
    /// that are taken to be whole.
    pub fn wait(self, limits: &Limits, interrupt: Interrupt<'_>) -> Result<ProcessOutcome, UserError> {
        let forwarded = matches!(interrupt, Interrupt::Forwarded).then(|| ForwardedSignals::to_group(self.id));
        let watch = Watch::new(limits, self.started);
        let mut stopped: Option<(Ending, Instant)> = None;
        let exit = loop {
            let grace_left = stopped.as_ref().map(|(_, since)| limits.grace.saturating_sub(since.elapsed()));
            match self.exit.wait(self.id, watch.pause(&interrupt, grace_left)) {
                Ok(Some(exit)) => break exit,
                Ok(None) => {}
                Err(reason) => return Err(not_started(&self.program, reason)),
            }
            if stopped.is_some() {
                if grace_left.is_some_and(|left| left.is_zero()) {
                    self.kill();
                }
                continue;
            }
            if forwarded.as_ref().is_some_and(ForwardedSignals::came) {
                // It has the signal already, and may take as long as if it had been asked.
                stopped = Some((Ending::Interrupted, Instant::now()));
                continue;
            }
            let asked_to_stop = matches!(interrupt, Interrupt::Asked(stop) if stop());
            let why = if asked_to_stop { Some(Ending::Interrupted) } else { watch.broken() };
            if let Some(why) = why {
                signal_group(self.id, if limits.grace.is_zero() { libc::SIGKILL } else { libc::SIGTERM });
                stopped = Some((why, Instant::now()));
            }
        };
        let is_interrupted = forwarded.as_ref().is_some_and(ForwardedSignals::came);
        let ending = match stopped {
            Some((why, _)) => why,
            None if is_interrupted => Ending::Interrupted,
            None => exit.ending,
        };
        // Its number is still its own, and with it that of its group: it has not been collected.
        if !ending.is_success() {
            self.kill();
        }
        let [asked, began] = self.began;
        let usage = usage::collect(self.id, [exit.at - asked, began - asked], self.own_memory);
        let left_running = Family::lock().remove(self.id, ending.is_success());
        let usage = usage.map_err(|reason| not_started(&self.program, reason))?;
        let process = self.id();
        // A stream is whole when its reader saw the end of it. After a kill, or when a grandchild keeps it open, what came
        // so far is what there is.
        let patience = Instant::now() + stream::GRACE;
        Ok(ProcessOutcome {
            process,
            ending,
            usage,
            left_running,
            stdout: self.stdout.text(patience)?,
            stderr: self.stderr.text(patience)?,
        })
    }
}

impl ProcessOutcome {
    /// Whether it ended well.
    pub fn succeeded(&self) -> bool {
        self.ending.is_success()
    }

    /// Both streams, as far as they are kept.
    pub fn output(&self) -> String {
        format!("{}\n{}", self.stderr, self.stdout)
    }

    /// The last lines of its output, for a message: of standard error, else of standard output.
    pub fn last_lines(&self, most: usize) -> Vec<&str> {
        let blank = |text: &str| text.trim().is_empty();
        let text = if blank(&self.stderr) { &self.stdout } else { &self.stderr };
        let all: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !blank(line)).collect();
        all[all.len().saturating_sub(most)..].to_vec()
    }
}

/// Between fork and exec: the process is killed when the thread that started it ends, so that none outlives a killed
/// llm-perf. Whoever starts a process also waits for it.
fn end_with_parent(parent: u32) -> std::io::Result<()> {
    // SAFETY: prctl and getppid take and give plain numbers.
    let (answer, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
    match answer {
        -1 => Err(std::io::Error::last_os_error()),
        // It died before it could be watched.
        _ if now.unsigned_abs() != parent => Err(std::io::ErrorKind::Interrupted.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Output;

    fn shell(script: &str) -> Command {
        Command::new("/bin/sh", ["-c", script]).with_output(Output::Kept(1 << 18), Output::Kept(1 << 18))
    }

    fn finish(script: &str, limits: &Limits, interrupt: Interrupt<'_>) -> ProcessOutcome {
        Process::start(&shell(script)).unwrap().wait(limits, interrupt).unwrap()
    }

    fn unlimited(script: &str) -> ProcessOutcome {
        finish(script, &Limits::default(), Interrupt::Ignored)
    }

    #[test]
    fn both_streams_and_the_exit_code_come_back() {
        let finished = unlimited("echo out; echo err >&2; exit 3");
        assert_eq!((finished.ending, finished.succeeded()), (Ending::Code(3), false));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.last_lines(5), ["err"]);
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_everything_it_started() {
        // The grandchild writes its id; once the group is killed no such process may be left.
        let limits = Limits { time: Some(Duration::from_millis(300)), grace: Duration::ZERO, ..Limits::default() };
        let finished = finish("sleep 600 & echo $!; wait", &limits, Interrupt::Ignored);
        assert_eq!(finished.ending, Ending::OutOfTime);
        assert_gone(finished.stdout.trim());
    }

    #[test]
    fn what_a_failed_program_left_running_ends_with_it() {
        let finished = unlimited("sleep 600 >/dev/null 2>&1 & echo $!; exit 1");
        assert_eq!(finished.ending, Ending::Code(1));
        assert_gone(finished.stdout.trim());
    }

    /// It is gone, or a zombie that whoever inherited it has yet to collect.
    fn assert_gone(process: &str) {
        let state = || std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(Instant::now() < deadline, "process {process} is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_whose_time_is_up_may_finish_its_file_unless_it_takes_too_long() {
        let limits = |grace| Limits { time: Some(Duration::from_millis(200)), grace, ..Limits::default() };
        let patient = finish(
            "trap 'echo end; exit 0' TERM; sleep 600 & wait",
            &limits(Duration::from_secs(20)),
            Interrupt::Ignored,
        );
        assert_eq!((patient.ending, patient.stdout.as_str()), (Ending::OutOfTime, "end\n"));
        let stubborn = finish("trap '' TERM; sleep 600", &limits(Duration::from_millis(100)), Interrupt::Ignored);
        assert_eq!(stubborn.ending, Ending::OutOfTime);
    }

    #[test]
    fn the_user_stops_it_and_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script = format!("sleep 600 & echo $!; echo >{}; wait", ready.display());
        let finished = finish(&script, &Limits::default(), Interrupt::Asked(&|| ready.exists()));
        assert_eq!(finished.ending, Ending::Interrupted);
        assert_gone(finished.stdout.trim());
    }

    #[test]
    fn a_daemon_that_left_the_group_and_keeps_the_stream_open_does_not_stay_and_does_not_keep_us() {
        let finished = unlimited("setsid sleep 600 & echo $!; exec true");
        assert_eq!(finished.ending, Ending::Code(0));
        assert_gone(finished.stdout.trim());
    }

    #[test]
    fn what_is_about_to_end_by_itself_may() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("written");
        let script = format!("(setsid sh -c 'sleep 0.02; echo whole >{}' &) ", file.display());
        // On a busy machine even a moment may be too long; not every time.
        let is_written =
            || unlimited(&script).succeeded() && std::fs::read_to_string(&file).is_ok_and(|text| text == "whole\n");
        assert!((0..50).any(|_| is_written()));
    }

    #[test]
    fn memory_is_that_of_the_program_and_never_ours() {
        // What this process has is far more than what `true` needs.
        let ours = vec![1_u8; 64 << 20];
        let small = unlimited("exec true").usage.peak_memory;
        assert!(!matches!(small, PeakMemory::Known(bytes) if bytes.get() > 16 << 20), "{small:?}");
        // More than this process has, whatever tests run beside this one.
        let large = unlimited("exec head -c 700000000 /dev/zero | tail -c 600000000 | wc -c").usage.peak_memory;
        assert!(matches!(large, PeakMemory::Known(bytes) if bytes.get() > 590_000_000), "{large:?}");
        assert_eq!(ours.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 64 << 20);
    }

    #[test]
    fn output_without_end_is_cut_and_does_not_block_the_program() {
        let finished = unlimited("head -c 1000000 /dev/zero; echo end >&2");
        assert_eq!((finished.ending, finished.stdout.len()), (Ending::Code(0), 1 << 18));
        assert_eq!(finished.stderr, "end\n");
    }

    #[test]
    fn starting_a_process_takes_part_of_its_time() {
        let usage = unlimited("exit 0").usage;
        assert!(usage.start > Nanos::ZERO && usage.start <= usage.wall, "{usage:?}");
    }

    #[test]
    fn an_end_is_seen_before_it_is_waited_for() {
        let process = Process::start(&shell("read line </dev/fd/0; exit 0")).unwrap();
        while !process.has_ended() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(process.has_ended());
        assert!(process.wait(&Limits::default(), Interrupt::Ignored).is_ok());
    }

    #[test]
    fn nothing_can_be_typed_into_it_and_a_signal_is_named() {
        assert_eq!(unlimited("cat").ending, Ending::Code(0));
        assert_eq!(unlimited("kill -TERM $$").ending, Ending::Signal(libc::SIGTERM));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_that_names_it() {
        let error = Process::start(&Command::new("/nowhere/nsys", ["--version"])).unwrap_err();
        assert_eq!(error.to_string(), "cannot start /nowhere/nsys: No such file or directory (os error 2)");
    }

    #[test]
    fn it_starts_in_the_folder_asked_for() {
        let process = Process::start(&shell("pwd").within(std::path::Path::new("/"))).unwrap();
        assert_eq!(process.wait(&Limits::default(), Interrupt::Ignored).unwrap().stdout, "/\n");
    }

    #[test]
    fn its_end_is_timed_when_it_happens_and_processor_time_of_what_it_waited_for_is_counted() {
        let script = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; sleep 0.2; exit 7";
        let ProcessOutcome { ending, usage, .. } = unlimited(script);
        assert_eq!(ending, Ending::Code(7));
        assert!(usage.user + usage.system > Nanos::ZERO && usage.peak_memory != PeakMemory::Unknown);
        assert!(usage.wall > Nanos::new(200_000_000) && usage.wall < Nanos::new(20_000_000_000), "{}", usage.wall);
    }

    #[test]
    fn output_goes_to_files_and_lines_on_the_channel_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| Output::File(folder.path().join(name));
        // By its path: a shell redirects to numbers of one digit only.
        let command =
            shell(r#"echo noise; echo trouble >&2; echo '{"a":1}' >/dev/fd/$LLM_PERF_CHANNEL; echo $GREETING"#)
                .with_variable("GREETING", "hello")
                .with_output(file("out"), file("err"));
        let (process, lines) = Process::start_with_channel(&command).unwrap();
        assert_eq!(lines.collect::<Vec<_>>(), [r#"{"a":1}"#]);
        let finished = process.wait(&Limits::default(), Interrupt::Ignored).unwrap();
        assert!(finished.succeeded());
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("noise\nhello\n", "trouble\n"));
        assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "noise\nhello\n");
    }

    #[test]
    fn the_channel_ends_when_the_process_is_killed() {
        let command = shell("echo first >/dev/fd/$LLM_PERF_CHANNEL; kill -9 $$");
        let (process, mut lines) = Process::start_with_channel(&command).unwrap();
        assert_eq!((lines.next().as_deref(), lines.next()), (Some("first"), None));
        let finished = process.wait(&Limits::default(), Interrupt::Ignored).unwrap();
        assert_eq!(finished.ending, Ending::Signal(libc::SIGKILL));
    }
}
