//! The model that was named against the one in the trace.

use analysis::{Fit, ModelWeights, fit};
use types::timeline::Timeline;
use types::{QualityCounter, Severity};

use super::model::LoadedModel;

/// How the model fits the trace.
pub(super) fn of(model: &LoadedModel, timeline: &Timeline) -> Fit {
    fit(timeline, &weights(model))
}

/// The model's matrices and its table of tokens, by the names of published checkpoints.
fn weights(model: &LoadedModel) -> ModelWeights {
    let mut weights = ModelWeights::default();
    for (_, param) in model.network.blueprint().params() {
        let Ok(shape) = <[u64; 2]>::try_from(param.shape.dims()) else { continue };
        if param.path.ends_with("embed_tokens.weight") {
            weights.table = Some(shape);
        } else if !param.buffer && param.path.ends_with(".weight") && !param.path.contains(".experts.") {
            *weights.matrices.entry(shape).or_default() += 1;
        }
    }
    weights
}

/// What contradicts the model, told.
pub(super) fn misfit(model: &LoadedModel, fit: &Fit) -> Option<QualityCounter> {
    (!fit.misfits.is_empty()).then(|| QualityCounter {
        counter: "model_differs_from_trace".to_owned(),
        value: fit.misfits.len() as u64,
        share: None,
        severity: Severity::Warning,
        remedy: format!(
            "{} does not match the trace ({}), so nothing is reported relative to it; pass the model that ran",
            model.id,
            fit.misfits.join("; ")
        ),
    })
}
