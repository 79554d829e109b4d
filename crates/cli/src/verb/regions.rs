//! `llm-perf regions`: hardware counters per NVTX region, by Nsight Compute.

use std::path::PathBuf;

use config::{Config, OverrideSource, Overrides};
use flow::model::LoadedModel;
use flow::profile::{FedInputs, Feed};
use flow::regions::{self, NcuPreset, RegionsSettings, Source, SurveyChoice};
use flow::target::{Engine, TargetKind};
use types::{Exit, UserError};

use crate::context::Context;
use crate::resolution::{self, Resolution, engine};
use crate::target::TargetArguments;

/// Read hardware counters per NVTX region with Nsight Compute
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Configuration overrides (key=value), such as 'pipeline.ncu.ncu_cli.sections=[SpeedOfLight]'
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// Replay mode of Nsight Compute: kernel and range replay within one process; application and app-range run the
    /// program again [default: kernel]
    #[arg(long, value_name = "MODE", value_parser = ["kernel", "range", "app-range", "application"])]
    replay_mode: Option<String>,
    /// Region to profile, with its nested regions: A, A::A1, 'decode*', LLM@prefill; can be repeated [default: all
    /// regions that a survey finds]
    #[arg(long, value_name = "EXPR")]
    nvtx_include: Vec<String>,
    /// Always survey all kernels first; this also shows kernels outside the regions
    #[arg(long, conflicts_with = "no_survey")]
    survey: bool,
    /// Never survey all kernels first
    #[arg(long)]
    no_survey: bool,
    /// Read CSV pages from ncu (--csv --page raw, and --page details) instead of running a program; can be repeated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "dry_run"])]
    from: Vec<PathBuf>,
    /// Print the commands and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArguments,
}

/// Parts of the configuration that say nothing of a command or of pages.
const UNUSED: [&str; 8] = ["infer", "dataset", "runner", "inputs", "engine", "device", "model", "workload"];

/// Keys of presets that are meant for single kernels, and count here only where the user sets them.
const LAUNCH_KEYS: [&str; 2] = ["pipeline.ncu.ncu_cli.launch_skip", "pipeline.ncu.ncu_cli.launch_count"];

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let typed = Overrides::typed(&arguments.overrides)?;
    let overrides = overrides(arguments, &typed);
    let (config, model, inputs) = resolve(arguments, &overrides, context)?;
    let source = source(arguments, &overrides, inputs, context)?;
    let settings = settings(arguments, source, &config, model, context)?;
    if arguments.dry_run {
        let lines = regions::planned(&settings)?;
        return context.messages.print(&(lines.join("\n") + "\n"));
    }
    let run = resolution::run_request("regions", &config, &typed, arguments.out.as_deref())?;
    let outcome = context
        .progress(|display| regions::regions(&settings, run, &config.to_yaml(), &mut |doing| display.doing(doing)))?;
    let (report, metrics) = &outcome.value;
    context.messages.print_answer(arguments.json, metrics, || regions::terminal(report))?;
    for note in report.notes.iter().filter(|note| !outcome.missing.contains(&note.text)) {
        context.messages.note(format!("note: {note}"));
    }
    Ok(context.messages.ended(&outcome, &[("report", "report.html"), ("regions", "ncu/regions/report.md")]))
}

/// What the flags say, then what the user overrides.
fn overrides(arguments: &Arguments, typed: &Overrides) -> Overrides {
    let mut overrides = Overrides::default();
    overrides.choose("runner", "stage2", OverrideSource::Verb);
    if let Some(mode) = &arguments.replay_mode {
        let source = OverrideSource::Flag("--replay-mode");
        overrides.set("pipeline.ncu.ncu_cli.replay_mode", mode.as_str(), source);
    }
    if !arguments.nvtx_include.is_empty() {
        let source = OverrideSource::Flag("--nvtx-include");
        overrides.set("pipeline.ncu.ncu_cli.nvtx.include", arguments.nvtx_include.clone(), source);
    }
    arguments.target.set_hardware(&mut overrides);
    overrides.append(typed);
    overrides
}

/// The configuration, and the model that is run, where its cost can be modelled.
fn resolve(
    arguments: &Arguments,
    overrides: &Overrides,
    context: &Context,
) -> Result<(Config, Option<LoadedModel>, Option<FedInputs>), UserError> {
    if arguments.target.is_command() || !arguments.from.is_empty() {
        arguments.target.refuse_model(overrides, &["model", "infer"])?;
        return Ok((resolution::compose(overrides, context)?.without(&UNUSED), None, None));
    }
    let engine = engine::choose_for_gpu("regions", &arguments.target, overrides, context)?;
    let resolution = resolution::resolve_run(engine, &arguments.target, overrides, context)?;
    let inputs = resolution::inputs::expected(&arguments.target, &resolution)?;
    let Resolution { config, model } = resolution;
    resolution::check_run(&arguments.target, &config, &model, context)?;
    Ok((config, model.known(), Some(inputs)))
}

/// What Nsight Compute is to profile.
fn source(
    arguments: &Arguments,
    overrides: &Overrides,
    inputs: Option<FedInputs>,
    context: &Context,
) -> Result<Source, UserError> {
    if !arguments.from.is_empty() {
        return Ok(Source::Pages(arguments.from.clone()));
    }
    let target = if arguments.target.is_command() {
        arguments.target.command()?
    } else {
        arguments.target.workload(Engine::Torch, &overrides.without(&["pipeline.ncu", "profiling.ncu"]), context)?
    };
    Ok(Source::Program {
        engine: match target.kind() {
            TargetKind::Workload(engine) => engine.name().to_owned(),
            TargetKind::Command => "command".to_owned(),
        },
        description: target.description(),
        argv: target.argv().to_vec(),
        environment: target.environment().to_vec(),
        inputs: inputs.map(Box::new),
    })
}

/// Everything the flow needs.
fn settings(
    arguments: &Arguments,
    source: Source,
    config: &Config,
    model: Option<LoadedModel>,
    context: &Context,
) -> Result<RegionsSettings, UserError> {
    let preset: NcuPreset = config.get("pipeline.ncu")?;
    if !preset.enabled {
        return Err(UserError::usage("`regions` requires Nsight Compute, but pipeline.ncu.enabled is false")
            .hint("set pipeline.ncu.enabled=true"));
    }
    let mut options = preset.ncu_cli;
    let [skip, count] = LAUNCH_KEYS;
    if !config.is_set(skip) {
        options.launch_skip = 0;
    }
    if !config.is_set(count) {
        options.launch_count = None;
    }
    let model = match model {
        Some(model) => {
            let infer = resolution::inputs::infer(config, Feed::of(&model))?;
            Some(regions::as_fed(model, config.get("workload")?, &infer))
        }
        None => None,
    };
    Ok(RegionsSettings {
        source,
        options,
        survey: match (arguments.survey, arguments.no_survey) {
            (true, _) => SurveyChoice::Always,
            (_, true) => SurveyChoice::Never,
            _ => SurveyChoice::WhereNeeded,
        },
        aggregate: preset.regions.aggregate,
        model,
        hardware: resolution::hardware(config)?,
        config_dir: context.config_dir.clone(),
    })
}
