//! `serve`: a load on a server, measured at its client and joined to the steps and kernels of the server.
//!
//! The load runs twice: plain, which the latencies are of, and once more in part while the server is recorded, by its own profiler or
//! by our collector, which the parts of every request are of. The report states by how much recording slowed the second.

mod engine;
mod pages;
mod server;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use analysis::{Evidence, JoinedRequests, Subject};
use collect::environment::EnergyMeter;
use collect::run::RunFolder;
use load::{ClientDoubt, Outcome, Plan, Progress as LoadProgress};
use report::pages::run::{Assumptions, Setting};
use types::{
    Environment, Exit, Hardware, LoadEnergy, Metrics, Objective, RequestClock, RequestLog, RequestRecord, RunHeader,
    UserError,
};

pub use crate::pipeline::load_file::{LoadFile, prompts, replay};
pub use crate::pipeline::server_command::local_model;
pub use load::{Arrivals, Lengths, Prompts};
pub use pages::pages;

use crate::RunRequest;
use crate::pipeline::device::machine;
use crate::pipeline::folder::bundle::{self, Bundle};
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::model::analytic;
use crate::pipeline::progress::Progress;
use crate::pipeline::requests::Requests;
use crate::pipeline::subject::NamedSubject;
use crate::pipeline::subject::imported::{self, Imported};
use crate::pipeline::trace::TraceFiles;
use crate::pipeline::trace::regions::RegionChoice;
use server::RunningServer;

/// Requests that run at a time while the server warms up.
const WARM_UP_TOGETHER: usize = 4;
/// Lines of the server's output that an error quotes.
const LAST_LINES: usize = 5;

/// What to measure.
#[derive(Debug)]
pub struct ServeRequest {
    /// The server.
    pub place: Place,
    /// A key that the server asks for.
    pub key: Option<String>,
    /// The name of the model in requests; otherwise the first that the server names.
    pub served_model: Option<String>,
    /// When requests are due.
    pub arrivals: Arrivals,
    /// What they ask.
    pub prompts: Prompts,
    /// How many are sent.
    pub requests: usize,
    /// Sent before, and not counted.
    pub warmup: usize,
    /// Sent once more while the server is recorded.
    pub window: usize,
    /// Token ids that random prompts are drawn from.
    pub vocabulary: std::ops::Range<u32>,
    /// Whether outputs have exactly the length that is asked for.
    pub ignore_eos: bool,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long the server may take to get ready.
    pub ready: Duration,
    /// Decides everything that is random.
    pub seed: u64,
    /// The latencies that are acceptable.
    pub objective: Option<Objective>,
    /// Model and device, as far as the user names them.
    pub subject: NamedSubject,
    /// Which regions are shown.
    pub regions: RegionChoice,
}

/// Where the server is.
#[derive(Debug)]
pub enum Place {
    /// A command starts it.
    Command {
        /// The command.
        words: Vec<OsString>,
        /// Where it listens; otherwise as the command says.
        url: Option<String>,
    },
    /// It is there already.
    Url {
        /// Its address.
        url: String,
        /// Where its profiler writes traces, on this machine.
        traces: Option<PathBuf>,
    },
}

/// Sends the load, records a part of it, and writes everything into a run folder.
pub fn serve(
    request: &ServeRequest,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<EndedRun<Metrics>, UserError> {
    progress(Progress::Doing("inspecting the machine"));
    let environment = machine::capture(request.subject.config_dir.as_deref())?;
    let named = request.subject.named_hardware()?;
    let run_request = RunRequest { model: request.subject.model_id(), ..run_request };
    run(run_request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        folder.write_json("env.json", &environment)?;
        folder.end_step("prepare")?;
        let measured = measure(folder, request, progress, stop)?;
        folder.end_step("measure")?;
        fill(folder, request, &environment, named.as_ref(), measured, progress)
    })
}

/// What a load gave.
struct Measured {
    /// The model's name in requests.
    model: String,
    plain: Outcome,
    energy: Option<LoadEnergy>,
    /// The part that was recorded, and its traces.
    window: Option<(Outcome, Vec<PathBuf>)>,
    missing: Vec<String>,
}

