//! `llm-perf profile`: run a model, time its stages, and say how far that is from what the hardware allows.

mod progress;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flow::RunRequest;
use flow::model::{self, LoadedModel, ModelSettings};
use flow::profile::{self, DatasetSettings, Feed, InferSettings, ProfileError, ProfileRequest, WeightSettings};

use super::analyze::{model_error, model_overrides};
use crate::arguments::Context;
use crate::config::{Composer, Config};
use crate::error::CliError;
use crate::exit::Exit;
use progress::Display;

/// Run a model, time its stages and compare with what the hardware allows
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Changes to the configuration, such as infer.max_new_tokens=16 or dataset.sampling.repeats=5
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// A built-in model, or the path of a config.json
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
    /// A safetensors checkpoint, its folder, or `synthetic`
    #[arg(long, value_name = "PATH")]
    weights: Option<String>,
    /// Pages, or text files for a model that reads text: a folder, one file, or a pattern such as 'scans/*.png'
    #[arg(long, value_name = "PATH")]
    inputs: Option<String>,
    /// Repeat an earlier run from its folder and say how far the two are apart
    #[arg(long, value_name = "RUN", conflicts_with_all = ["model", "weights", "inputs"])]
    from: Option<String>,
    /// Keep the decoded text of every input as predictions.jsonl
    #[arg(long)]
    predictions: bool,
    /// The run folder; must be absent or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf profile
  llm-perf profile --inputs scans/ dataset/sampling=sampling.full
  llm-perf profile --model deepseek-ocr --weights path/to/checkpoint --inputs page.png
  llm-perf profile --model decoder-tiny infer.seq_len=512
  llm-perf profile --model dummy-shallow-resnet infer.batch=16
  llm-perf profile infer.max_new_tokens=64 dataset.sampling.repeats=10
  llm-perf profile --from latest
  llm-perf profile --json | jq .throughput

Without arguments a small DeepSeek-OCR with made-up weights reads pages that ship with the program.
Models that read text are given prompts that ship with it. Models run on this machine's processor,
in single precision.";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let (config, model, first) = match &arguments.from {
        Some(selector) => {
            let (config, first) = earlier(arguments, selector)?;
            let model = load(&config)?;
            (config, model, Some(first))
        }
        None => {
            let (config, model) = compose(arguments, context)?;
            (config, model, None)
        }
    };
    warn_of_no_effect(arguments, context);
    let request = ProfileRequest {
        engine: config.get::<String>("engine")?,
        device: config.get::<String>("device")?,
        weights: config.get::<WeightSettings>("model")?,
        infer: infer(&config, &model)?,
        dataset: dataset(&config)?,
        last_logits_only: config.get::<String>("workload.logits")? == "last",
        keep_predictions: arguments.predictions,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        config_dir: context.config_dir.clone(),
    };
    let run = RunRequest {
        root: config.get::<PathBuf>("run.output_root")?,
        out: arguments.out.clone(),
        ..RunRequest::new("profile", std::env::args().collect())
    };
    let stopped = stop_on_interrupt();
    let display = Display::new(context);
    let mut show = |progress: profile::Progress<'_>| display.show(&progress);
    let profile =
        profile::profile(model, &request, run, &config.to_yaml(), &mut show, &|| stopped.load(Ordering::Relaxed));
    display.clear();
    let profile = profile.map_err(|error| profile_error(&error))?;
    if arguments.json {
        context.messages.print_json(&profile.metrics)?;
    } else {
        context.messages.print(&profile::terminal(&profile.metrics))?;
        if let Some(first) = &first {
            context.messages.print(&format!("\n{}", profile::distance(first, &profile.metrics)))?;
        }
    }
    for missing in &profile.missing {
        context.messages.warning(format!("not used: {missing}"));
    }
    context.messages.note(format!("report: {}", profile.folder.join("report.md").display()));
    Ok(if profile.missing.is_empty() { Exit::Done } else { Exit::Partial })
}

/// The configuration with the flags put in as overrides, so that `config.yaml` says what was done, and its model.
///
/// What a model is fed decides which settings apply to it, so the model is composed first, by itself.
fn compose(arguments: &Arguments, context: &Context) -> Result<(Config, LoadedModel), CliError> {
    let composer = Composer::new(context.config_dir.as_deref())?;
    let mut of_model = Vec::new();
    let chosen = arguments.overrides.iter().any(|text| text.contains("@model="));
    if arguments.model.is_none() && !chosen {
        of_model.push("model/deepseek_ocr/arch@model=deepseek_ocr.tiny".to_owned());
    }
    of_model.extend(arguments.model.iter().flat_map(|model| model_overrides(model)));
    if let Some(weights) = &arguments.weights {
        of_model.push(format!("model.weights={}", quoted(weights)));
    }
    let about_model = |text: &&String| text.trim_start_matches(['+', '~']).starts_with("model");
    let with_users = of_model.iter().chain(arguments.overrides.iter().filter(about_model)).cloned();
    let model = load(&composer.compose(&with_users.collect::<Vec<_>>())?)?;

    let feed = Feed::of(&model);
    let mut overrides = of_model;
    overrides.extend(suited_to(feed, &model));
    if let Some(inputs) = &arguments.inputs {
        overrides.extend(input_overrides(feed, inputs));
    }
    overrides.extend(arguments.overrides.iter().cloned());
    let config = composer.compose(&overrides)?;
    refuse_unread_inputs(arguments, feed, &config)?;
    Ok((config, model))
}

