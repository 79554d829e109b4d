//! A command while it runs: what it prints is passed on, and it is ended when the user wants it to be.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use collect::Command;
use collect::process::{self, Ending, Interrupt, Limits, Process};
use collect::run::RunFolder;
use regex::bytes::Regex;

use types::UserError;

use super::shell;
use crate::pipeline::progress::Progress;

/// Most that is read of a stream at a time. A command that prints more than this fifty times a second is shown in part.
const PIECE: u64 = 256 << 10;

/// What is kept of a stream to find a pattern that came in two pieces.
const OVERLAP: usize = 4096;

/// When a command that does not end by itself, such as a server, is ended.
#[derive(Clone, Debug, Default)]
pub struct CommandEnd {
    /// After this time.
    pub after: Option<Duration>,
    /// When it has printed this.
    pub until: Option<Regex>,
    /// When this command, run beside it by a shell, has ended.
    pub request: Option<String>,
    /// The request starts when it has printed this; at once where absent.
    pub ready: Option<Regex>,
}

/// One stream of the command, read from the file it writes to.
struct Printed {
    path: PathBuf,
    at: u64,
    last: Vec<u8>,
}

/// Looks at a command fifty times a second.
pub(super) struct Watcher<'a> {
    end: &'a CommandEnd,
    streams: [Printed; 2],
    is_ready: bool,
    request: Option<Process>,
    /// Why it was ended.
    ended_for: Option<String>,
    problem: Option<UserError>,
    request_command: Option<Command>,
}

impl<'a> Watcher<'a> {
    /// For the run whose output goes to the logs of that name.
    pub(super) fn new(folder: &mut RunFolder, name: &str, end: &'a CommandEnd) -> Result<Self, UserError> {
        let stream = |log: String| Printed { path: folder.path().join(log), at: 0, last: Vec::new() };
        let streams = [stream(process::stdout_log(name)), stream(process::stderr_log(name))];
        let request =
            end.request.as_ref().map(|request| folder.log_command(&format!("{name}-request"), shell(request)));
        Ok(Self {
            end,
            streams,
            is_ready: end.ready.is_none(),
            request: None,
            ended_for: None,
            problem: None,
            request_command: request.transpose()?,
        })
    }

    /// One look: shows what is new, and says whether the command is to be ended.
    fn look(&mut self, show: &mut dyn FnMut(Progress<'_>)) -> bool {
        for stream in &mut self.streams {
            let Some(new) = stream.read() else { continue };
            show(Progress::Output(&new));
            stream.last.extend_from_slice(&new);
            let matches =
                |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(&stream.last));
            self.is_ready |= matches(&self.end.ready);
            if matches(&self.end.until) && self.ended_for.is_none() {
                self.ended_for = self.end.until.as_ref().map(|pattern| format!("--until '{pattern}'"));
            }
            stream.last.drain(..stream.last.len().saturating_sub(OVERLAP));
        }
        if self.is_ready
            && let Some(command) = self.request_command.take()
        {
            match Process::start(&command) {
                Ok(process) => self.request = Some(process),
                Err(error) => self.problem = Some(error),
            }
        }
        if self.request.as_ref().is_some_and(Process::has_ended) {
            self.ended_for.get_or_insert_with(|| "--request".to_owned());
        }
        self.ended_for.is_some() || self.problem.is_some()
    }

