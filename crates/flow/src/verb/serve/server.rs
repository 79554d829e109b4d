//! A server while it is measured: started or found, ready, recorded, and stopped.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use collect::process::{Interrupt, Limits, MOST_LOG, Process, ProcessOutcome, stderr_log};
use collect::run::RunFolder;
use collect::{CollectError, Command};
use load::{ServedModel, Server};
use types::UserError;

use super::engine::{Prepared, ServingEngine, address};
use super::{Place, ServeRequest};

/// The name of its logs.
const LOG: &str = "server";
/// Where an engine that we start puts its traces, in the run folder.
const TRACES: &str = "trace";
/// How long a profiler may take to start, and to write its trace.
const START: Duration = Duration::from_secs(60);
const WRITE: Duration = Duration::from_secs(600);
/// How long a server may take to end by itself.
const GRACE: Duration = Duration::from_secs(20);
/// A trace that has not grown for so long is whole.
const QUIET: Duration = Duration::from_millis(500);

/// A server.
pub(super) struct RunningServer {
    pub(super) address: Server,
    /// What runs it; absent for one that was there before.
    process: Option<Process>,
    engine: Option<ServingEngine>,
    traces: Option<PathBuf>,
}

impl RunningServer {
    /// Starts the server of a request, or takes the one it names.
    pub(super) fn start(folder: &mut RunFolder, request: &ServeRequest) -> Result<Self, UserError> {
        let (words, url) = match &request.place {
            Place::Url { url, traces } => {
                let address = server(url, request)?;
                return Ok(Self { address, process: None, engine: None, traces: traces.clone() });
            }
            Place::Command { words, url } => (words, url),
        };
        let engine = ServingEngine::of(words);
        let traces = std::path::absolute(folder.path()).unwrap_or_else(|_| folder.path().to_owned()).join(TRACES);
        let prepared = match engine.filter(|_| request.window > 0) {
            Some(engine) => engine.prepared(words, &traces),
            None => Prepared { words: words.clone(), variables: Vec::new(), traces: None },
        };
        let address = server(&url.clone().unwrap_or_else(|| address(words)), request)?;
        let command = Command::of_words(&prepared.words).ok_or_else(|| {
            UserError::usage("no server command").hint("put it last: llm-perf serve -- vllm serve MODEL")
        })?;
        let command = folder.log_command(LOG, command.with_variables(prepared.variables))?;
        Ok(Self { address, process: Some(Process::start(&command)?), engine, traces: prepared.traces })
    }

    /// Waits until it answers.
    pub(super) fn wait_until_ready(
        &self,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<ServedModel, load::LoadError> {
        let found = load::wait_until_ready(&self.address, limit, &mut || !self.has_ended() && !stop());
        found.map_err(|error| match error {
            load::LoadError::Exited { server, last } if !self.has_ended() => load::LoadError::Stopped { server, last },
            error => error,
        })
    }

    /// Whether it runs on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.process.is_some() || self.address.is_loopback()
    }

    /// Whether its process is gone.
    pub(super) fn has_ended(&self) -> bool {
        self.process.as_ref().is_some_and(Process::has_ended)
    }

    /// Starts to record; why it cannot, otherwise.
    pub(super) fn open_window(&mut self) -> Result<Window, String> {
        if self.engine.is_none() {
            self.engine = self.asked();
        }
        let Some(engine) = self.engine else {
            return Err("kernels were not recorded: the server is neither vLLM nor SGLang".to_owned());
        };
        let Some(traces) = self.traces.clone() else {
            return Err(
                "kernels were not recorded: it is not known where the server writes its traces; pass `--traces DIR`, \
                        the folder of its torch profiler"
                    .to_owned(),
            );
        };
        let since = SystemTime::now();
        let body = engine.start(Some(&traces));
        match load::post(&self.address, "/start_profile", &body, START) {
            Ok(answer) if answer.status == 200 => Ok(Window { traces, since }),
            Ok(answer) => {
                Err(format!("kernels were not recorded: /start_profile answers with HTTP status {}", answer.status))
            }
            Err(error) => Err(format!("kernels were not recorded: {error}")),
        }
    }

    /// Stops recording and waits for the files.
    pub(super) fn close_window(&self, window: &Window) -> Result<Vec<PathBuf>, String> {
        let answer = load::post(&self.address, "/stop_profile", "{}", WRITE);
        match answer {
            Ok(answer) if answer.status == 200 => {}
            Ok(answer) => return Err(format!("/stop_profile answers with HTTP status {}", answer.status)),
            Err(error) => return Err(error.to_string()),
        }
        let files = window.files();
        if files.is_empty() {
            Err(format!("the server wrote no trace into {}", window.traces.display()))
        } else {
            Ok(files)
        }
    }

    /// The engine of a server that was there before: each has a path that the other has not.
    fn asked(&self) -> Option<ServingEngine> {
        let answers = |path| load::get_text(&self.address, path, START).is_ok_and(|answer| answer.status == 200);
        match (answers("/get_server_info"), answers("/version")) {
            (true, _) => Some(ServingEngine::Sglang),
            (false, true) => Some(ServingEngine::Vllm),
            (false, false) => None,
        }
    }

    /// Ends what was started, and keeps what it printed.
    pub(super) fn stop(self, folder: &mut RunFolder) -> Result<Option<ProcessOutcome>, CollectError> {
        let Some(process) = self.process else { return Ok(None) };
        let limits = Limits { grace: GRACE, ..Limits::default() };
        let outcome = process.wait(&limits, Interrupt::Asked(&|| true))?;
        folder.adopt_logs(LOG, Some(MOST_LOG))?;
        Ok(Some(outcome))
    }
}

/// A server at an address, with the key that it asks for.
fn server(url: &str, request: &ServeRequest) -> Result<Server, UserError> {
    let server = Server::new(url)?;
    Ok(match &request.key {
        Some(key) => server.with_key(key)?,
        None => server,
    })
}

/// Where the log of a server is, for messages.
pub(super) fn log() -> String {
    stderr_log(LOG)
}

/// A part of the load that is recorded.
pub(super) struct Window {
    traces: PathBuf,
    since: SystemTime,
}

impl Window {
    /// The traces of it, once they no longer grow.
    fn files(&self) -> Vec<PathBuf> {
        let start = Instant::now();
        let mut before = Vec::new();
        loop {
            let now = self.written();
            if (!now.is_empty() && now == before) || start.elapsed() > WRITE {
                return now.into_iter().map(|(path, _)| path).collect();
            }
            if now.is_empty() && start.elapsed() > START {
                return Vec::new();
            }
            before = now;
            std::thread::sleep(QUIET);
        }
    }

    /// Traces that are newer than the window, with their sizes.
    fn written(&self) -> Vec<(PathBuf, u64)> {
        let entries = std::fs::read_dir(&self.traces).into_iter().flatten().filter_map(Result::ok);
        let mut files: Vec<_> = entries
            .filter(|entry| is_trace(&entry.path()))
            .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
            .filter(|(_, metadata)| metadata.modified().is_ok_and(|at| at >= self.since))
            .map(|(path, metadata)| (path, metadata.len()))
            .collect();
        files.sort();
        files
    }
}

fn is_trace(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with(".json") || name.ends_with(".json.gz")
}
