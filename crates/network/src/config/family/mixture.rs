//! Mixtures of experts as families state them.

use super::sizes::Sizes;
use crate::Routing;
use crate::config::ConfigProblem;
use crate::config::decoder::{ExpertStorage, GateConfig, MixtureConfig, ScoreKind, SharedConfig};
use crate::config::fields::Fields;

/// Most experts that are taken seriously: a mixture is built expert by expert.
const MOST_EXPERTS: u64 = 10_000;

/// A gate without anything particular.
pub(super) const PLAIN_GATE: GateConfig =
    GateConfig { scores: ScoreKind::Softmax, single_precision: false, bias: false, correction: None, groups: None };

/// A mixture of as many experts as field `experts` says, each of `inner` width, with scores that sum to one.
pub(super) fn mixture(
    fields: &Fields<'_>,
    sizes: &Sizes,
    experts: (&str, u64),
    inner: u64,
) -> Result<MixtureConfig, ConfigProblem> {
    let (name, experts) = experts;
    let per_token = match fields.uniform_size("num_experts_per_tok")? {
        Some(per_token) => per_token,
        None => fields.size_of(&["moe_k", "moe_topk", "top_k_experts", "num_experts_per_tok"])?,
    };
    if per_token > experts {
        return Err(fields.wrong("num_experts_per_tok", per_token, format!("at most `{name}` ({experts})")));
    }
    fields.at_most(name, experts, MOST_EXPERTS)?;
    Ok(MixtureConfig {
        expert: sizes.gated_of(inner),
        gated: true,
        latent: None,
        storage: ExpertStorage::Listed,
        routing: Routing { experts, per_token, normalise: true, scale: 1.0, scores_inputs: false },
        idle: 0,
        gate: PLAIN_GATE,
        shared: None,
    })
}

/// Experts every token passes through, each as wide as a routed one.
pub(super) fn shared(count: u64, inner: u64) -> Option<SharedConfig> {
    (count > 0).then_some(SharedConfig { count: Some(count), inner: inner.saturating_mul(count), gated: false })
}
