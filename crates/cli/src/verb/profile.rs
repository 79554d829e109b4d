//! `llm-perf profile`: run a model, time its stages, and say how far that is from what the hardware allows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flow::RunRequest;
use flow::model::{self, LoadedModel, ModelSettings};
use flow::profile::{self, DatasetSettings, InferSettings, ProfileError, ProfileRequest, Progress, WeightSettings};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::analyze::{model_error, model_overrides};
use crate::arguments::Context;
use crate::config::{Composer, Config};
use crate::error::CliError;
use crate::exit::Exit;

/// Run a model on pages, time its stages and compare with what the hardware allows
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
    /// Pages: a folder, one file, or a pattern such as 'scans/*.png'
    #[arg(long, value_name = "PATH")]
    inputs: Option<String>,
    /// Repeat an earlier run from its folder and say how far the two are apart
    #[arg(long, value_name = "RUN", conflicts_with_all = ["model", "weights", "inputs"])]
    from: Option<String>,
    /// Keep the decoded text of every page as predictions.jsonl
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
  llm-perf profile infer.max_new_tokens=64 dataset.sampling.repeats=10
  llm-perf profile --from latest
  llm-perf profile --json | jq .throughput

Without arguments a small DeepSeek-OCR with made-up weights reads pages that ship with the program. Models run on this
machine's processor, in single precision.";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let (config, first) = match &arguments.from {
        Some(selector) => earlier(arguments, selector)?,
        None => (compose(arguments, context)?, None),
    };
    let model = load(&config)?;
    warn_of_no_effect(arguments, context);
    let request = ProfileRequest {
        engine: config.get::<String>("engine")?,
        device: config.get::<String>("device")?,
        weights: config.get::<WeightSettings>("model")?,
        infer: config.get::<InferSettings>("infer")?,
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
    let bar = Bar::new(context);
    let profile = profile::profile(model, &request, run, &config.to_yaml(), &mut |progress| bar.show(progress), &|| {
        stopped.load(Ordering::Relaxed)
    });
    bar.clear();
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

/// The configuration with the flags put in as overrides, so that `config.yaml` says what was done.
fn compose(arguments: &Arguments, context: &Context) -> Result<Config, CliError> {
    let composer = Composer::new(context.config_dir.as_deref())?;
    let mut overrides = Vec::new();
    let chosen = arguments.overrides.iter().any(|text| text.contains("@model="));
    if arguments.model.is_none() && !chosen {
        overrides.push("model/deepseek_ocr/arch@model=deepseek_ocr.tiny".to_owned());
        overrides.push("model/deepseek_ocr/infer@infer=deepseek_ocr.tiny".to_owned());
    }
    if let Some(model) = &arguments.model {
        overrides.extend(model_overrides(model));
        if matches!(model.as_str(), "deepseek-ocr-tiny") {
            overrides.push("model/deepseek_ocr/infer@infer=deepseek_ocr.tiny".to_owned());
        }
    }
    if let Some(weights) = &arguments.weights {
        overrides.push(format!("model.weights={}", quoted(weights)));
    }
    if let Some(inputs) = &arguments.inputs {
        overrides.extend(input_overrides(inputs));
    }
    overrides.extend(arguments.overrides.iter().cloned());
    Ok(composer.compose(&overrides)?)
}

/// `--inputs` as overrides: a folder or file as it is, a pattern as the folder before its first wildcard and the rest.
fn input_overrides(inputs: &str) -> Vec<String> {
    let mut overrides = vec!["dataset=folder".to_owned()];
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
fn earlier(arguments: &Arguments, selector: &str) -> Result<(Config, Option<types::Metrics>), CliError> {
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
    let metrics = serde_json::from_str(&text).map_err(|error| CliError::usage(format!("cannot read {file}: {error}")))?;
    Ok((config, Some(metrics)))
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

/// Progress on standard error: a bar on a terminal, nothing elsewhere.
struct Bar<'a> {
    bar: ProgressBar,
    context: &'a Context,
}

impl<'a> Bar<'a> {
    fn new(context: &'a Context) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if context.messages.is_quiet() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, context }
    }

    fn show(&self, progress: Progress<'_>) {
        match progress {
            Progress::Doing(what) => {
                self.bar.set_message(what.to_owned());
                self.bar.tick();
            }
            Progress::Inference { done, total, input } => {
                self.bar.set_length(total);
                self.bar.set_position(done);
                self.bar.set_message(input.to_owned());
            }
            Progress::Note(text) => self.bar.suspend(|| self.context.messages.note(text)),
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
