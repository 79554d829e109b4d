//! `llm-perf workload`: the bare model on its inputs, with the ranges of its stages: what profilers launch.

use std::path::{Path, PathBuf};

use config::Overrides;
use flow::StopRequest;
use flow::torch::TorchRequest;
use flow::workload;
use types::{Exit, UserError};

use crate::context::Context;
use crate::resolution::{self, EngineModel, Resolution, engine};
use crate::target::TargetArguments;

/// Run only the model, with NVTX ranges around its stages, for a profiler to launch
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// Configuration overrides (key=value), such as dataset.sampling.repeats=1 or infer.max_new_tokens=16
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// Write the files that PyTorch needs to a new or empty folder and print the command that runs the model, for
    /// tools that start the interpreter themselves (torch only)
    #[arg(long, value_name = "DIR")]
    prepare: Option<PathBuf>,
    /// Run the model once more under torch.profiler and write the trace to a file (torch only)
    #[arg(long, value_name = "FILE", conflicts_with = "prepare")]
    operators: Option<PathBuf>,
    /// Print the inputs and the time of each stage and repeat as JSON, or the command of --prepare
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let target = &arguments.target;
    if target.is_command() {
        return Err(UserError::usage("`workload` runs a model, not a command").hint("run the command directly"));
    }
    let given = Overrides::typed(&arguments.overrides)?;
    let engine = engine::choose(target, &given, context)?;
    let resolution = resolution::resolve_run(engine, target, &given, context)?;
    if let Some(folder) = &arguments.prepare {
        return prepare(arguments, &resolution, folder, context);
    }
    let Resolution { config, model } = resolution;
    let request = resolution::profile_request(target, &config, &model, context)?;
    let interrupt = StopRequest::catch();
    let stop = || interrupt.is_set();
    let outcome = match model {
        EngineModel::Native(_) if arguments.operators.is_some() => {
            return Err(UserError::usage("`--operators` requires torch.profiler, but the engine is native")
                .hint("add --engine torch, or use `llm-perf profile` for the operators of the native engine"));
        }
        EngineModel::Native(model) => {
            resolution::refuse_unread("workload", &config, &given)?;
            context.progress(|display| {
                workload::native(*model, &request, &mut |progress| display.show(&progress), &stop)
            })?
        }
        EngineModel::Torch(model) => {
            let request = TorchRequest { profile: request, torch: resolution::torch_settings(target, &config)? };
            resolution::refuse_unread("workload", &config, &given)?;
            context.progress(|display| {
                let operators = arguments.operators.as_deref();
                workload::torch(&model, &request, operators, &mut |progress| display.show(&progress), &stop)
            })?
        }
    };
    workload::send_answer(&outcome)?;
    context.messages.print_answer(arguments.json, &outcome, || workload::terminal(&outcome.samples))
}

/// Prints the command that runs the model, and leaves its files in `folder`.
fn prepare(
    arguments: &Arguments,
    resolution: &Resolution,
    folder: &Path,
    context: &Context,
) -> Result<Exit, UserError> {
    let EngineModel::Torch(model) = &resolution.model else {
        return Err(UserError::usage("`--prepare` requires the torch engine, but the engine is native")
            .hint("add --engine torch, or start `llm-perf workload` directly"));
    };
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(UserError::usage(format!("{} is not empty", folder.display()))
            .hint("name a new or empty folder; --prepare writes several files"));
    }
    let torch = resolution::torch_settings(&arguments.target, &resolution.config)?;
    let request = TorchRequest {
        profile: resolution::profile_request(&arguments.target, &resolution.config, &resolution.model, context)?,
        torch,
    };
    let prepared = workload::prepare(model, &request, folder)?;
    workload::send_answer(&prepared)?;
    context.messages.print_answer(arguments.json, &prepared, || format!("{}\n", prepared.line()))
}
