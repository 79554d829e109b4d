//! `llm-perf capacity`: what a server is likely to make of a load, before it is rented.

mod sweep;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, OverrideSource, Overrides};
use flow::capacity::{
    self, Backend, CapacityRequest, Disaggregate, Engine, EngineSettings, FleetSettings, PlannedLoad, Router,
    ServedRun, ServerCommand,
};
use flow::hardware;
use flow::runs;
use flow::serve::{Arrivals, Prompts};
use types::{BytesPerSecond, Exit, Objective, UserError};

use crate::context::Context;
use crate::load::{FileArrivals, LoadArguments, REQUESTS, positive, whole};
use crate::resolution::{self, ModelFlags};

/// Forecast what a server makes of a load: latencies, throughput, the highest rate, energy and price
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Configuration overrides (key=value), such as workload.parallel.tensor=2 or workload.quantisation.weights=fp8
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// Built-in model, config.json, folder with one, or GGUF file
    #[arg(long, value_name = "NAME|PATH", required_unless_present = "from")]
    model: Option<OsString>,
    /// Device it runs on [default: h200]
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// Run of `serve` whose requests, model, device and engine settings are taken, and compared with the forecast
    #[arg(long, value_name = "RUN", conflicts_with = "replay")]
    from: Option<OsString>,
    #[command(flatten)]
    load: Box<LoadArguments>,
    /// Requests to simulate, or a results file (vllm bench serve, llm-perf serve and others) whose requests are the load
    /// [default: 100, or all of --replay]
    #[arg(long, value_name = "N|FILE", value_parser = requests, allow_negative_numbers = true)]
    requests: Option<Requests>,
    /// Latencies that are acceptable, such as ttft=200ms,itl=30ms (also tpot, e2el): gives the highest load that holds them
    #[arg(long, value_name = "LIST")]
    slo: Option<Objective>,
    /// Serving engine: vllm or sglang [default: vllm]
    #[arg(long, value_name = "NAME", value_parser = engine)]
    engine: Option<Engine>,
    /// Attention kernels of the engine: flash or triton [default: flash]
    #[arg(long, value_name = "NAME", value_parser = backend)]
    attention_backend: Option<Backend>,
    /// Most requests that run at once [default: as the engine chooses on the device]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_SEQUENCES))]
    max_num_seqs: Option<u64>,
    /// Most tokens of a step [default: as the engine chooses on the device]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=MOST_TOKENS))]
    max_num_batched_tokens: Option<u64>,
    /// Blocks of the KV cache [default: what fits in memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_BLOCKS))]
    kv_blocks: Option<u64>,
    /// Tokens of a KV block [default: as the engine chooses]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=LARGEST_BLOCK))]
    block_size: Option<u64>,
    /// Servers that share the load, each with all of the model
    #[arg(long, value_name = "N", value_parser = capacity::servers, conflicts_with = "disaggregate")]
    data_parallel: Option<usize>,
    /// Servers that prefill and servers that decode, such as 1p2d; needs --kv-link
    #[arg(long, value_name = "XpYd")]
    disaggregate: Option<Disaggregate>,
    /// Bandwidth of each device between servers that prefill and that decode, such as 50GB/s
    #[arg(long, value_name = "RATE", value_parser = link)]
    kv_link: Option<BytesPerSecond>,
    /// Which server a request goes to: round-robin or least-loaded [default: round-robin]
    #[arg(long, value_name = "NAME")]
    router: Option<Router>,
    /// Price of one device for an hour, such as 3.5/h
    #[arg(long, value_name = "PRICE", value_parser = price)]
    price: Option<f64>,
    /// Power of one device, such as 700W [default: the limit of the device, where the catalogue has it]
    #[arg(long, value_name = "WATTS", value_parser = watts)]
    power: Option<f64>,
    /// Calibration of the device in a file [default: the one that `doctor --calibrate` stored]
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Sweep a setting over several values, such as max-num-seqs=64,256 or workload.parallel.tensor=1,2,4; can be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    sweep: Vec<String>,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the forecast as JSON; write nothing unless --out is given
    #[arg(long)]
    json: bool,
}

