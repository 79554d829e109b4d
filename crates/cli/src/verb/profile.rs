//! `llm-perf profile`: run a model, time its stages, and say how far that is from what the hardware allows.

mod command;
mod place;
mod recording;
mod runs;
mod tries;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use config::{Config, Overrides};
use flow::StopRequest;
use flow::profile::{self, ProfileRequest};
use flow::runs::{RunPurpose, StoredRun};
use flow::target::Engine;
use flow::torch::{self, TorchRequest, TorchSettings};
use flow::workload;
use types::{Document, Exit, Metrics, Named, UserError};

use crate::context::Context;
use crate::resolution::{self, EngineModel, Resolution, engine};
use crate::target::TargetArguments;
use place::RunPlace;
use recording::RecordingArguments;
use runs::RunArguments;
use tries::TryArguments;

/// Measure a model or any command and compare it with the roofline
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("any_command").args(["command", "lines"]).multiple(true))]
pub(crate) struct Arguments {
    /// Configuration overrides (key=value), such as infer.max_new_tokens=16 or dataset.sampling.repeats=5
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// Repeat an earlier run with its configuration and show the difference
    #[arg(long, value_name = "RUN", conflicts_with_all = ["engine", "model", "weights", "inputs", "device", "hardware", "command"])]
    from: Option<OsString>,
    /// Compare the modelled FLOPs with PyTorch's FLOP counter (torch only)
    #[arg(long)]
    check_flops: bool,
    /// Write the generated text of each input to predictions.jsonl
    #[arg(long)]
    predictions: bool,
    #[command(flatten)]
    tries: TryArguments,
    #[command(flatten)]
    recording: RecordingArguments,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Do not save the run
    #[arg(long, conflicts_with_all = ["out", "predictions"])]
    no_save: bool,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    runs: Box<RunArguments>,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let given = Overrides::typed(&arguments.overrides)?;
    if arguments.target.is_command() || !arguments.runs.lines.is_empty() {
        return command::run(arguments, &given, context);
    }
    if let Some(flag) = arguments.runs.first_given() {
        let error = UserError::usage(format!("`{flag}` applies only to a command"));
        let error = match flag {
            "--runs" => error.hint("for a model, set dataset.sampling.repeats=N"),
            "--warmup" => error.hint("for a model, set dataset.sampling.warmup_rounds=N"),
            _ => error,
        };
        return Err(error.hint("put the command last, after `--`: llm-perf profile --runs 10 -- COMMAND"));
    }
    let tries = arguments.tries.settings()?;
    let (Resolution { config, model }, first) = match &arguments.from {
        Some(selector) => earlier(selector, &given, context).map(|(resolution, first)| (resolution, Some(first)))?,
        None => {
            let engine = engine::choose(&arguments.target, &given, context)?;
            (resolution::resolve_run(engine, &arguments.target, &given, context)?, None)
        }
    };
    let request = ProfileRequest {
        tries,
        keep_predictions: arguments.predictions,
        ..resolution::profile_request(&arguments.target, &config, &model, context)?
    };
    let place = RunPlace::of(arguments)?;
    let run = || place.request(&config, &given);
    let (yaml, interrupt) = (config.to_yaml(), StopRequest::catch());
    let stop = || interrupt.is_set();
    let (profile, part_of_rank) = match model {
        EngineModel::Native(_) if arguments.check_flops => {
            return Err(UserError::usage("`--check-flops` requires PyTorch, but the engine is native")
                .hint("add --engine torch"));
        }
        EngineModel::Native(model) => {
            let run = run()?;
            let ended = context.progress(|display| {
                profile::profile(*model, &request, run, &yaml, &mut |progress| display.show(&progress), &stop)
            })?;
            (ended, None)
        }
        EngineModel::Torch(model) => {
            let torch = resolution::torch_settings(&arguments.target, &config)?;
            let torch = TorchSettings { check_flops: arguments.check_flops, ..torch };
            let (request, run) = (TorchRequest { profile: request, torch }, run()?);
            context.progress(|display| {
                torch::profile(*model, &request, run, &yaml, &mut |progress| display.show(&progress), &stop)
            })?
        }
    };
    if let Some(rank) = part_of_rank {
        let part = profile.folder.join("ranks").join(rank.to_string());
        context.messages.print(&format!("rank {rank}\n{}", workload::terminal(&profile.value.times.samples)))?;
        context.messages.note(format!("rank {rank}: results in {}; rank 0 writes the report", part.display()));
        return Ok(Exit::Done);
    }
    context.messages.print_answer(arguments.json, &profile.value, || {
        let distance = first.iter().map(|first| format!("\n{}", flow::compare::stages(first, &profile.value)));
        profile::terminal(&profile.value) + &distance.collect::<String>()
    })?;
    Ok(context.messages.finish(&profile.missing, &place.kept(&profile.folder)))
}

/// The configuration and model of an earlier run, and its metrics.
fn earlier(selector: &OsStr, given: &Overrides, context: &Context) -> Result<(Resolution, Metrics), UserError> {
    let run = flow::runs::find(Path::new(flow::runs::DEFAULT_ROOT), selector, RunPurpose::Repeat)?;
    if !flow::runs::is_repeatable(&run) {
        let what = match run.manifest().verb.as_str() {
            "profile" => "it ran a command, not a model".to_owned(),
            verb => format!("it was made by `{verb}`"),
        };
        return Err(UserError::usage(format!("--from cannot repeat {}: {what}", run.path().display()))
            .hint(format!("run its command again: {}", run.manifest().command.join(" "))));
    }
    let read = |name: &str| {
        let file = run.path().join(name);
        run.read_text(name)
            .map_err(|error| UserError::usage(format!("cannot read {}: {error}", file.display())))
            .map(|text| (file.display().to_string(), text))
    };
    let (file, text) = read("config.yaml")?;
    let config = Config::from_resolved(&file, &text, given)?;
    let (file, text) = read("metrics.json")?;
    let metrics = Metrics::from_json(text.as_bytes())
        .map_err(|error| UserError::usage(format!("cannot read {file}: {error}")))?;
    let engine = Engine::find(&config.get::<String>("engine")?).unwrap_or(Engine::Native);
    let model = resolution::model::load_for_engine(engine, &config, None)?;
    let resolution = Resolution { config, model };
    // Other inputs are another run only where the user did not ask for them.
    if !["dataset", "inputs", "infer"].iter().any(|part| given.touches(part)) {
        warn_of_changed_inputs(&run, &resolution, context);
    }
    Ok((resolution, metrics))
}

/// Says which inputs are not what the earlier run recorded. A run that recorded none says nothing, and inputs that cannot be found
/// fail where they are used.
fn warn_of_changed_inputs(run: &StoredRun, resolution: &Resolution, context: &Context) {
    let Ok(recorded) = flow::runs::recorded_inputs(run) else {
        return context
            .messages
            .warning("cannot check whether the inputs changed: inputs.yaml of the earlier run is not readable");
    };
    if let Ok(now) = resolution::inputs::expected(&TargetArguments::default(), resolution) {
        for difference in flow::runs::changed_inputs(&recorded, &now.document) {
            context.messages.warning(difference);
        }
    }
}