    /// Runs the command, watched, to its end.
    pub(super) fn run(
        mut self,
        folder: &mut RunFolder,
        name: &str,
        command: Command,
        limits: &Limits,
        show: &mut dyn FnMut(Progress<'_>),
        stop: &dyn Fn() -> bool,
    ) -> Result<WatchedRun, UserError> {
        let outcome = {
            let both = RefCell::new((&mut self, show));
            let ended = || {
                let (watcher, show) = &mut *both.borrow_mut();
                watcher.look(&mut **show) || stop()
            };
            let outcome = process::run(folder, name, command, limits, Interrupt::Asked(&ended));
            // What it printed between the last look and its end.
            let (watcher, show) = both.into_inner();
            for stream in &mut watcher.streams {
                while let Some(new) = stream.read() {
                    show(Progress::Output(&new));
                }
            }
            outcome
        };
        let mut missing = Vec::new();
        if let Some(request) = self.request.take() {
            if !request.has_ended() {
                request.kill();
            }
            let ending = request.wait(&Limits::default(), Interrupt::Ignored)?.ending;
            folder.adopt_logs(&format!("{name}-request"), Some(process::MOST_LOG))?;
            if !ending.is_success() {
                missing.push(format!("the request {ending}; see logs/{name}-request.stderr"));
            }
        } else if self.request_command.is_some() {
            missing.push("the request was not sent: the command ended before it was ready".to_owned());
        }
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let outcome = outcome?;
        let ended_for = match outcome.ending {
            Ending::OutOfTime => self.end.after.map(|time| format!("--for {}s", time.as_secs_f64())),
            Ending::Interrupted => self.ended_for,
            _ => None,
        };
        Ok(WatchedRun { outcome, ended_for, missing })
    }
}

/// A command that was watched to its end.
pub(super) struct WatchedRun {
    pub(super) outcome: process::ProcessOutcome,
    /// Why it was ended as the user had asked, where it was.
    pub(super) ended_for: Option<String>,
    pub(super) missing: Vec<String>,
}

impl Printed {
    /// What is new, where something is.
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.at)).ok()?;
        let mut new = Vec::new();
        file.take(PIECE).read_to_end(&mut new).ok()?;
        self.at += new.len() as u64;
        (!new.is_empty()).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use collect::run::RunRequest;

    use super::*;

    fn watched(script: &str, end: &CommandEnd) -> (WatchedRun, String) {
        let root = tempfile::tempdir().unwrap();
        let request = RunRequest { out: Some(root.path().join("run")), ..RunRequest::new("profile", Vec::new()) };
        let mut folder = RunFolder::create(request).unwrap();
        let mut shown = Vec::new();
        let mut show = |progress: Progress<'_>| {
            if let Progress::Output(bytes) = progress {
                shown.extend_from_slice(bytes);
            }
        };
        let limits = Limits { time: end.after, ..Limits::default() };
        let watcher = Watcher::new(&mut folder, "command-0", end).unwrap();
        let run = watcher.run(&mut folder, "command-0", shell(script), &limits, &mut show, &|| false).unwrap();
        (run, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn what_a_command_prints_is_shown_to_the_last_byte() {
        let (run, shown) = watched("echo one; sleep 0.05; printf two", &CommandEnd::default());
        assert!(run.outcome.succeeded() && run.missing.is_empty() && run.ended_for.is_none());
        assert_eq!(shown, "one\ntwo");
    }

    #[test]
    fn a_server_is_ended_by_time_by_what_it_prints_and_by_a_request() {
        let server = "echo listening; sleep 600";
        let after = CommandEnd { after: Some(Duration::from_millis(100)), ..CommandEnd::default() };
        assert_eq!(watched(server, &after).0.ended_for.as_deref(), Some("--for 0.1s"));
        let until = CommandEnd { until: Some(Regex::new("list[a-z]+g").unwrap()), ..CommandEnd::default() };
        assert_eq!(watched(server, &until).0.ended_for.as_deref(), Some("--until 'list[a-z]+g'"));
        let ready = Some(Regex::new("listening").unwrap());
        let request = |command: &str| CommandEnd {
            request: Some(command.to_owned()),
            ready: ready.clone(),
            ..CommandEnd::default()
        };
        let (run, _) = watched(server, &request("true"));
        assert_eq!((run.ended_for.as_deref(), run.missing), (Some("--request"), Vec::new()));
        let (run, _) = watched(server, &request("exit 3"));
        assert_eq!(run.missing, ["the request exited with code 3; see logs/command-0-request.stderr"]);
        let (run, _) = watched("true", &request("true"));
        assert_eq!(run.missing, ["the request was not sent: the command ended before it was ready"]);
    }
}
