//! `llm-perf deep`: a timeline, then hardware counters of the kernels that matter in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use flow::deep::{self, Collector, Deep, DeepError, DeepRequest, Mode, NcuPreset, NsysPreset};
use flow::import::ImportRequest;
use flow::profile::Progress;
use flow::target::Target;
use flow::{RunRequest, runs};
use serde::Deserialize;
use types::{Bytes, Exit, Stage};

use super::Verb;
use super::analyze::model_overrides;
use super::import::{load, workload};
use super::profile::Display;
use super::profile::composition::{Composition, Subject, compose};
use crate::arguments::{self, Context};
use crate::config::{Composer, Config};
use crate::error::CliError;
use crate::target::TargetArguments;

/// Profile a model or any command with Nsight Systems and Nsight Compute
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Changes to the configuration, such as pipeline.ncu.ncu_cli.launch_count=5 or workload.seq_len=286
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    #[command(flatten)]
    target: TargetArguments,
    /// How much is collected: `light` takes few counters, one launch of each kernel [default: deep]
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,
    /// What records the timeline: our own collector, Nsight Systems, or whichever works
    #[arg(long, value_name = "COLLECTOR", default_value = "auto")]
    collector: CollectorName,
    /// Kernels of each stage that counters are read for [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    top_kernels: Option<u32>,
    /// A stage whose kernels are looked at; prefill and decode unless given
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    stage: Vec<Stage>,
    /// The device's entry in the catalogue; found from its name unless given
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// Most a trace may take on disk, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 4096)]
    largest_trace: u64,
    /// Longest a pass may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pass_limit: u64,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on with a run that was stopped, behind its last finished pass
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
    /// The run folder; must be absent or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf deep -- python3 serve.py --once
  llm-perf deep --dry-run -- python3 serve.py --once
  llm-perf deep --model deepseek-ocr workload.seq_len=286 workload.decode_steps=4 -- python3 ocr.py
  llm-perf deep --engine torch --model qwen3-8b
  llm-perf deep --mode light --top-kernels 4 --stage decode -- ./my-engine
  llm-perf deep --resume latest

The program is started several times: by itself, with a collector of the timeline, and once for
each stage under Nsight Compute. Stages are the NVTX ranges prefill and decode (or decode_all), in
no domain or in LLM; without them they are inferred. What ranges named load or warmup hold is set
aside. A model runs on the first input of its set unless --inputs or dataset.* say otherwise.
Beside a command, --model says which model it runs.";

/// The values of `--mode` and of `runner.run.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    Deep,
    Light,
}

/// The values of `--collector`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CollectorName {
    Auto,
    Inject,
    Nsys,
}

fn stage(text: &str) -> Result<Stage, String> {
    let names = Stage::ALL.map(Stage::name).join(", ");
    Stage::ALL.into_iter().find(|stage| stage.name() == text).ok_or_else(|| format!("expected one of {names}"))
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let Some(selector) = &arguments.resume else { return begin(arguments, context) };
    let run = runs::find_run(Path::new(runs::DEFAULT_ROOT), selector)?;
    let plan = deep::stored_plan(&run)?;
    let here = std::env::current_dir().unwrap_or_default().display().to_string();
    if here != plan.folder {
        return Err(CliError::usage(format!("the run was started in {}, and this is {here}", plan.folder))
            .hint(format!("cd {} and try again; its paths are relative to it", plan.folder)));
    }
    let typed: Vec<_> = std::iter::once("llm-perf".to_owned()).chain(plan.arguments).map(Into::into).collect();
    let settings = arguments::parse(&typed)
        .map_err(|error| CliError::usage("plan.json is not understood any more").because(error.to_string()))?;
    let Verb::Deep(first) = &settings.verb else {
        return Err(CliError::usage("plan.json is not of a deep run"));
    };
    let (request, _) = compose_request(first, &settings.context())?;
    let display = Display::new(context);
    let outcome = deep::resume(&request, &run, &mut |doing| display.show(&Progress::Doing(doing)));
    display.clear();
    finish(arguments.json || first.json, outcome, context)
}

fn begin(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let (request, config) = compose_request(arguments, context)?;
    if arguments.dry_run {
        let plan = deep::plan(&request)?;
        match arguments.json {
            true => context.messages.print_json(&plan)?,
            false => context.messages.print(&deep::plan_terminal(&plan))?,
        }
        return Ok(Exit::Done);
    }
    let run = RunRequest {
        root: config.get::<PathBuf>("run.output_root")?,
        out: arguments.out.clone(),
        ..RunRequest::new("deep", std::env::args().collect())
    };
    let display = Display::new(context);
    let outcome = deep::deep(&request, run, &config.to_yaml(), &mut |doing| display.show(&Progress::Doing(doing)));
    display.clear();
    finish(arguments.json, outcome, context)
}

fn finish(json: bool, outcome: Result<Deep, DeepError>, context: &Context) -> Result<Exit, CliError> {
    let found = outcome?;
    if json {
        context.messages.print_json(&found.metrics)?;
    } else {
        context.messages.print(&deep::terminal(&found.metrics, &found.kernels))?;
    }
    for missing in &found.missing {
        context.messages.warning(format!("partial: {missing}"));
    }
    context.messages.note(format!("report: {}", found.folder.join("stakeholder_summary.md").display()));
    context.messages.note(format!("kernels: {}", found.folder.join("kernels.md").display()));
    Ok(if found.missing.is_empty() { Exit::Done } else { Exit::Partial })
}

