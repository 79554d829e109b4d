//! `llm-perf serve`: a load on a server, from every request to its kernels.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use config::Overrides;
use flow::StopRequest;
use flow::import::{NcuPreset, RegionChoice};
use flow::serve::{self, Arrivals, Lengths, LoadFile, Place, Prompts, ServeRequest};
use types::{Exit, Objective, UserError};

use crate::context::Context;
use crate::load::{LoadArguments, REQUESTS};
use crate::resolution::{self, ModelFlags};

/// How long a server that is started here may take to answer, and one that is said to run.
const STARTING: Duration = Duration::from_secs(1200);
const RUNNING: Duration = Duration::from_secs(10);

/// Send a load to a server and explain every request, down to its kernels
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Server that is running already, such as http://localhost:8000; with a command, where it listens [default: its --port]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    load: LoadArguments,
    /// Requests to send [default: 100, or all of --replay]
    #[arg(long, value_name = "N")]
    requests: Option<usize>,
    /// Prompts instead of random tokens: a file with one per line, JSONL with `prompt`, or ShareGPT JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "pages"])]
    prompts: Option<PathBuf>,
    /// Send built-in page images through chat completions, for models that read documents
    #[arg(long, conflicts_with = "replay")]
    pages: bool,
    /// Requests before the load, not counted
    #[arg(long, value_name = "N", default_value_t = 8)]
    warmup: usize,
    /// Requests sent once more while the server's profiler records; 0 records nothing
    #[arg(long, value_name = "N", default_value_t = 32)]
    window: usize,
    /// Latencies that are acceptable, such as ttft=200ms,itl=30ms (also tpot, e2el): gives the goodput
    #[arg(long, value_name = "LIST")]
    slo: Option<Objective>,
    /// Name of the model in requests [default: the first that the server lists]
    #[arg(long, value_name = "NAME")]
    served_model: Option<String>,
    /// Folder that a running server's torch profiler writes to
    #[arg(long, value_name = "DIR", requires = "url")]
    traces: Option<PathBuf>,
    /// Environment variable with the server's API key
    #[arg(long, value_name = "VARIABLE")]
    key_from: Option<String>,
    /// Let outputs end where the model ends them
    #[arg(long)]
    stop_early: bool,
    /// Largest token id of random prompts
    #[arg(long, value_name = "ID", default_value_t = 20_000)]
    vocabulary: u32,
    /// Seconds that a request may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "600")]
    timeout: Duration,
    /// Seconds that the server may take to answer [default: 1200, or 10 if it is running already]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    ready: Option<Duration>,
    /// Model that is served, for MFU and roofline times [default: read from the server command]
    #[arg(long, value_name = "NAME|PATH")]
    model: Option<OsString>,
    /// Device it runs on [default: read from the trace]
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "SERVER COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let place = match (&arguments.url, arguments.command.as_slice()) {
        (_, [_, ..]) => Place::Command { words: arguments.command.clone(), url: arguments.url.clone() },
        (Some(url), []) => Place::Url { url: url.clone(), traces: arguments.traces.clone() },
        (None, []) => {
            return Err(UserError::usage("no server")
                .hint("put its command last: llm-perf serve -- vllm serve MODEL")
                .hint("or name one that runs: llm-perf serve --url http://localhost:8000"));
        }
    };
    let served = serve::local_model(&arguments.command).map(PathBuf::into_os_string);
    let model = arguments.model.clone().or(served);
    let flags = ModelFlags { model: model.as_deref(), workload: None, hardware: arguments.hardware.as_deref() };
    let config = resolution::compose(&flags.overrides(&Overrides::default()), context)?;
    let loaded = model.as_deref().map(|named| resolution::model::load(&config, Some(named)));
    let loaded = match loaded {
        // A model that nobody asked for by name may be one that is not known.
        Some(Err(error)) if arguments.model.is_none() => {
            context.messages.warning(format!("the served model is not modelled: {error}"));
            None
        }
        loaded => loaded.transpose()?,
    };
    let subject = flow::import::NamedSubject {
        name: None,
        workload: resolution::workload::request(&config, false)?,
        model: loaded,
        hardware: resolution::hardware(&config)?,
        config_dir: context.config_dir.clone(),
    };
    let regions = RegionChoice::new(&config.get::<NcuPreset>("pipeline.ncu")?)
        .map_err(|(key, error)| UserError::usage(format!("pipeline.ncu.ncu_cli.{key}: {error}")))?;
    let is_running = matches!(place, Place::Url { .. });
    let (arrivals, prompts, requests) = load(arguments)?;
    let request = ServeRequest {
        place,
        key: arguments.key_from.as_deref().map(key).transpose()?,
        served_model: arguments.served_model.clone(),
        arrivals,
        prompts,
        requests,
        warmup: arguments.warmup,
        window: arguments.window.min(requests),
        vocabulary: FIRST_TOKEN..arguments.vocabulary.saturating_add(1).max(FIRST_TOKEN + 1),
        ignore_eos: !arguments.stop_early,
        timeout: arguments.timeout,
        ready: arguments.ready.unwrap_or(if is_running { RUNNING } else { STARTING }),
        seed: arguments.load.seed(),
        objective: arguments.slo,
        subject,
        regions,
    };
    let run = resolution::run_request("serve", &config, &Overrides::default(), arguments.out.as_deref())?;
    let interrupt = StopRequest::catch();
    let kept = config.only_set_below("pipeline").to_yaml();
    let stop = || interrupt.is_set();
    let served = context.progress(|display| {
        serve::serve(&request, run, &kept, &mut |progress| display.show(&progress), &stop)
    })?;
    context.messages.print_answer(arguments.json, &served.value, || serve::terminal(&served.value))?;
    Ok(context.messages.finish(&served.missing, &[("report", served.folder.join("report.html"))]))
}

/// Smaller ids are often of special tokens.
const FIRST_TOKEN: u32 = 1_000;

/// When requests are due, what they ask, and how many there are.
fn load(arguments: &Arguments) -> Result<(Arrivals, Prompts, usize), UserError> {
    let (input, output) = (arguments.load.input(), arguments.load.output());
    if let Some(path) = &arguments.load.replay {
        let LoadFile { arrivals, prompts, requests, .. } = serve::replay(path)?;
        return Ok((arrivals, prompts, arguments.requests.map_or(requests, |most| most.min(requests))));
    }
    let requests = arguments.requests.unwrap_or(REQUESTS);
    let arrivals = arguments.load.arrivals(requests)?;
    let most = match &output {
        Lengths::Fixed(most) | Lengths::Uniform(_, most) => *most,
        Lengths::Listed(lengths) => lengths.iter().copied().max().unwrap_or(1),
    };
    let prompts = match &arguments.prompts {
        Some(path) => serve::prompts(path, most)?,
        None if arguments.pages => serve::pages(most)?,
        None => Prompts::Random { input, output },
    };
    Ok((arrivals, prompts, requests))
}

fn key(variable: &str) -> Result<String, UserError> {
    std::env::var(variable).map_err(|_| UserError::usage(format!("the variable {variable} is not set, or not UTF-8")))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches('s').parse::<f64>().ok().filter(|seconds| (0.001..1e7).contains(seconds));
    number.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds".to_owned())
}