/// Starts the server, sends the load and stops what was started, whatever comes.
fn measure(
    folder: &mut RunFolder,
    request: &ServeRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Measured, UserError> {
    let mut server = RunningServer::start(folder, request)?;
    let loads = loads(&mut server, request, progress, stop);
    if matches!(request.place, Place::Command { .. }) {
        progress(Progress::Doing("stopping the server"));
    }
    let died = server.has_ended();
    let ended = server.stop(folder)?;
    let log = folder.path().join(server::log());
    let mut measured = loads.map_err(|error| match &ended {
        Some(outcome) if error.exit == Exit::Failed => {
            error.quoting(outcome.last_lines(LAST_LINES)).hint(format!("the server's output is in {}", log.display()))
        }
        _ => error,
    })?;
    if let Some(outcome) = ended.filter(|_| died) {
        measured.missing.push(format!("the server {} under the load; see {}", outcome.ending, server::log()));
    }
    for (name, outcome) in [
        ("requests.jsonl", Some(&measured.plain)),
        ("recorded_requests.jsonl", measured.window.as_ref().map(|(outcome, _)| outcome)),
    ] {
        if let Some(outcome) = outcome {
            folder.write_file(name, on_unix_time(outcome).to_json_lines().as_bytes())?;
        }
    }
    Ok(measured)
}

fn loads(
    server: &mut RunningServer,
    request: &ServeRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Measured, UserError> {
    progress(Progress::Doing("waiting for the server"));
    let served = server.wait_until_ready(request.ready, stop)?;
    let model = request.served_model.clone().or(served).ok_or_else(|| {
        UserError::usage(format!("{} names no model", server.address)).hint("pass --served-model NAME")
    })?;
    let plan = Plan {
        vocabulary: request.vocabulary.clone(),
        ignore_eos: request.ignore_eos,
        timeout: request.timeout,
        seed: request.seed,
        ..Plan::new(server.address.clone(), &model, request.arrivals.clone(), request.prompts.clone(), request.requests)
    };
    if request.warmup > 0 {
        let arrivals = Arrivals::Closed { concurrency: WARM_UP_TOGETHER.min(request.warmup) };
        let warm_up = Plan { arrivals, requests: request.warmup, seed: request.seed ^ u64::MAX, ..plan.clone() };
        let outcome = send(&warm_up, "warming up", progress, stop)?;
        if !stop() {
            check(&outcome)?;
        }
    }
    let meter = server.is_here().then(EnergyMeter::start).flatten();
    let plain = send(&plan, "sending the load", progress, stop)?;
    let energy = meter.and_then(|meter| meter.taken());
    let mut missing = doubts(&plain, "");
    let mut window = None;
    if request.window > 0 && !stop() && !server.has_ended() {
        match recorded(server, &plan, request, progress, stop)? {
            Ok((outcome, files, more)) => {
                missing.extend(more.into_iter().chain(doubts(&outcome, " while the server was recorded")));
                window = (!files.is_empty()).then_some((outcome, files));
            }
            Err(reason) => missing.push(reason),
        }
    }
    if stop() {
        missing.push("interrupted: requests in flight were dropped".to_owned());
    }
    Ok(Measured { model, plain, energy, window, missing })
}

/// A load that was recorded, its traces, and what they lack.
type Recorded = (Outcome, Vec<PathBuf>, Vec<String>);

/// The same load with other prompts of the same lengths, so that no cache knows them, while the server is recorded.
fn recorded(
    server: &mut RunningServer,
    plan: &Plan,
    request: &ServeRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Result<Recorded, String>, UserError> {
    let window = match server.open_window() {
        Ok(window) => window,
        Err(reason) => return Ok(Err(reason)),
    };
    let plan = Plan { requests: request.window, seed: plan.seed.wrapping_add(1), ..plan.clone() };
    let outcome = send(&plan, "sending the load once more, recorded", progress, stop)?;
    progress(Progress::Doing("waiting for the server to write its trace"));
    let (files, missing) = server.close_window(window);
    Ok(Ok((outcome, files, missing)))
}

/// Sends a load and reports how far it is.
fn send(
    plan: &Plan,
    what: &str,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Outcome, UserError> {
    let stopped = AtomicBool::new(false);
    let outcome = load::run(plan, &stopped, &mut |now: LoadProgress| {
        stopped.store(stop(), Ordering::Relaxed);
        let failed = if now.failed > 0 { format!(", {} failed", now.failed) } else { String::new() };
        progress(Progress::Doing(&format!("{what}: {} of {} answered{failed}", now.ended, now.planned)));
    })?;
    Ok(outcome)
}

/// A server that answers no request at all is not sent a whole load.
fn check(warm_up: &Outcome) -> Result<(), UserError> {
    let requests = &warm_up.log.requests;
    let Some(error) = requests.iter().find_map(|request| request.error.as_ref()) else { return Ok(()) };
    if requests.iter().any(RequestRecord::succeeded) {
        return Ok(());
    }
    let failed = UserError::failed(format!("every warm-up request failed: {error}"));
    let hints = [
        ("HTTP status 401", "pass `--key-from VARIABLE`, the environment variable that holds the server's API key"),
        ("ignore_eos", "pass `--stop-early`: the server does not know `ignore_eos`"),
        (
            "HTTP status 404",
            "it needs `/v1/completions` (`/v1/chat/completions` for `--pages`), and the model's name: see `--served-model`",
        ),
        ("timed out", "give requests longer with `--timeout SECONDS`"),
        ("context length", "send shorter prompts and outputs: `--input TOKENS --output TOKENS`"),
    ];
    let hint = hints.iter().find(|(sign, _)| error.contains(sign));
    Err(hint.into_iter().fold(failed, |failed, (_, hint)| failed.hint(*hint)))
}

/// What makes the figures of a load doubtful.
fn doubts(outcome: &Outcome, when: &str) -> Vec<String> {
    let of_client = outcome.doubts.iter().map(|doubt| match doubt {
        ClientDoubt::Late => "sent requests late",
        ClientDoubt::Stalled => "stalled",
        ClientDoubt::Saturated => "ran out of CPU time",
    });
    let of_client = of_client.collect::<Vec<_>>().join(" and ");
    let mut doubts = Vec::new();
    if !of_client.is_empty() {
        doubts.push(format!(
            "the client {of_client}{when}, so the latencies are not the server's alone; leave it two idle cores, or run it on another machine"
        ));
    }
    let failed: Vec<_> = outcome.log.requests.iter().filter_map(|request| request.error.as_deref()).collect();
    if let Some(first) = failed.first() {
        doubts.push(format!("{} of {} requests failed{when}: {first}", failed.len(), outcome.log.requests.len()));
    }
    let uncounted = outcome.log.requests.iter().filter(|one| one.succeeded() && one.output_tokens.is_none()).count();
    if uncounted > 0 {
        doubts.push(format!("the server did not count the tokens of {uncounted} answers{when}"));
    }
    doubts
}

/// The log on Unix time, as traces are.
fn on_unix_time(outcome: &Outcome) -> RequestLog {
    let mut log = outcome.log.clone();
    let between = outcome.clocks.epoch_ns - outcome.clocks.monotonic_ns;
    log.clock = RequestClock::Epoch;
    for request in &mut log.requests {
        request.due_ns = request.due_ns.map(|due| due + between);
        request.sent_ns = request.sent_ns.map(|sent| sent + between);
    }
    log
}

fn fill(
    folder: &mut RunFolder,
    request: &ServeRequest,
    environment: &Environment,
    named: Option<&Hardware>,
    measured: Measured,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Metrics, Vec<String>), UserError> {
    let Measured { model, plain, energy, window, mut missing } = measured;
    let plain = on_unix_time(&plain);
    let Some((outcome, files)) = window else {
        let joined = JoinedRequests::of_client(&plain, request.objective.as_ref()).with_energy(energy);
        let header = RunHeader { id: folder.id().to_owned(), engine: "server".to_owned(), ..RunHeader::default() };
        // Servers may name a model by its folder.
        let name = Path::new(&model).file_name().map(|name| name.to_string_lossy().into_owned());
        let model = request.subject.model_id().or(name);
        let subject = Subject { run: RunHeader { model, ..header }, ..Subject::default() };
        let evidence = Evidence { requests: Some(joined), missing: missing.clone(), ..Evidence::default() };
        let metrics = crate::pipeline::metrics::metrics(&subject, &evidence);
        write(folder, request, environment, &metrics, &[], None)?;
        return Ok((metrics, missing));
    };
    let mut doing = |what: &str| progress(Progress::Doing(what));
    let sources = TraceFiles::open(&files, &mut doing)?;
    let traces = sources.read(request.subject.model_id().as_deref(), &request.regions, &mut doing)?;
    doing("joining requests to steps");
    let requests = Requests {
        name: "recorded_requests.jsonl".to_owned(),
        log: on_unix_time(&outcome),
        objective: request.objective,
        plain: Some(plain),
        energy,
    };
    for file in &files {
        // What a server that was there before wrote elsewhere stays there.
        if let Ok(inside) = file.strip_prefix(std::path::absolute(folder.path()).unwrap_or_default()) {
            folder.adopt(&inside.display().to_string())?;
        }
    }
    let Imported { mut traces, metrics, hardware } =
        imported::analyse(folder.id(), traces, &request.subject, named, &request.regions, Some(&requests))?;
    missing.append(&mut traces.missing);
    analytic::write_traced(folder, &metrics, request.subject.model.as_ref(), hardware.as_ref())?;
    write(folder, request, environment, &metrics, &traces.placed, hardware.as_ref())?;
    Ok((metrics, missing))
}

fn write(
    folder: &mut RunFolder,
    request: &ServeRequest,
    environment: &Environment,
    metrics: &Metrics,
    timelines: &[crate::pipeline::trace::Placed],
    hardware: Option<&Hardware>,
) -> Result<(), UserError> {
    folder.write_json("metrics.json", metrics)?;
    let assumptions = assumptions(metrics, request, hardware);
    bundle::write(
        folder,
        &Bundle { metrics, environment, assumptions, kernels: None, operator_rows: None, timelines },
    )?;
    folder.end_step("report")?;
    Ok(())
}

fn assumptions(metrics: &Metrics, request: &ServeRequest, hardware: Option<&Hardware>) -> Assumptions {
    let of_trace = crate::pipeline::folder::assumptions::of_trace(metrics, hardware);
    let place = match &request.place {
        Place::Command { words, .. } => Setting::new("server", crate::command_line(words)),
        Place::Url { url, .. } => Setting::new("server", url),
    };
    let sent = vec![
        Setting::new("requests", request.requests),
        Setting::new("arrivals", format!("{:?}", request.arrivals)),
        Setting::new("requests before, not counted", request.warmup),
        Setting::new("requests while the server was recorded", request.window),
        Setting::new("seed", request.seed),
        Setting::new("latency", "from when a request was due to when its output arrived, at the client"),
    ];
    Assumptions { model: vec![place], repeats: sent, ..of_trace }
}

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::pages::run::import_terminal(&analysis::view::run(metrics))
}
