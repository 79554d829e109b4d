//! A server while it is measured: started or found, ready, recorded, and stopped.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use collect::Command;
use collect::process::{Interrupt, Limits, MOST_LOG, Process, ProcessOutcome, listening_process, stderr_log};
use collect::run::RunFolder;
use collect::tool::inject::{self, AttachError, AttachRequest, Recording, WaitingProcesses};
use load::Server;
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
/// A window ends with its load; this is the longest that the collector records.
const LONGEST_WINDOW: Duration = Duration::from_secs(3600);
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
    /// Where the engine's own profiler writes; a server without one is recorded by our collector.
    traces: Option<PathBuf>,
    /// The folder of traces in the run folder.
    recordings: PathBuf,
}

impl RunningServer {
    /// Starts the server of a request, or takes the one it names.
    pub(super) fn start(folder: &mut RunFolder, request: &ServeRequest) -> Result<Self, UserError> {
        let recordings = std::path::absolute(folder.path()).unwrap_or_else(|_| folder.path().to_owned()).join(TRACES);
        let (words, url) = match &request.place {
            Place::Url { url, traces } => {
                let address = server(url, request)?;
                return Ok(Self { address, process: None, engine: None, traces: traces.clone(), recordings });
            }
            Place::Command { words, url } => (words, url),
        };
        let engine = ServingEngine::of(words);
        let bare = |variables| Prepared { words: words.clone(), variables, traces: None };
        let prepared = match engine {
            _ if request.window == 0 => bare(Vec::new()),
            Some(engine) => engine.prepared(words, &recordings),
            None if inject::Injection::is_built_in() => bare(inject::waiting_variables()?),
            None => bare(Vec::new()),
        };
        let address = server(&url.clone().unwrap_or_else(|| address(words)), request)?;
        let command = Command::of_words(&prepared.words).ok_or_else(|| {
            UserError::usage("no server command").hint("put it last: llm-perf serve -- vllm serve MODEL")
        })?;
        let command = folder.log_command(LOG, command.with_variables(prepared.variables))?;
        Ok(Self { address, process: Some(Process::start(&command)?), engine, traces: prepared.traces, recordings })
    }

    /// Waits until it answers.
    pub(super) fn wait_until_ready(
        &self,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<String>, load::LoadError> {
        let found = load::wait_until_ready(&self.address, limit, &mut || !self.has_ended() && !stop());
        found.map_err(|error| match error {
            load::LoadError::Exited { server, last } if !self.has_ended() => load::LoadError::Stopped { server, last },
            error => error,
        })
    }

    /// Whether it runs on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.process.is_some() || self.address.local_port().is_some()
    }

    /// Whether its process is gone.
    pub(super) fn has_ended(&self) -> bool {
        self.process.as_ref().is_some_and(Process::has_ended)
    }

    /// Starts to record; why it cannot, otherwise.
    pub(super) fn open_window(&mut self) -> Result<Window, String> {
        if self.process.is_none() {
            self.engine = self.asked();
        }
        let opened = match (self.engine, &self.traces) {
            (Some(engine), Some(traces)) => self.open_profiler(engine, traces),
            _ => self.open_collector(),
        };
        opened.map_err(|why| format!("kernels were not recorded: {why}"))
    }

    fn open_profiler(&self, engine: ServingEngine, traces: &Path) -> Result<Window, String> {
        let since = SystemTime::now();
        match load::post(&self.address, "/start_profile", &engine.start(Some(traces)), START) {
            Ok(answer) if answer.status == 200 => Ok(Window::Engine { traces: traces.to_owned(), since }),
            Ok(answer) => Err(format!("/start_profile answers with HTTP status {}", answer.status)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Records with our collector, which waits in a server that we started, or that `llm-perf run` did.
    fn open_collector(&self) -> Result<Window, String> {
        let started = self.process.as_ref().map(Process::id);
        let process = started.or_else(|| listening_process(self.address.local_port()?));
        let begin = |process: u32| {
            let request = AttachRequest { target: process.to_string(), duration: LONGEST_WINDOW, graphs_only: false };
            WaitingProcesses::find(&request.target)?.begin(&request)
        };
        match process.ok_or(AttachError::NoProcess(String::new())).and_then(begin) {
            Ok(recording) => Ok(Window::Collector(recording)),
            Err(_) if self.engine.is_some() => Err("it is not known where the server writes its traces; pass \
                 `--traces DIR`, the folder of its torch profiler"
                .to_owned()),
            Err(AttachError::NoLibrary { .. }) if started.is_some() => {
                Err("no process of the server uses CUDA".to_owned())
            }
            Err(AttachError::NoLibrary { .. } | AttachError::NoProcess(_)) => {
                Err("the server is neither vLLM nor SGLang, and the collector does not wait in it; start it with \
                     `llm-perf serve -- COMMAND`, or with `llm-perf run -- COMMAND` on this machine"
                    .to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Stops recording and waits for the files; tells which those are and what is missing.
    pub(super) fn close_window(&self, window: Window) -> (Vec<PathBuf>, Vec<String>) {
        let (traces, since) = match window {
            Window::Engine { traces, since } => (traces, since),
            Window::Collector(recording) => {
                return match std::fs::create_dir_all(&self.recordings) {
                    Ok(()) => recording.finish(&self.recordings, &|| true),
                    Err(error) => {
                        (Vec::new(), vec![format!("cannot create folder {}: {error}", self.recordings.display())])
                    }
                };
            }
        };
        let nothing = |why: String| (Vec::new(), vec![why]);
        match load::post(&self.address, "/stop_profile", "{}", WRITE) {
            Ok(answer) if answer.status == 200 => {}
            Ok(answer) => return nothing(format!("/stop_profile answers with HTTP status {}", answer.status)),
            Err(error) => return nothing(error.to_string()),
        }
        let files = files(&traces, since);
        let missing = files.is_empty().then(|| format!("the server wrote no trace into {}", traces.display()));
        (files, missing.into_iter().collect())
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
    pub(super) fn stop(self, folder: &mut RunFolder) -> Result<Option<ProcessOutcome>, UserError> {
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
pub(super) enum Window {
    /// By the engine's own profiler, which writes into a folder.
    Engine { traces: PathBuf, since: SystemTime },
    /// By our collector.
    Collector(Recording),
}

/// The traces of a window, once they no longer grow.
fn files(traces: &Path, since: SystemTime) -> Vec<PathBuf> {
    let start = Instant::now();
    let mut before = Vec::new();
    loop {
        let now = written(traces, since);
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
fn written(traces: &Path, since: SystemTime) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(traces).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<_> = entries
        .filter(|entry| is_trace(&entry.path()))
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .filter(|(_, metadata)| metadata.modified().is_ok_and(|at| at >= since))
        .map(|(path, metadata)| (path, metadata.len()))
        .collect();
    files.sort();
    files
}

fn is_trace(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with(".json") || name.ends_with(".json.gz")
}