/// Bounds of the engine's settings, far beyond any server's: what is larger is a mistake.
const MOST_SEQUENCES: u64 = 1 << 20;
const MOST_TOKENS: u64 = 1 << 24;
const MOST_BLOCKS: u64 = 1 << 40;
const LARGEST_BLOCK: u64 = 1 << 16;

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let served = arguments.from.as_deref().map(served).transpose()?;
    let flags = ModelFlags {
        model: arguments.model.as_deref().or(served.as_ref().and_then(ServedRun::model)),
        workload: None,
        hardware: arguments.hardware.as_deref().or(served.as_ref().and_then(|served| served.hardware.as_deref())),
    };
    if let Some(served) = &served {
        unsaid(arguments, served, &flags)?;
    }
    let given = Overrides::typed(&arguments.overrides)?;
    refuse_lengths(&given)?;
    refuse_unshared(arguments)?;
    let typed = &given;
    let given = with_tensor_parallel(typed.clone(), served.as_ref().and_then(|served| served.server.tensor_parallel))?;
    let (config, model) = resolution::resolve_modelled(&flags, &given, context)?;
    let is_device_changed = match &served {
        Some(served) => is_device_changed(arguments, served, typed, resolution::hardware(&config)?.as_deref(), context),
        None => false,
    };
    let is_changed = is_device_changed || served.as_ref().is_some_and(|served| is_changed(arguments, &served.server));
    let load = load(arguments, served.as_ref(), None)?;
    let load = if is_changed { load.unmeasured() } else { load };
    let mut request = request(arguments, served.as_ref(), load, &config, context)?;
    // What a server measured corrects what is asked of it, not the forecast that stands beside its own measurements.
    request.steps_apply = !is_device_changed && !request.load.is_measured();
    if is_device_changed {
        request.steps = Vec::new().into();
    }
    if !arguments.sweep.is_empty() {
        let base = sweep::Base { arguments, config: &config, served: served.as_ref(), request: &request };
        return sweep::run(&base, &given, context, &model);
    }
    let run = resolution::run_request("capacity", &config, &given, arguments.out.as_deref())?;
    let found = context.progress(|display| capacity::capacity(&model, &request, &mut |now| display.show(&now)))?;
    context.messages.print_answer(arguments.json, &found, || capacity::terminal(&found))?;
    if arguments.json && arguments.out.is_none() {
        return Ok(Exit::Done);
    }
    let folder = capacity::keep(&found, &config.to_yaml(), run)?;
    Ok(context.messages.finish(&[], &[("report", folder.join(capacity::PAGE))]))
}

/// Lengths and batches come from the load; of the workload, only how the model is stored and shared counts.
fn refuse_lengths(given: &Overrides) -> Result<(), UserError> {
    const STORED: [&str; 4] = ["parallel", "quantisation", "dtype", "routing"];
    let is_read = |key: &str| STORED.iter().any(|stored| key == *stored || key.starts_with(&format!("{stored}.")));
    match given.iter().find(|one| one.key_below("workload").is_some_and(|key| !is_read(&key))) {
        Some(one) => Err(UserError::usage(format!("`{one}` has no effect on `capacity`"))
            .hint("describe the load with --input, --output, --rate and --requests")),
        None => Ok(()),
    }
}

/// Settings of several servers where there is one.
fn refuse_unshared(arguments: &Arguments) -> Result<(), UserError> {
    let sweeps = |key: &str| arguments.sweep.iter().any(|axis| axis.split('=').next() == Some(key));
    let is_apart = arguments.disaggregate.is_some() || sweeps("disaggregate");
    let is_shared = is_apart || arguments.data_parallel.is_some() || sweeps("data-parallel");
    let without_effect = [
        (arguments.kv_link.is_some() && !is_apart, "--kv-link", "--disaggregate"),
        (arguments.router.is_some() && !is_shared, "--router", "--data-parallel or --disaggregate"),
    ];
    match without_effect.into_iter().find(|(is_unused, ..)| *is_unused) {
        Some((_, option, other)) => Err(UserError::usage(format!("{option} has no effect without {other}"))),
        None => Ok(()),
    }
}

