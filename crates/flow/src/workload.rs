//! `workload`: a model on its inputs and nothing else: what profilers launch.
//!
//! Stages begin and end with their ranges in the domain `LLM`, as in a measured run. No operation is recorded, nothing is
//! written, and warm-up and repeats are those of the configuration.

use types::{Sample, Stage};

use crate::model::LoadedModel;
use crate::profile::{self, ProfileError, ProfileRequest, Progress};
use crate::torch::{TorchModel, TorchRequest};

/// Runs the model on the native engine and gives back the times of its stages.
pub fn native(
    model: LoadedModel,
    request: &ProfileRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Sample>, ProfileError> {
    profile::bare(model, request, progress, stop)
}

/// Runs the model in PyTorch and gives back the times of its stages.
pub fn torch(
    model: &TorchModel,
    request: &TorchRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Sample>, ProfileError> {
    crate::torch::bare(model, request, progress, stop)
}

/// The times of the stages in a few lines, for a terminal; warm-up is left out.
pub fn terminal(samples: &[Sample]) -> String {
    let measured = |stage: Stage| {
        let of_stage = samples.iter().filter(move |sample| !sample.warmup && sample.stage == stage);
        of_stage.map(|sample| sample.wall_ns.get() as f64 / 1e6).collect::<Vec<f64>>()
    };
    let stages =
        Stage::ALL.into_iter().filter_map(|stage| Some((stage, analysis::statistics::describe(&measured(stage))?)));
    report::profile::stage_times_terminal(&stages.collect::<Vec<_>>())
}
