//! The model that was named against the one in the trace.

use analysis::{Fit, ModelWeights, fit};
use types::timeline::Timeline;
use types::{Caveat, CaveatKind, Facts, QualityCounter, Severity};

use crate::pipeline::model::LoadedModel;

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

/// That the model that was named did not run.
pub(super) fn caveat(model: &LoadedModel, fit: &Fit) -> Caveat {
    let misfits: Vec<Facts> = fit.misfits.iter().map(|misfit| Facts::new().with("misfit", misfit.clone())).collect();
    Caveat::new(CaveatKind::ModelMisfit, Facts::new().with("model", &model.id).with("misfits", misfits))
}

/// What contradicts the model, told.
pub(super) fn misfit(model: &LoadedModel, fit: &Fit) -> Option<QualityCounter> {
    let reasons = fit.misfits.iter().map(|reason| Facts::new().with("reason", reason.clone()));
    let facts = Facts::new().with("model", &model.id).with("reasons", reasons.collect::<Vec<_>>());
    let counter = QualityCounter::some("model_differs_from_trace", Severity::Warning, fit.misfits.len() as u64);
    counter.map(|counter| counter.facts(facts))
}
