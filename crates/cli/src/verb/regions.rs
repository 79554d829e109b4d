//! `llm-perf regions`: hardware counters per NVTX region, by Nsight Compute.

use std::path::PathBuf;

use clap::ValueEnum;
use flow::RunRequest;
use flow::profile::{Feed, Progress};
use flow::regions::{self, NcuPreset, RegionsSettings, Source, SurveyChoice};
use flow::target::TargetKind;
use types::Exit;

use super::profile::Display;
use super::profile::composition::{Composition, Subject, compose, infer};
use crate::arguments::Context;
use crate::config::{Composer, Config, Origin};
use crate::error::CliError;
use crate::target::TargetArguments;

/// Count what happens in NVTX regions, nested ones included, with Nsight Compute
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Changes to the configuration, such as 'pipeline.ncu.ncu_cli.sections=[SpeedOfLight]'
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// How counters are read: per kernel or per range, in one process or by running the program again
    #[arg(long, value_name = "MODE")]
    replay_mode: Option<ReplayName>,
    /// Regions, with those inside: A, A::A1, 'decode*', LLM@prefill; all that a first run finds unless given
    #[arg(long, value_name = "EXPR")]
    nvtx_include: Vec<String>,
    /// Look at every kernel first, also where nothing needs it: says what runs outside of the regions
    #[arg(long, conflicts_with = "no_survey")]
    survey: bool,
    /// Do not look at every kernel first
    #[arg(long)]
    no_survey: bool,
    /// Read pages that ncu wrote (--csv --page raw, and --page details) instead of running anything
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "dry_run"])]
    from: Vec<PathBuf>,
    /// The device whose roofs apply; found from its name unless given
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// Print the commands and run nothing
    #[arg(long)]
    dry_run: bool,
    /// The run folder; must be absent or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArguments,
}

/// The values of `--replay-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReplayName {
    Kernel,
    Range,
    AppRange,
    Application,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf regions -- python3 model.py
  llm-perf regions --nvtx-include A --nvtx-include A::A1 -- python3 model.py
  llm-perf regions --replay-mode app-range --nvtx-include 'decode*' -- python3 serve.py
  llm-perf regions --engine torch --device cuda:0 \\
      model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default
  llm-perf regions 'pipeline.ncu.ncu_cli.kernel_exclude=[regex:copy]' -- python3 model.py
  llm-perf regions --from raw.csv --from details.csv --nvtx-include A
  llm-perf regions --dry-run --replay-mode range -- python3 model.py

Regions are push/pop and start/end ranges of NVTX with kernels inside. The report is in
ncu/regions/report.md of the run folder, one folder for each region beside it.";

/// Parts of the configuration that say nothing of a command or of pages.
const UNUSED: [&str; 9] = [
    "~infer",
    "~dataset/sampling@dataset.sampling",
    "~dataset",
    "~runner",
    "~inputs",
    "~engine",
    "~device",
    "~model",
    "~workload",
];

/// Keys of presets that are meant for single kernels, and count here only where the user sets them.
const LAUNCH_KEYS: [&str; 2] = ["pipeline.ncu.ncu_cli.launch_skip", "pipeline.ncu.ncu_cli.launch_count"];

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let overrides = overrides(arguments);
    let is_model = !arguments.target.is_command() && arguments.from.is_empty();
    let (config, model) = match is_model {
        true => {
            let Composition { config, subject } = compose(&arguments.target, &overrides, context)?;
            let Subject::Torch(model) = subject else {
                return Err(CliError::usage("the native engine runs on the processor, where Nsight Compute counts nothing")
                    .hint("--engine torch runs the same models on a GPU; any other program goes after `--`"));
            };
            (config, model.known.ok())
        }
        false => {
            arguments.target.refuse_beside_command(&overrides)?;
            let composer = Composer::new(context.config_dir.as_deref())?;
            let unused = UNUSED.map(str::to_owned);
            (composer.compose(&overrides.iter().cloned().chain(unused).collect::<Vec<_>>())?, None)
        }
    };
    let settings = RegionsSettings {
        source: source(arguments, &overrides, context)?,
        survey: match (arguments.survey, arguments.no_survey) {
            (true, _) => SurveyChoice::Always,
            (_, true) => SurveyChoice::Never,
            _ => SurveyChoice::WhereNeeded,
        },
        hardware: config.get::<Option<String>>("hardware")?,
        config_dir: context.config_dir.clone(),
        ..asked(&config, model)?
    };
    if arguments.dry_run {
        let lines = regions::planned(&settings)?;
        context.messages.print(&(lines.join("\n") + "\n"))?;
        return Ok(Exit::Done);
    }
    let run = RunRequest {
        root: config.get::<PathBuf>("run.output_root")?,
        out: arguments.out.clone(),
        ..RunRequest::new("regions", std::env::args().collect())
    };
    let display = Display::new(context);
    let mut show = |doing: &str| display.show(&Progress::Doing(doing));
    let done = regions::regions(&settings, run, &config.to_yaml(), &mut show);
    display.clear();
    let done = done?;
    match arguments.json {
        true => context.messages.print_json(&done.metrics)?,
        false => context.messages.print(&regions::terminal(&done.report))?,
    }
    for note in done.report.notes.iter().filter(|note| !done.missing.contains(note)) {
        context.messages.note(format!("note: {note}"));
    }
    for missing in &done.missing {
        context.messages.warning(format!("partial: {missing}"));
    }
    context.messages.note(format!("report: {}", done.folder.join("ncu/regions/report.md").display()));
    Ok(if done.missing.is_empty() { Exit::Done } else { Exit::Partial })
}

