//! Runs a small helper program and comes back in time, whatever the program does.
//!
//! For questions such as `nsys --version`: the answer is short, nothing is typed into it, and a program that hangs is
//! ended together with everything it started. Long-running workloads with logs of their own are not run through here.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::CollectError;

/// What is kept of each stream unless more is asked for. A version text is a few hundred bytes; a program that prints without end is cut here.
const KEPT_BYTES: usize = 256 * 1024;

/// How long a stream may stay open after the program itself has ended, because something it started holds on to it.
const STREAM_GRACE: Duration = Duration::from_millis(100);

/// A program to run, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    limit: Duration,
    kept: usize,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// By us, because its time was up.
    TimedOut,
}

/// What a program left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// How it ended.
    pub(crate) ended: Ended,
    /// The beginning of its standard output.
    pub(crate) stdout: String,
    /// The beginning of its standard error.
    pub(crate) stderr: String,
}

impl Question {
    /// `program` with `arguments`, ended after `limit`.
    pub(crate) fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
        limit: Duration,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, folder: None, limit, kept: KEPT_BYTES }
    }

    /// The same, started in `folder`.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// The same, keeping this much of each stream.
    pub(crate) fn keeping(mut self, bytes: usize) -> Self {
        self.kept = bytes;
        self
    }

    /// Runs it. An error means it could not be started; how it ended is part of the answer.
    pub(crate) fn ask(&self) -> Result<Answer, CollectError> {
        let started = Instant::now();
        let mut child = self.start()?;
        let stdout = child.stdout.take().map(|stream| Collected::begin(stream, self.kept));
        let stderr = child.stderr.take().map(|stream| Collected::begin(stream, self.kept));
        let ended = wait(&mut child, started + self.limit)
            .map_err(|reason| CollectError::Start { program: self.program.clone(), reason })?;
        // A stream is whole when its reader saw the end of it. After a kill or when a grandchild keeps it open, what
        // came so far is the answer.
        let patience = Instant::now() + STREAM_GRACE;
        let text = |stream: Option<Collected>| stream.map(|stream| stream.take(patience)).unwrap_or_default();
        Ok(Answer { ended, stdout: text(stdout), stderr: text(stderr) })
    }

    fn start(&self) -> Result<Child, CollectError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its own process group, so that ending it also ends what it started.
        command.process_group(0);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.spawn().map_err(|reason| CollectError::Start { program: self.program.clone(), reason })
    }
}

impl Answer {
    /// Standard output of a program that ended well; otherwise why there is none, in words.
    pub(crate) fn success(self) -> Result<String, String> {
        let said = self.stderr.lines().map(str::trim).find(|line| !line.is_empty());
        let said = said.map(|line| format!(": {line}")).unwrap_or_default();
        match self.ended {
            Ended::Code(0) => Ok(self.stdout),
            Ended::Code(code) => Err(format!("it ended with code {code}{said}")),
            Ended::Signal(signal) => Err(format!("it was ended by signal {signal}{said}")),
            Ended::TimedOut => Err("it did not answer in time".to_owned()),
        }
    }
}

/// Waits for the child until `deadline`, then ends its whole group.
fn wait(child: &mut Child, deadline: Instant) -> std::io::Result<Ended> {
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Code(code),
                (None, signal) => Ended::Signal(signal.unwrap_or_default()),
            });
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            end_group(child);
            child.wait()?;
            return Ok(Ended::TimedOut);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn end_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: kill takes plain numbers. The child has not been waited for, so its id, which is also the id of the group
    // it leads, cannot have been given to another process.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// A stream that a thread of its own reads, so that the program never blocks on a full pipe.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    finished: Receiver<()>,
}

impl Collected {
    fn begin(mut stream: impl Read + Send + 'static, most: usize) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (ended, finished) = channel();
        let kept = Arc::clone(&bytes);
        thread::spawn(move || {
            let mut piece = [0; 8192];
            // Reading goes on past what is kept, because a program that is cut off would die of a closed pipe.
            while let Ok(count) = stream.read(&mut piece) {
                if count == 0 {
                    break;
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = most.saturating_sub(kept.len());
                kept.extend_from_slice(&piece[..count.min(room)]);
            }
            drop(ended);
        });
        Self { bytes, finished }
    }

    fn take(self, patience: Instant) -> String {
        let left = patience.saturating_duration_since(Instant::now());
        // The reader drops its end when the stream ends; nothing is ever sent.
        let (Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout)) =
            self.finished.recv_timeout(left);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Answer {
        Question::new("/bin/sh", ["-c", script], limit).ask().unwrap()
    }

    const AMPLE: Duration = Duration::from_secs(20);

    #[test]
    fn both_streams_and_the_exit_code_come_back() {
        let answer = shell("echo out; echo err >&2; exit 3", AMPLE);
        assert_eq!(answer, Answer { ended: Ended::Code(3), stdout: "out\n".into(), stderr: "err\n".into() });
        assert_eq!(answer.success(), Err("it ended with code 3: err".into()));
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_everything_it_started() {
        // The grandchild writes its id; once the group is killed no such process may be left.
        let answer = shell("sleep 600 & echo $!; wait", Duration::from_millis(300));
        assert_eq!(answer.ended, Ended::TimedOut);
        let grandchild = answer.stdout.trim();
        let state = || std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        let deadline = Instant::now() + AMPLE;
        // It is gone, or a zombie that whoever inherited it has yet to collect.
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(Instant::now() < deadline, "process {grandchild} is still there");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_grandchild_that_keeps_the_stream_open_does_not_keep_us() {
        let answer = shell("setsid sleep 2 & echo done", AMPLE);
        assert_eq!((answer.ended, answer.stdout.as_str()), (Ended::Code(0), "done\n"));
    }

    #[test]
    fn output_without_end_is_cut_and_does_not_block_the_program() {
        let answer = shell("head -c 1000000 /dev/zero; echo end >&2", AMPLE);
        assert_eq!(answer.ended, Ended::Code(0));
        assert_eq!(answer.stdout.len(), KEPT_BYTES);
        assert_eq!(answer.stderr, "end\n");
    }

    #[test]
    fn nothing_can_be_typed_into_it() {
        assert_eq!(shell("cat", AMPLE).ended, Ended::Code(0));
    }

    #[test]
    fn a_signal_is_named() {
        assert_eq!(shell("kill -TERM $$", AMPLE).ended, Ended::Signal(libc::SIGTERM));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_that_names_it() {
        let error = Question::new("/nowhere/nsys", ["--version"], AMPLE).ask().unwrap_err();
        assert_eq!(error.to_string(), "cannot start /nowhere/nsys: No such file or directory (os error 2)");
    }

    #[test]
    fn it_starts_in_the_folder_asked_for() {
        let answer = Question::new("/bin/sh", ["-c", "pwd"], AMPLE).within(Path::new("/")).ask().unwrap();
        assert_eq!(answer.stdout, "/\n");
    }
}
