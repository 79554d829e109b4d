//! `llm-perf analyze`: what a model costs on a workload, from its configuration alone.

mod sweep;

use std::path::{Path, PathBuf};

use flow::analyze::{self, AnalyzeSettings, DEFAULT_DEVICE};
use flow::model::{self, LoadedModel, ModelSettings};
use flow::{RunRequest, WorkloadSettings};
use types::Exit;

use crate::arguments::Context;
use crate::config::{Composer, Config, Origin};
use crate::error::CliError;

/// Predict FLOPs, bytes, memory and least time from a model's configuration
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Changes to the configuration, such as workload.batch=4 or 'workload.crop_grid=[2,3]'
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// A built-in model, or the path of a config.json
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
    /// A workload profile; the model's own standard one unless given
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Devices to predict for, separated by commas; the report is for the first
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    hardware: Vec<String>,
    /// Let a setting of the workload take several values, such as workload.batch=1,2,4; may be given again
    #[arg(long, value_name = "KEY=VALUE,...")]
    sweep: Vec<String>,
    /// Count this many microseconds for launching each operation
    #[arg(long, value_name = "US")]
    launch_us: Option<f64>,
    /// Hold the network against a TorchInfo snapshot (torchinfo-unique-layers.json, or its folder)
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    torchinfo: Option<PathBuf>,
    /// The run folder; must be absent or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the report as JSON; nothing is written unless --out is given
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf analyze
  llm-perf analyze --hardware h200,h100-sxm,rtx-4090
  llm-perf analyze --workload dsocr-gundam-2x3 workload.attention=flash workload.batch=8
  llm-perf analyze --model path/to/config.json workload.seq_len=4096
  llm-perf analyze --model llama-3-8b --json | jq .stages.decode
  llm-perf analyze --torchinfo torchinfo-unique-layers.json --out my-analysis
  llm-perf analyze --sweep workload.batch=1,2,4,8 --hardware h200,h100-sxm,rtx-5090
  llm-perf analyze --sweep workload.batch=1,8,64 --sweep 'workload.crop_grid=[1,1],[2,3]' --json

Everything is modelled: no GPU, no weights and no framework are needed. Times are the least a device needs.
A sweep computes every combination and leaves sweep.json, sweep.csv, sweep.svg and sweep.md.";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let composer = Composer::new(context.config_dir.as_deref())?;
    let (config, model) = compose(arguments, &composer)?;
    if !arguments.sweep.is_empty() {
        return sweep::run(arguments, context, &config, &model);
    }
    let devices = devices(arguments, &config)?;
    if devices.is_empty() && !arguments.json {
        context.messages.note(format!("no device was named; predicting for {DEFAULT_DEVICE} (--hardware NAME for another)"));
    }
    let settings = AnalyzeSettings {
        workload: workload(&config)?,
        devices,
        config_dir: context.config_dir.clone(),
        launch_us: arguments.launch_us,
        torchinfo: arguments.torchinfo.clone(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let analysis = analyze::analyze(&model, &settings)?;
    if arguments.json {
        context.messages.print_json(&analysis.report)?;
    } else {
        context.messages.print(&flow::analyze::table(&analysis.report))?;
    }
    if !arguments.json || arguments.out.is_some() {
        let request = RunRequest {
            root: config.get::<PathBuf>("run.output_root")?,
            out: arguments.out.clone(),
            ..RunRequest::new("analyze", std::env::args().collect())
        };
        let (folder, _) =
            analyze::keep(&analysis, &config.to_yaml(), request)?;
        context.messages.note(format!("report: {}", folder.join(analyze::SUMMARY).display()));
    }
    Ok(Exit::Done)
}

/// The configuration with the flags put in as overrides, so that `config.yaml` says what was done, and its model.
fn compose(arguments: &Arguments, composer: &Composer) -> Result<(Config, LoadedModel), CliError> {
    let mut overrides = Vec::new();
    if let Some(model) = &arguments.model {
        overrides.extend(model_overrides(model));
    }
    if let Some(workload) = &arguments.workload {
        overrides.push(format!("workload={workload}"));
    }
    overrides.extend(arguments.overrides.iter().cloned());
    let config = composer.compose(&overrides)?;
    let model = load(&config)?;
    let chosen = overrides.iter().any(|text| text.starts_with("workload="));
    if chosen || model.default_workload() == mounted_workload(&config) {
        return Ok((config, model));
    }
    overrides.insert(0, format!("workload={}", model.default_workload()));
    Ok((composer.compose(&overrides)?, model))
}

/// Whether a model is named by a file: the text looks like a path or is one.
pub(super) fn is_path(model: &str) -> bool {
    model.contains('/') || model.ends_with(".json") || Path::new(model).exists()
}

/// `--model` as overrides: a path where it looks like one or is one, else the name of a built-in model.
pub(super) fn model_overrides(model: &str) -> Vec<String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let (name, config, path) = if is_path(model) {
        (model_name(Path::new(model)), "file", quoted(model))
    } else {
        (model.to_owned(), "builtin", "null".to_owned())
    };
    vec![
        format!("model.name={}", quoted(&name)),
        format!("model.config={config}"),
        format!("model.config_path={path}"),
    ]
}

/// What a model without a name is called: its folder where the file has the usual name, else the file.
fn model_name(path: &Path) -> String {
    let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    match folder {
        Some(folder) if file == "config" && !folder.is_empty() => folder,
        _ => file,
    }
}

fn mounted_workload(config: &Config) -> &str {
    let mount = config.mounts().iter().find(|mount| mount.package == "workload");
    mount.and_then(|mount| mount.option.as_deref()).unwrap_or_default()
}

fn load(config: &Config) -> Result<LoadedModel, CliError> {
    let settings: ModelSettings = config.get("model")?;
    Ok(model::load(&settings)?)
}

/// The workload, where setting one of two quantities that go together sets the other.
fn workload(config: &Config) -> Result<WorkloadSettings, CliError> {
    let mut settings: WorkloadSettings = config.get("workload")?;
    let explained = config.explain();
    let overridden = |key: &str| {
        explained.iter().any(|one| one.key == key && matches!(one.origin, Origin::Override { .. }))
    };
    match (overridden("workload.seq_len"), overridden("workload.text_tokens")) {
        (true, false) => settings.text_tokens = None,
        (false, true) => settings.seq_len = None,
        _ => {}
    }
    match (overridden("workload.decode_steps"), overridden("workload.max_new_tokens")) {
        (true, false) => settings.max_new_tokens = None,
        (false, true) => settings.decode_steps = None,
        _ => {}
    }
    Ok(settings)
}

/// Devices of the flag, else of the configuration.
fn devices(arguments: &Arguments, config: &Config) -> Result<Vec<String>, CliError> {
    if !arguments.hardware.is_empty() {
        return Ok(arguments.hardware.clone());
    }
    Ok(config.get::<Option<String>>("hardware")?.into_iter().collect())
}