/// The groups that suit a model.
fn suited_to(feed: Feed, model: &LoadedModel) -> Vec<String> {
    let groups: &[&str] = match feed {
        Feed::Pages if model.id == "deepseek-ocr-tiny" => &["model/deepseek_ocr/infer@infer=deepseek_ocr.tiny"],
        Feed::Pages => &[],
        Feed::Prompts => &["model/decoder/infer@infer=decoder.default", "dataset=prompts"],
        Feed::Pictures => &["model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default"],
    };
    let workload = format!("workload={}", model.default_workload());
    groups.iter().map(|group| (*group).to_owned()).chain([workload]).collect()
}

/// The `infer` part in the form that suits the model.
fn infer(config: &Config, model: &LoadedModel) -> Result<InferSettings, CliError> {
    Ok(match Feed::of(model) {
        Feed::Pages => InferSettings::Pages(config.get("infer")?, config.get("infer")?),
        Feed::Prompts => InferSettings::Prompts(config.get("infer")?, config.get("infer")?),
        Feed::Pictures => InferSettings::Pictures(config.get("infer")?),
    })
}

/// `--inputs` beside settings under which no file is read would be ignored in silence.
fn refuse_unread_inputs(arguments: &Arguments, feed: Feed, config: &Config) -> Result<(), CliError> {
    let reason = match feed {
        _ if arguments.inputs.is_none() => return Ok(()),
        Feed::Pages => return Ok(()),
        Feed::Pictures => "this model is fed random pictures",
        Feed::Prompts if config.get::<Option<u64>>("infer.seq_len")?.is_some() => {
            "infer.seq_len asks for made-up tokens"
        }
        Feed::Prompts if !config.get::<String>("infer.prompt")?.contains("<text>") => {
            "infer.prompt has no <text>, so the files have no place in it"
        }
        Feed::Prompts => return Ok(()),
    };
    Err(CliError::usage(format!("--inputs has no effect: {reason}")).hint("leave one of the two out"))
}

/// `--inputs` as overrides: a folder or file as it is, a pattern as the folder before its first wildcard and the rest.
fn input_overrides(feed: Feed, inputs: &str) -> Vec<String> {
    let group = if feed == Feed::Prompts { "dataset=prompts" } else { "dataset=folder" };
    let mut overrides = vec![group.to_owned()];
    let wildcard = inputs.find(['*', '?', '[', '{']);
    match wildcard.filter(|_| !Path::new(inputs).exists()) {
        None => overrides.push(format!("dataset.root={}", quoted(inputs))),
        Some(first) => {
            let (root, pattern) = match inputs[..first].rfind('/') {
                Some(slash) => (&inputs[..slash.max(1)], &inputs[slash + 1..]),
                None => (".", inputs),
            };
            overrides.push(format!("dataset.root={}", quoted(root)));
            overrides.push(format!("dataset.include=[{}]", quoted(pattern)));
        }
    }
    overrides
}

/// The configuration of an earlier run and its metrics.
fn earlier(arguments: &Arguments, selector: &str) -> Result<(Config, types::Metrics), CliError> {
    let run = flow::runs::find_run(Path::new(flow::runs::DEFAULT_ROOT), selector)?;
    let read = |name: &str| {
        let file = run.path().join(name);
        std::fs::read_to_string(&file)
            .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))
            .map(|text| (file.display().to_string(), text))
    };
    let (file, text) = read("config.yaml")?;
    let config = Config::from_resolved(&file, &text, &arguments.overrides)?;
    let (file, text) = read("metrics.json")?;
    let metrics =
        serde_json::from_str(&text).map_err(|error| CliError::usage(format!("cannot read {file}: {error}")))?;
    Ok((config, metrics))
}

fn load(config: &Config) -> Result<LoadedModel, CliError> {
    let settings: ModelSettings = config.get("model")?;
    model::load(&settings).map_err(|error| model_error(&error))
}

/// The dataset, or the file list that `inputs.manifest` names in its place.
fn dataset(config: &Config) -> Result<DatasetSettings, CliError> {
    let mut settings: DatasetSettings = config.get("dataset")?;
    if let Some(manifest) = config.get::<Option<PathBuf>>("inputs.manifest")? {
        settings.root = ".".to_owned();
        settings.file_list = Some(manifest);
    }
    Ok(settings)
}

/// Parts of the configuration that this verb does not read.
const WITHOUT_EFFECT: [&str; 4] = ["workload.", "pipeline.", "runner.", "hardware="];

/// Says which overrides change nothing here, so that nobody believes they did.
fn warn_of_no_effect(arguments: &Arguments, context: &Context) {
    for text in &arguments.overrides {
        let key = text.trim_start_matches('+');
        if WITHOUT_EFFECT.iter().any(|part| key.starts_with(part)) && !key.starts_with("workload.logits=") {
            context.messages.warning(format!("`{text}` has no effect on `profile`"));
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Set when the user asks to stop; a second time ends the program at once.
fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Without a handler an interrupt ends the program, and the folder says so by itself.
    let _ = ctrlc::set_handler(handler);
    stopped
}

fn profile_error(error: &ProfileError) -> CliError {
    let exit = if error.is_wrong_usage() { Exit::Usage } else { Exit::Failed };
    let failure = CliError::from_error(error).with_exit(exit);
    match error.hint() {
        Some(hint) => failure.hint(hint.trim_end()),
        None => failure,
    }
}
