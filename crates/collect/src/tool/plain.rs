//! A program run plainly, with no profiler around it: what it prints goes to files or stays where it is, what it uses is
//! counted, and it may have a channel to talk back on.
//!
//! Profilers are run through [`crate::child`], which bounds what they write. What the output means is left to callers.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use types::{Bytes, Nanos};

use crate::CollectError;
use crate::tool::Command;

/// Variable that tells a child the number of its channel.
pub const CHANNEL: &str = "LLM_PERF_CHANNEL";

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program, its arguments and its variables.
    pub command: Command,
    /// File for its standard output; absent: that of this process.
    pub stdout: Option<PathBuf>,
    /// File for its standard error; absent: that of this process.
    pub stderr: Option<PathBuf>,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What a child, and whatever it waited for, used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// From start to end.
    pub wall: Nanos,
    /// Processor time in programs.
    pub user: Nanos,
    /// Processor time in the system.
    pub system: Nanos,
    /// Most memory one of its processes had at a time.
    pub peak_memory: Option<Bytes>,
}

/// A child that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    program: PathBuf,
    begun: Instant,
}

/// Lines a child writes to its channel.
#[derive(Debug)]
pub struct Lines(BufReader<PipeReader>);

impl Ended {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }

    /// Whether it ended by itself and well.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}{}", named(*signal)),
        }
    }
}

fn named(signal: i32) -> &'static str {
    match signal {
        libc::SIGKILL => " (SIGKILL; the system does so when memory runs out)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGTERM => " (SIGTERM)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGBUS => " (SIGBUS)",
        _ => "",
    }
}

impl Launch {
    /// `command` with its output to our own.
    pub fn new(command: Command) -> Self {
        Self { command, stdout: None, stderr: None }
    }

    /// Starts it.
    pub fn start(&self) -> Result<Running, CollectError> {
        self.spawn(None)
    }

    /// Starts it with a channel: a pipe of its own, whose number [`CHANNEL`] tells it.
    pub fn start_with_channel(&self) -> Result<(Running, Lines), CollectError> {
        let failed = |reason| CollectError::Start { program: self.command.program.clone(), reason };
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let running = self.spawn(Some(writer.into()))?;
        Ok((running, Lines(BufReader::new(reader))))
    }

    fn spawn(&self, channel: Option<OwnedFd>) -> Result<Running, CollectError> {
        let Command { program, arguments, environment, folder } = &self.command;
        let mut command = std::process::Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        for (file, is_error) in [(&self.stdout, false), (&self.stderr, true)] {
            let Some(file) = file else { continue };
            let out = File::create(file).map_err(CollectError::io("write", file))?;
            if is_error {
                command.stderr(out)
            } else {
                command.stdout(out)
            };
        }
        // Its own group, so that ending it also ends what it started.
        command.process_group(0);
        if let Some(channel) = &channel {
            let number = channel.as_raw_fd();
            command.env(CHANNEL, number.to_string());
            // SAFETY: between fork and exec only fcntl is called, which is safe there; `channel` outlives the spawn.
            unsafe {
                command.pre_exec(move || match libc::fcntl(number, libc::F_SETFD, 0) {
                    -1 => Err(std::io::Error::last_os_error()),
                    _ => Ok(()),
                });
            }
        }
        let begun = Instant::now();
        let child = command.spawn().map_err(|reason| CollectError::Start { program: program.clone(), reason })?;
        Ok(Running { child, program: program.clone(), begun })
    }
}

impl Running {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; `tick` is called about every `pause`, and ends the child by answering `false`.
    pub fn wait(mut self, pause: Duration, tick: &mut dyn FnMut() -> bool) -> Result<(Ended, Usage), CollectError> {
        loop {
            if let Some(ended) = self.ended()? {
                return Ok(ended);
            }
            if !tick() {
                self.end();
            }
            std::thread::sleep(pause);
        }
    }