/// Everything the flow needs, and the configuration it comes from.
fn compose_request(arguments: &Arguments, context: &Context) -> Result<(DeepRequest, Config), CliError> {
    let (mode, top_kernels) = extent(arguments, context)?;
    let mut overrides = vec![RUNNER.to_owned()];
    if mode == ModeName::Light {
        overrides.push("profiling/ncu@pipeline.ncu=ncu.light".to_owned());
        overrides.push("pipeline.nsys.nsys_cli.trace=[cuda, nvtx]".to_owned());
    }
    overrides.extend(arguments.hardware.iter().map(|name| format!("hardware='{}'", name.replace('\'', "''"))));
    let target = &arguments.target;
    let mut about_model = arguments.overrides.clone();
    if one_input(target, &arguments.overrides) {
        about_model.push(ONE_INPUT.to_owned());
    }
    overrides.extend(about_model.iter().cloned());
    // Flags win, and config.yaml says what was done.
    let name = if mode == ModeName::Light { "light" } else { "deep" };
    overrides.push(format!("runner.run.mode={name}"));
    overrides.push(format!("runner.run.top_n_kernels={top_kernels}"));
    let is_command = target.is_command();
    let (target, config, model) = if is_command {
        let mut all: Vec<String> = target.model.iter().flat_map(|model| model_overrides(model)).collect();
        all.extend(overrides.iter().cloned());
        let config = Composer::new(context.config_dir.as_deref())?.compose(&all)?;
        let model = target.model.is_some().then(|| load(&config)).transpose()?;
        let target = Target::command(target.command.clone())?;
        (target, config, model)
    } else {
        let Composition { config, subject } = compose(target, &overrides, context)?;
        let model = match subject {
            Subject::Native(model) => Some(*model),
            // What nothing here knows is profiled without modelled numbers.
            Subject::Torch(model) => model.known.ok(),
        };
        (target.target(&about_target(&about_model), context)?, config, model)
    };
    let subject = ImportRequest {
        files: Vec::new(),
        workload: workload(model.is_some(), &config, &overrides)?,
        model,
        hardware: config.get::<Option<String>>("hardware")?,
        config_dir: context.config_dir.clone(),
    };
    let stages = match arguments.stage.as_slice() {
        [] => vec![Stage::Prefill, Stage::Decode],
        stages => stages.to_vec(),
    };
    let request = DeepRequest {
        target,
        mode: match mode {
            ModeName::Deep => Mode::Deep,
            ModeName::Light => Mode::Light,
        },
        collector: match arguments.collector {
            CollectorName::Auto => Collector::Auto,
            CollectorName::Inject => Collector::Inject,
            CollectorName::Nsys => Collector::Nsys,
        },
        stages,
        top_kernels,
        nsys: config.get::<NsysPreset>("pipeline.nsys")?,
        ncu: config.get::<NcuPreset>("pipeline.ncu")?,
        largest_trace: Bytes::new(arguments.largest_trace.saturating_mul(1_000_000)),
        pass_limit: Duration::from_secs(arguments.pass_limit),
        subject,
        weights: if is_command { None } else { config.get::<Option<String>>("model.weights")? },
        arguments: std::env::args().skip(1).collect(),
    };
    Ok((request, config))
}

/// What a deep run starts from.
const RUNNER: &str = "runner=stage2";

/// How much is collected: from flags, else from the configuration. It comes first, because presets depend on it.
fn extent(arguments: &Arguments, context: &Context) -> Result<(ModeName, u32), CliError> {
    let of_runner = arguments.overrides.iter().filter(|text| text.trim_start_matches('+').starts_with("runner"));
    let overrides: Vec<_> = std::iter::once(RUNNER.to_owned()).chain(of_runner.cloned()).collect();
    let config = Composer::new(context.config_dir.as_deref())?.compose(&overrides)?;
    let mode = arguments.mode.map_or_else(|| config.get::<ModeName>("runner.run.mode"), Ok)?;
    let top_kernels = arguments.top_kernels.map_or_else(|| config.get::<u32>("runner.run.top_n_kernels"), Ok)?;
    if !(1..=64).contains(&top_kernels) {
        return Err(CliError::usage(format!("runner.run.top_n_kernels is {top_kernels}"))
            .hint("counters are read for 1 to 64 kernels of each stage"));
    }
    Ok((mode, top_kernels))
}

/// One input, so that a timeline is of one workload.
const ONE_INPUT: &str = "dataset.sampling.samples_per_epoch=1";

/// Whether a model gets one input of its set: unless the user says something of inputs.
fn one_input(target: &TargetArguments, overrides: &[String]) -> bool {
    let of_inputs = |text: &String| text.trim_start_matches(['+', '~']).starts_with("dataset");
    !target.is_command() && target.inputs.is_none() && !overrides.iter().any(of_inputs)
}

/// Overrides that say something of the model and how it runs, which the program itself must be told.
fn about_target(overrides: &[String]) -> Vec<String> {
    let ours = ["pipeline", "profiling", "hardware", "runner", "run."];
    let is_ours = |text: &&String| {
        let text = text.trim_start_matches(['+', '~']);
        ours.iter().any(|part| text.starts_with(part))
    };
    overrides.iter().filter(|text| !is_ours(text)).cloned().collect()
}
