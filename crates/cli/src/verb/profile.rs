//! `llm-perf profile`: run a model, time its stages, and say how far that is from what the hardware allows.

mod command;
pub(super) mod composition;
mod progress;
mod recording;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flow::RunRequest;
use flow::profile::{self, Feed, ProfileRequest, WeightSettings};
use flow::target::Engine;
use flow::torch::{self, TorchRequest, TorchSettings};
use flow::workload;
use types::Exit;

use crate::arguments::Context;
use crate::config::Config;
use crate::error::CliError;
use crate::target::TargetArguments;
use composition::{Composition, Subject, compose, load, load_torch};
pub(super) use progress::Display;
use recording::RecordingArguments;

/// Run a model, time its stages and compare with what the hardware allows
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Changes to the configuration, such as infer.max_new_tokens=16 or dataset.sampling.repeats=5
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    #[command(flatten)]
    target: TargetArguments,
    /// Repeat an earlier run from its folder and say how far the two are apart
    #[arg(long, value_name = "RUN", conflicts_with_all = ["engine", "model", "weights", "inputs", "device", "command"])]
    from: Option<String>,
    /// Hold the analytic model's FLOPs against torch's own counter and print both (torch only)
    #[arg(long)]
    check_flops: bool,
    /// Keep the decoded text of every input as predictions.jsonl
    #[arg(long)]
    predictions: bool,
    #[command(flatten)]
    recording: RecordingArguments,
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

  llm-perf profile --engine torch --model path/to/model --check-flops
  llm-perf profile --engine torch --model path/to/config.json --weights synthetic --device cuda:0
  llm-perf profile --engine torch --model my_package.models:build
  llm-perf profile -- python serve.py --port 8000
  llm-perf profile --window prefill,decode_step:8..16 -- python generate.py

Without arguments a small DeepSeek-OCR with made-up weights reads pages that ship with the program.
Models that read text are given prompts that ship with it. The native engine runs models on this
machine's processor, in single precision; the torch engine in your own interpreter, on any device.";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    if arguments.target.is_command() {
        return command::run(arguments, context);
    }
    let (config, subject, first) = match &arguments.from {
        Some(selector) => {
            let (config, first) = earlier(arguments, selector)?;
            let subject = match Engine::find(&config.get::<String>("engine")?) {
                Some(Engine::Torch) => Subject::Torch(Box::new(load_torch(&config)?)),
                _ => Subject::Native(Box::new(load(&config)?)),
            };
            (config, subject, Some(first))
        }
        None => {
            let Composition { config, subject } = compose(&arguments.target, &arguments.overrides, context)?;
            (config, subject, None)
        }
    };
    warn_of_no_effect(arguments, &subject, context);
    let request =
        ProfileRequest { keep_predictions: arguments.predictions, ..request(&config, subject.feed(), context)? };
    let run = RunRequest {
        root: config.get::<PathBuf>("run.output_root")?,
        out: arguments.out.clone(),
        ..RunRequest::new("profile", std::env::args().collect())
    };
    let stopped = stop_on_interrupt();
    let display = Display::new(context);
    let mut show = |progress: profile::Progress<'_>| display.show(&progress);
    let stop = || stopped.load(Ordering::Relaxed);
    let profile = match subject {
        Subject::Native(model) => profile::profile(*model, &request, run, &config.to_yaml(), &mut show, &stop),
        Subject::Torch(model) => {
            let torch = composition::torch_settings(&arguments.target, &config, &arguments.overrides)?;
            let torch = TorchSettings { check_flops: arguments.check_flops, ..torch };
            let request = TorchRequest { profile: request, torch };
            torch::profile(*model, &request, run, &config.to_yaml(), &mut show, &stop)
        }
    };
    display.clear();
    let profile = profile?;
    if let Some(rank) = profile.part_of_rank {
        let part = profile.folder.join("ranks").join(rank.to_string());
        context.messages.print(&format!("rank {rank}\n{}", workload::terminal(&profile.metrics.samples)))?;
        context.messages.note(format!("rank {rank} left its part in {}; rank 0 writes the report", part.display()));
        return Ok(Exit::Done);
    }
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

/// What a configuration asks for.
pub(super) fn request(config: &Config, feed: Feed, context: &Context) -> Result<ProfileRequest, CliError> {
    Ok(ProfileRequest {
        engine: config.get::<String>("engine")?,
        device: config.get::<String>("device")?,
        weights: config.get::<WeightSettings>("model")?,
        infer: composition::infer(config, feed)?,
        dataset: composition::dataset(config)?,
        last_logits_only: config.get::<String>("workload.logits")? == "last",
        keep_predictions: false,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        config_dir: context.config_dir.clone(),
    })
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

/// Parts of the configuration that this verb does not read.
const WITHOUT_EFFECT: [&str; 4] = ["workload.", "pipeline.", "runner.", "hardware="];

/// Says which overrides change nothing here, so that nobody believes they did.
fn warn_of_no_effect(arguments: &Arguments, subject: &Subject, context: &Context) {
    let torch = matches!(subject, Subject::Torch(_));
    if arguments.check_flops && !torch {
        context.messages.warning("`--check-flops` has no effect on the native engine");
    }
    for text in &arguments.overrides {
        let key = text.trim_start_matches('+');
        if torch && (key.starts_with("pipeline.torch_profiler") || key.starts_with("hardware=")) {
            continue;
        }
        if WITHOUT_EFFECT.iter().any(|part| key.starts_with(part)) && !key.starts_with("workload.logits=") {
            context.messages.warning(format!("`{text}` has no effect on `profile`"));
        }
    }
}

/// Set when the user asks to stop; a second time ends the program at once.
pub(super) fn stop_on_interrupt() -> Arc<AtomicBool> {
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