/// What the flags say, as overrides, so that `config.yaml` says what was done; then what the user overrides.
fn overrides(arguments: &Arguments) -> Vec<String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut overrides = Vec::new();
    if let Some(mode) = arguments.replay_mode {
        let name = mode.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        overrides.push(format!("pipeline.ncu.ncu_cli.replay_mode={name}"));
    }
    if !arguments.nvtx_include.is_empty() {
        let list: Vec<String> = arguments.nvtx_include.iter().map(|text| quoted(text)).collect();
        overrides.push(format!("pipeline.ncu.ncu_cli.nvtx.include=[{}]", list.join(",")));
    }
    overrides.extend(arguments.hardware.iter().map(|name| format!("hardware={}", quoted(name))));
    overrides.extend(arguments.overrides.iter().cloned());
    overrides
}

fn source(arguments: &Arguments, overrides: &[String], context: &Context) -> Result<Source, CliError> {
    if !arguments.from.is_empty() {
        return Ok(Source::Pages(arguments.from.clone()));
    }
    let is_ncu = |text: &&String| text.starts_with("pipeline.ncu") || text.starts_with("profiling/ncu");
    let others: Vec<String> = overrides.iter().filter(|text| !is_ncu(text)).cloned().collect();
    let given = if arguments.target.is_command() { &[][..] } else { &others };
    let target = arguments.target.target(given, context)?;
    Ok(Source::Program {
        engine: match target.kind() {
            TargetKind::Workload(engine) => engine.name().to_owned(),
            TargetKind::Command => "command".to_owned(),
        },
        description: target.description(),
        argv: target.argv().to_vec(),
        environment: target.environment().to_vec(),
    })
}

/// What the configuration asks for.
fn asked(config: &Config, model: Option<flow::model::LoadedModel>) -> Result<RegionsSettings, CliError> {
    let preset: NcuPreset = config.get("pipeline.ncu")?;
    if !preset.enabled {
        return Err(CliError::usage("pipeline.ncu.enabled is false, and regions are nothing without Nsight Compute")
            .hint("pipeline.ncu.enabled=true"));
    }
    let mut options = preset.ncu_cli;
    let explained = config.explain();
    let is_set = |key: &str| {
        explained.iter().any(|one| one.key == key && matches!(one.origin, Origin::Override { .. }))
    };
    let [skip, count] = LAUNCH_KEYS;
    if !is_set(skip) {
        options.launch_skip = 0;
    }
    if !is_set(count) {
        options.launch_count = None;
    }
    let model = match model {
        Some(model) => {
            let infer = infer(config, Feed::of(&model))?;
            Some(regions::as_fed(model, config.get("workload")?, &infer))
        }
        None => None,
    };
    Ok(RegionsSettings {
        source: Source::Pages(Vec::new()),
        options,
        survey: SurveyChoice::WhereNeeded,
        aggregate: preset.regions.aggregate,
        model,
        hardware: None,
        config_dir: None,
    })
}
