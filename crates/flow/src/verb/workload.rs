//! `workload`: a model on its inputs and nothing else: what profilers launch.
//!
//! Stages start and end with their ranges in the domain `LLM`, as in a measured run. No operation is recorded, nothing is
//! written, and warm-up and repeats are those of the configuration.

use std::path::Path;

use types::{Sample, Stage, UserError};

pub use crate::runner::bare::{BareRun, PreparedProgram};
pub use crate::runner::native::bare as native;
pub use crate::runner::torch::bare as torch;
pub use collect::process::send_answer;

use crate::runner::torch::{TorchModel, TorchRequest, prepared};

/// Writes all that PyTorch needs to run the model into `folder`, and gives back what to start. For profilers that do not
/// treat a process they have started as they treat its children: Nsight Compute passes over a launch in 0.4 ms in
/// the former and in 0.1 s in the latter (`docs/benchmarks.md`).
pub fn prepare(model: &TorchModel, request: &TorchRequest, folder: &Path) -> Result<PreparedProgram, UserError> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let command = prepared(model, request, &folder)?;
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let argv = command.words().map(text);
    let environment = command.environment.iter().map(|(name, value)| (text(name), text(value)));
    Ok(PreparedProgram { argv: argv.collect(), environment: environment.collect() })
}

/// The times of the stages in a few lines, for a terminal; warm-up is left out.
pub fn terminal(samples: &[Sample]) -> String {
    let measured = |stage: Stage| {
        let of_stage = samples.iter().filter(move |sample| !sample.warmup && sample.stage == stage);
        of_stage.map(|sample| sample.wall_ns.get() as f64 / 1e6).collect::<Vec<f64>>()
    };
    let stages =
        Stage::ALL.into_iter().filter_map(|stage| Some((stage, analysis::statistics::describe(&measured(stage))?)));
    report::pages::run::stage_times_terminal(&stages.collect::<Vec<_>>())
}
