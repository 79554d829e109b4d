//! `llm-perf deep`: a timeline, then hardware counters of the kernels that matter in it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Config, OverrideSource, Overrides};
use flow::EndedRun;
use flow::deep::{self, Collector, DeepRequest, Documents, Mode, NcuPreset, NsysPreset};
use flow::import::NamedSubject;
use flow::runs::{self, RunPurpose};
use types::{Bytes, Exit, Stage, UserError};

use super::{Verb, command_line};
use crate::choice::{one_of, stage};
use crate::context::Context;
use crate::resolution::{self, ModelFlags, Resolution, engine};
use crate::target::TargetArguments;

/// Record a timeline and hardware counters of a model or any command
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Configuration overrides (key=value), such as pipeline.ncu.ncu_cli.launch_count=5
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// How much to collect: light reads few counters, for one launch of each kernel [default: deep]
    #[arg(long, value_name = "MODE", value_parser = one_of(&Mode::ALL))]
    mode: Option<Mode>,
    /// Collector of the timeline: the built-in CUPTI collector (inject), Nsight Systems (nsys), both, or auto: inject,
    /// then nsys if inject records no kernel
    #[arg(long, value_name = "COLLECTOR", default_value = "auto", value_parser = one_of(&COLLECTORS))]
    collector: Collector,
    /// Run the command once more to record operators: the command writes its torch.profiler trace to the file named by
    /// $LLM_PERF_TORCH_TRACE; models on the torch engine always get this pass
    #[arg(long)]
    operators: bool,
    /// Number of kernels per stage to read counters for [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    top_kernels: Option<u32>,
    /// Stage whose kernels get counters; can be repeated [default: prefill and decode]
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    stage: Vec<Stage>,
    /// Maximum size of a trace on disk, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 4096)]
    largest_trace: u64,
    /// Maximum time of one pass, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pass_limit: u64,
    /// Print the plan and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Resume an interrupted run after its last finished pass
    #[arg(long, value_name = "RUN")]
    resume: Option<OsString>,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArguments,
}

/// The values of `--collector`.
const COLLECTORS: [Collector; 4] = [Collector::Auto, Collector::Inject, Collector::Nsys, Collector::Both];

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    if let Some(selector) = &arguments.resume {
        return resume(arguments, selector, context);
    }
    let (request, config) = compose_request(arguments, context)?;
    if arguments.dry_run {
        let plan = deep::plan(&request)?;
        return context.messages.print_answer(arguments.json, &plan, || deep::plan_terminal(&plan));
    }
    let typed = Overrides::typed(&arguments.overrides)?;
    let run = resolution::run_request("deep", &config, &typed, arguments.out.as_deref())?;
    let outcome = context.telling(|tell| deep::deep(&request, run, &config.to_yaml(), tell))?;
    finish(arguments.json, &outcome, context)
}

/// Continues a run, with the arguments it was started with.
fn resume(arguments: &Arguments, selector: &OsStr, context: &Context) -> Result<Exit, UserError> {
    let run = runs::find(Path::new(runs::DEFAULT_ROOT), selector, RunPurpose::Resume)?;
    let plan = deep::stored_plan(&run)?;
    let here = std::env::current_dir().unwrap_or_default().display().to_string();
    if here != plan.folder {
        return Err(UserError::usage(format!("the run was started in {}, not in {here}", plan.folder))
            .hint(format!("cd {} and try again; the run's paths are relative to it", plan.folder)));
    }
    if plan.arguments.iter().any(|word| word.contains(char::REPLACEMENT_CHARACTER)) {
        return Err(UserError::usage("cannot resume: the run was started with an argument that is not UTF-8")
            .hint("start a new run"));
    }
    let typed: Vec<_> = std::iter::once("llm-perf".to_owned()).chain(plan.arguments).map(Into::into).collect();
    let parsed = command_line::parse(&typed).map_err(|error| {
        UserError::usage("this version of llm-perf cannot read plan.json").because(error.to_string())
    })?;
    let Verb::Deep(first) = &parsed.verb else {
        return Err(UserError::usage("plan.json does not belong to a deep run"));
    };
    let (request, _) = compose_request(first, &parsed.context())?;
    let outcome = context.telling(|tell| deep::resume(&request, &run, tell))?;
    finish(arguments.json || first.json, &outcome, context)
}

fn finish(json: bool, outcome: &EndedRun<Documents>, context: &Context) -> Result<Exit, UserError> {
    let (metrics, kernels) = &outcome.value;
    context.messages.print_answer(json, metrics, || deep::terminal(metrics, kernels))?;
    Ok(context.messages.ended(outcome, &[("report", "report.html"), ("kernels", "kernels.md")]))
}