/// The server and its load.
fn request(
    arguments: &Arguments,
    served: Option<&ServedRun>,
    load: PlannedLoad,
    config: &Config,
    context: &Context,
) -> Result<CapacityRequest, UserError> {
    let server = served.map(|served| served.server.clone()).unwrap_or_default();
    Ok(CapacityRequest {
        workload: resolution::workload::settings(config)?,
        hardware: resolution::hardware(config)?,
        calibration: arguments.calibration.clone(),
        config_dir: context.config_dir.clone(),
        engine: settings(arguments, &server),
        load: Arc::new(load),
        fleet: FleetSettings {
            data_parallel: arguments.data_parallel,
            router: arguments.router.unwrap_or_default(),
            disaggregate: arguments.disaggregate,
            link: arguments.kv_link,
        },
        ignored_options: server.ignored,
        steps: served.map(|served| served.steps.clone()).unwrap_or_default().into(),
        steps_apply: false,
        objective: arguments.slo,
        price: arguments.price,
        watts: arguments.power,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The engine and its settings: as the options say, else as the measured server's command does.
fn settings(arguments: &Arguments, server: &ServerCommand) -> EngineSettings {
    EngineSettings {
        engine: arguments.engine.or(server.engine).unwrap_or(capacity::VLLM),
        backend: arguments.attention_backend.or(server.backend).unwrap_or_default(),
        max_num_seqs: arguments.max_num_seqs.or(server.max_num_seqs),
        max_num_batched_tokens: arguments.max_num_batched_tokens.or(server.max_num_batched_tokens),
        kv_blocks: arguments.kv_blocks.or(server.kv_blocks),
        block_size: arguments.block_size.or(server.block_size),
    }
}

/// What neither a run nor the options say.
fn unsaid(arguments: &Arguments, served: &ServedRun, flags: &ModelFlags<'_>) -> Result<(), UserError> {
    let engine = arguments.engine.or(served.server.engine);
    let unsaid = [
        (flags.model.is_none(), "which model was served", "--model"),
        (flags.hardware.is_none(), "which device the server ran on", "--hardware"),
        (engine.is_none(), "which engine the server was", "--engine"),
    ];
    match unsaid.into_iter().find(|(is_unsaid, ..)| *is_unsaid) {
        Some((_, what, option)) => {
            Err(UserError::usage(format!("the run does not say {what}")).hint(format!("name it with {option}")))
        }
        None => Ok(()),
    }
}

/// Whether the server that is simulated differs from the one that was measured. What the run does not say is filled in, not changed.
fn is_changed(arguments: &Arguments, server: &ServerCommand) -> bool {
    let measured = EngineSettings {
        engine: server.engine.or(arguments.engine).unwrap_or(capacity::VLLM),
        backend: server.backend.unwrap_or_default(),
        max_num_seqs: server.max_num_seqs,
        max_num_batched_tokens: server.max_num_batched_tokens,
        kv_blocks: server.kv_blocks,
        block_size: server.block_size,
    };
    settings(arguments, server) != measured
        || arguments.data_parallel.is_some_and(|servers| servers > 1)
        || arguments.disaggregate.is_some()
}

/// Whether its steps take other times on the device: another device, engine, attention, model, or way to store and share it.
fn is_device_changed(
    arguments: &Arguments,
    served: &ServedRun,
    given: &Overrides,
    hardware: Option<&str>,
    context: &Context,
) -> bool {
    let ServedRun { model, server, .. } = served;
    let measured = served.hardware.as_deref();
    arguments.model.as_ref().zip(model.as_ref()).is_some_and(|(given, measured)| given != measured)
        || hardware.zip(measured).is_some_and(|(given, measured)| !is_one_device(given, measured, context))
        || arguments.engine.zip(server.engine).is_some_and(|(given, measured)| given.name != measured.name)
        || arguments.attention_backend.is_some_and(|given| given != server.backend.unwrap_or_default())
        || given.iter().any(|one| one.key_below("workload").is_some() || one.key_below("model").is_some())
}

/// Whether two names are those of one device: its id, its name, and what the driver calls it.
fn is_one_device(one: &str, other: &str, context: &Context) -> bool {
    let id = |name| hardware::find(context.config_dir.as_deref(), name).ok().map(|device| device.id);
    one == other || id(one).is_some_and(|found| Some(found) == id(other))
}

/// The run that `--from` names.
fn served(run: &OsStr) -> Result<ServedRun, UserError> {
    capacity::served(&runs::find(Path::new(runs::DEFAULT_ROOT), run, runs::RunPurpose::Show)?)
}

/// As many devices as the measured server had, unless the user says otherwise.
fn with_tensor_parallel(given: Overrides, served: Option<u64>) -> Result<Overrides, UserError> {
    const KEY: &str = "workload.parallel.tensor";
    let Some(tensor) = served.filter(|_| !given.touches(KEY)) else { return Ok(given) };
    let mut all = Overrides::default();
    all.set(KEY, tensor, OverrideSource::Verb);
    all.append(&given);
    Ok(all)
}

/// The load: a run's or a file's, at other arrivals where the options name them, or one that the options describe.
fn load(
    arguments: &Arguments,
    served: Option<&ServedRun>,
    arriving: Option<FileArrivals>,
) -> Result<PlannedLoad, UserError> {
    let LoadArguments { replay, .. } = &*arguments.load;
    let requests = arguments.requests.as_ref();
    let (file, path) = match (served, requests, replay) {
        (Some(_), Some(_), _) => return Err(two_loads("--from RUN", "--requests")),
        (None, Some(Requests::File(_)), Some(_)) => return Err(two_loads("--requests FILE", "--replay FILE")),
        (Some(served), None, _) => ("a run", &served.requests),
        (None, Some(Requests::File(path)), None) => ("a results file", path),
        (None, _, Some(path)) => ("a replayed file", path),
        (None, _, None) => return generated(arguments, arriving),
    };
    let arriving = arriving.or(arguments.load.of_file(file)?);
    let load = match replay {
        Some(path) => PlannedLoad::replayed(path, requests.and_then(Requests::number), 0)?,
        None => PlannedLoad::recorded(path)?,
    };
    match arriving {
        Some(FileArrivals::At(rate)) => load.at_rate(rate),
        Some(FileArrivals::Together(concurrency)) => Ok(load.together(concurrency)),
        None => Ok(load),
    }
}

fn two_loads(one: &str, other: &str) -> UserError {
    UserError::usage(format!("{one} and {other} are two loads")).hint("give one of them")
}

/// A load of random prompts.
fn generated(arguments: &Arguments, arriving: Option<FileArrivals>) -> Result<PlannedLoad, UserError> {
    let load = &*arguments.load;
    let requests = arguments.requests.as_ref().and_then(Requests::number).unwrap_or(REQUESTS);
    let arrivals = match arriving {
        None => load.arrivals(requests)?,
        Some(FileArrivals::At(rate)) => load.at(rate),
        Some(FileArrivals::Together(concurrency)) => Arrivals::Closed { concurrency },
    };
    PlannedLoad::generated(
        arrivals,
        &Prompts::Random { input: load.input(), output: load.output() },
        requests,
        load.seed(),
    )
}

/// How many requests, or the file that has them.
#[derive(Clone, Debug)]
enum Requests {
    Number(usize),
    File(PathBuf),
}

impl Requests {
    fn number(&self) -> Option<usize> {
        match self {
            Self::Number(number) => Some(*number),
            Self::File(_) => None,
        }
    }
}

fn requests(text: &str) -> Result<Requests, String> {
    match text.parse::<f64>() {
        Ok(_) => whole(text).map(Requests::Number).map_err(|expected| format!("{expected}, or a file")),
        Err(_) => Ok(Requests::File(PathBuf::from(text))),
    }
}

fn engine(text: &str) -> Result<Engine, String> {
    Engine::find(text).ok_or_else(|| {
        let known: Vec<&str> = Engine::ALL.iter().map(|engine| engine.name).collect();
        format!("expected one of {}", known.join(", "))
    })
}

fn backend(text: &str) -> Result<Backend, String> {
    Backend::find(text).ok_or_else(|| "expected flash or triton".to_owned())
}

/// `50GB/s` or `50`.
fn link(text: &str) -> Result<BytesPerSecond, String> {
    let number = text.trim_end_matches("GB/s");
    let rate = positive(number).ok().filter(|rate| (1e-3..=1e6).contains(rate));
    rate.map(|rate| BytesPerSecond::new(rate * 1e9)).ok_or_else(|| "expected a bandwidth such as 50GB/s".to_owned())
}

/// `3.5/h`, `$3.5/h` or `3.5`.
fn price(text: &str) -> Result<f64, String> {
    let number = text.trim_start_matches('$').trim_end_matches("/h");
    positive(number).ok().filter(|price| price.is_finite()).ok_or_else(|| "expected a price such as 3.5/h".to_owned())
}

/// `700W` or `700`.
fn watts(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches(['W', 'w']);
    positive(number).ok().filter(|watts| watts.is_finite()).ok_or_else(|| "expected watts such as 700W".to_owned())
}