    /// Whether it has ended, and what it used.
    pub fn ended(&mut self) -> Result<Option<(Ended, Usage)>, CollectError> {
        let failed = |reason| CollectError::Start { program: self.program.clone(), reason };
        let Ok(id) = libc::pid_t::try_from(self.child.id()) else { return Ok(None) };
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: both pointers are to locals of the right type, and the child has not been waited for.
        let found = unsafe { libc::wait4(id, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
        match found {
            0 => Ok(None),
            -1 => Err(failed(std::io::Error::last_os_error())),
            _ => {
                let wall = Nanos::new(i64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(i64::MAX));
                // SAFETY: wait4 filled it in; all-zero was valid before.
                let usage = unsafe { usage.assume_init() };
                let time = |time: libc::timeval| Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000);
                // Linux counts in kilobytes of 1024 bytes.
                let memory = u64::try_from(usage.ru_maxrss).ok().filter(|kilobytes| *kilobytes > 0);
                let usage = Usage {
                    wall,
                    user: time(usage.ru_utime),
                    system: time(usage.ru_stime),
                    peak_memory: memory.map(|kilobytes| Bytes::new(kilobytes * 1024)),
                };
                Ok(Some((Ended::of(ExitStatus::from_raw(status)), usage)))
            }
        }
    }

    /// Ends it, with everything it started.
    pub fn end(&mut self) {
        let Ok(id) = libc::pid_t::try_from(self.child.id()) else { return };
        // SAFETY: kill takes plain numbers. The child has not been waited for, so its number, which is also that of the
        // group it leads, is still its own.
        unsafe { libc::kill(-id, libc::SIGKILL) };
    }
}

impl Iterator for Lines {
    type Item = String;

    /// The next line; `None` once every process that holds the channel has let go of it.
    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Launch {
        let command = Command::new("/bin/sh", ["-c", script].map(Into::into).to_vec());
        Launch::new(command.with_variable("GREETING", "hello"))
    }

    const PAUSE: Duration = Duration::from_millis(2);

    #[test]
    fn output_goes_to_files_and_lines_on_the_channel_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch {
            stdout: Some(folder.path().join("out")),
            stderr: Some(folder.path().join("err")),
            // By its path: a shell redirects to numbers of one digit only.
            ..shell(r#"echo noise; echo trouble >&2; echo '{"a":1}' >/dev/fd/$LLM_PERF_CHANNEL; echo $GREETING"#)
        };
        let (running, lines) = launch.start_with_channel().unwrap();
        assert_eq!(lines.collect::<Vec<_>>(), [r#"{"a":1}"#]);
        let (ended, usage) = running.wait(PAUSE, &mut || true).unwrap();
        assert!(ended.is_success());
        assert!(usage.wall > Nanos::ZERO && usage.peak_memory.is_some());
        assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "noise\nhello\n");
        assert_eq!(std::fs::read_to_string(folder.path().join("err")).unwrap(), "trouble\n");
    }

    #[test]
    fn processor_time_of_what_it_waited_for_is_counted() {
        let script = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; exit 7";
        let (ended, usage) = shell(script).start().unwrap().wait(PAUSE, &mut || true).unwrap();
        assert_eq!(ended, Ended::Code(7));
        assert!(usage.user + usage.system > Nanos::ZERO);
    }

    #[test]
    fn a_child_that_is_ended_says_by_which_signal() {
        let (ended, _) = shell("sleep 600").start().unwrap().wait(PAUSE, &mut || false).unwrap();
        assert_eq!(ended, Ended::Signal(libc::SIGKILL));
        assert!(ended.to_string().starts_with("was ended by signal 9 (SIGKILL"));
    }

    #[test]
    fn the_channel_ends_when_the_child_is_killed() {
        let (running, mut lines) =
            shell("echo first >/dev/fd/$LLM_PERF_CHANNEL; kill -9 $$").start_with_channel().unwrap();
        assert_eq!(lines.next().as_deref(), Some("first"));
        assert_eq!(lines.next(), None);
        assert_eq!(running.wait(PAUSE, &mut || true).unwrap().0, Ended::Signal(libc::SIGKILL));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_named() {
        let error = Launch::new(Command::new("/nowhere/python", Vec::new())).start().unwrap_err();
        assert!(error.to_string().starts_with("cannot start /nowhere/python: "), "{error}");
    }
}