/// Everything the flow needs, and the configuration it comes from.
fn compose_request(arguments: &Arguments, context: &Context) -> Result<(DeepRequest, Config), UserError> {
    let target = &arguments.target;
    let typed = Overrides::typed(&arguments.overrides)?;
    let (mode, top_kernels) = extent(arguments, &typed, context)?;
    let of_target = of_target(target, &typed);
    let given = overrides(arguments, mode, top_kernels, &of_target);
    let (target, config, name, model, inputs) = if target.is_command() {
        let flags = ModelFlags { model: target.model.as_deref(), ..ModelFlags::default() };
        let config = resolution::compose(&flags.overrides(&given), context)?;
        let (name, model) = resolution::model::of_command(&config, flags.model, &typed)?;
        (target.command()?, config, name, model, None)
    } else {
        let engine = engine::choose_for_gpu("deep", target, &given, context)?;
        let resolution = resolution::resolve_run(engine, target, &given, context)?;
        let inputs = resolution::inputs::expected(target, &resolution)?;
        let Resolution { config, model } = resolution;
        resolution::check_run(target, &config, &model, context)?;
        let (target, name) = (target.workload(engine, &of_target.without(&OURS), context)?, model.id().to_owned());
        // A model that is not known here is profiled without modelled numbers.
        (target, config, Some(name), model.known(), Some(inputs))
    };
    config.get::<String>("run.mode")?;
    config.get::<u32>("run.top_n_kernels")?;
    let subject = NamedSubject {
        workload: resolution::workload::request(&config, model.is_some())?,
        model,
        name,
        hardware: resolution::hardware(&config)?,
        config_dir: context.config_dir.clone(),
    };
    let stages = match arguments.stage.as_slice() {
        [] => vec![Stage::Prefill, Stage::Decode],
        stages => stages.to_vec(),
    };
    let nsys = config.get::<NsysPreset>("pipeline.nsys")?;
    let is_command = arguments.target.is_command();
    let request = DeepRequest {
        target,
        inputs,
        mode,
        collector: collector(arguments.collector, &nsys)?,
        operators: if is_command { arguments.operators } else { config.get("pipeline.torch_profiler.enabled")? },
        operator_rows: if is_command { None } else { Some(config.get("pipeline.torch_profiler.top_k")?) },
        stages,
        top_kernels,
        nsys,
        ncu: config.get::<NcuPreset>("pipeline.ncu")?,
        largest_trace: Bytes::new(arguments.largest_trace.saturating_mul(1_000_000)),
        pass_limit: Duration::from_secs(arguments.pass_limit),
        subject,
        weights: if is_command { None } else { config.get("model.weights")? },
        arguments: std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    Ok((request, config))
}

/// Parts of the configuration that are about profiling, and not about the program that is profiled.
const OURS: [&str; 9] = [
    "pipeline.nsys",
    "pipeline.ncu",
    "profiling.nsys",
    "profiling.ncu",
    "hardware",
    "runner",
    "run",
    "artifacts",
    "hydra",
];

/// What the flag and `pipeline.nsys.enabled` say together.
fn collector(named: Collector, nsys: &NsysPreset) -> Result<Collector, UserError> {
    Ok(match (named, nsys.enabled) {
        (Collector::Nsys | Collector::Both, Some(false)) => {
            return Err(UserError::usage("`--collector` selects Nsight Systems, but pipeline.nsys.enabled is false")
                .hint("remove one of them"));
        }
        (Collector::Auto | Collector::Inject, Some(true)) => Collector::Both,
        (Collector::Auto, Some(false)) => Collector::Inject,
        (named, _) => named,
    })
}

/// What the verb and its flags say, around what the user overrides: flags win, and config.yaml says what was done.
fn overrides(arguments: &Arguments, mode: Mode, top_kernels: u32, given: &Overrides) -> Overrides {
    let mut overrides = runner();
    if mode == Mode::Light {
        overrides.mount("profiling/ncu", "pipeline.ncu", "ncu.light", OverrideSource::Verb);
        overrides.set("pipeline.nsys.nsys_cli.trace", vec!["cuda", "nvtx"], OverrideSource::Verb);
    }
    arguments.target.set_hardware(&mut overrides);
    overrides.append(given);
    overrides.set("run.mode", mode.name(), OverrideSource::Verb);
    overrides.set("run.top_n_kernels", top_kernels, OverrideSource::Verb);
    overrides
}

/// What a deep run starts from.
fn runner() -> Overrides {
    let mut overrides = Overrides::default();
    overrides.choose("runner", "stage2", OverrideSource::Verb);
    overrides
}

/// How much is collected: from flags, else from the configuration. It comes first, because presets depend on it.
fn extent(arguments: &Arguments, given: &Overrides, context: &Context) -> Result<(Mode, u32), UserError> {
    let mut overrides = runner();
    overrides.append(&given.only(&["runner", "run", "artifacts"]));
    let config = resolution::composer(context)?.compose(&overrides)?;
    let mode = arguments.mode.map_or_else(|| config.get::<Mode>("run.mode"), Ok)?;
    let top_kernels = arguments.top_kernels.map_or_else(|| config.get::<u32>("run.top_n_kernels"), Ok)?;
    if !(1..=64).contains(&top_kernels) {
        return Err(UserError::usage(format!("run.top_n_kernels is {top_kernels}; expected 1 to 64")));
    }
    Ok((mode, top_kernels))
}

/// The user's overrides, and one input for a model unless they say something of inputs: a timeline is of one workload.
fn of_target(target: &TargetArguments, given: &Overrides) -> Overrides {
    let mut overrides = given.clone();
    if !target.is_command() && target.inputs.is_none() && !given.touches("dataset") {
        overrides.set("dataset.sampling.samples_per_epoch", 1, OverrideSource::Verb);
    }
    overrides
}
