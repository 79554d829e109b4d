//! Qwen2-MoE and Qwen3-MoE: Qwen's attention with experts, in the former beside a shared one that each token weighs.

use super::mixture::mixture;
use super::sizes::Sizes;
use super::{Definitions, Family, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, GroupedConfig, HeadNorms, MixtureConfig, SharedConfig,
};
use crate::config::fields::Fields;

pub(crate) const QWEN2: Family = Family {
    home: "transformers.models.qwen2_moe.modeling_qwen2_moe",
    names: names!("Qwen2Moe"),
    definitions: Definitions {
        mixture: "y = sum over the chosen experts of score * expert(x), plus sigmoid(shared_expert_gate(x)) * \
                  shared_expert(x)",
        ..Definitions::COMMON
    },
};

pub(crate) const QWEN3: Family = Family {
    home: "transformers.models.qwen3_moe.modeling_qwen3_moe",
    names: names!("Qwen3Moe"),
    definitions: super::qwen::QWEN3.definitions,
};

pub(in crate::config) fn read_qwen2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let inner = fields.size_or("shared_expert_intermediate_size", 5632)?;
    let shared = Some(SharedConfig { count: None, inner, gated: true });
    let attention = GroupedConfig { input_bias: fields.flag_or("qkv_bias", true)?, ..sizes.grouped() };
    let used = fields.flag_or("use_sliding_window", false)?;
    let most = if used { fields.count_or("max_window_layers", 28)? } else { 0 };
    let window = used.then_some(most);
    let sliding = sizes.sliding_through(fields, window, |index| index.is_multiple_of(2) && index < most)?;
    sparse(fields, &sizes, &QWEN2, shared, |index| attention.with_window(windows(fields, sliding[index])))
}

pub(in crate::config) fn read_qwen3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    qwen3(fields, &QWEN3)
}

pub(super) fn qwen3(fields: &Fields<'_>, family: &'static Family) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let bias = fields.flag_or("attention_bias", false)?;
    let attention =
        GroupedConfig { input_bias: bias, output_bias: bias, head_norms: Some(HeadNorms::EachHead), ..sizes.grouped() };
    sparse(fields, &sizes, family, None, |_| attention.with_window(windows(fields, true)))
}

/// The window of a layer that has one, when windows are used at all.
fn windows(fields: &Fields<'_>, sliding: bool) -> Option<u64> {
    let used = sliding && fields.flag_or("use_sliding_window", false).unwrap_or(false);
    used.then(|| fields.size_or("sliding_window", 4096).ok()).flatten()
}

/// Experts in every `decoder_sparse_step`th layer that is not named as dense.
fn sparse(
    fields: &Fields<'_>,
    sizes: &Sizes,
    family: &'static Family,
    shared: Option<SharedConfig>,
    attention: impl Fn(usize) -> GroupedConfig,
) -> Result<DecoderConfig, ConfigProblem> {
    // Checked once: later readers of these fields take what is right for granted.
    fields.flag_or("use_sliding_window", false)?;
    fields.count_or("sliding_window", 4096)?;
    let experts = match fields.optional_size("num_experts")? {
        Some(experts) => ("num_experts", experts),
        None => ("num_local_experts", fields.size("num_local_experts")?),
    };
    let inner = fields.size("moe_intermediate_size")?;
    let step = fields.size_or("decoder_sparse_step", 1)?;
    let dense = fields.optional_counts("mlp_only_layers")?.unwrap_or_default();
    let mut mixture = MixtureConfig { shared, ..mixture(fields, sizes, experts, inner)? };
    mixture.routing.normalise = fields.flag_or("norm_topk_prob", false)?;
    Ok(sizes.decoder(family, |index| {
        let layer = index as u64;
        let mixes = !dense.contains(&layer) && (layer + 1).is_multiple_of(step);
        let feed_forward = if mixes { FeedForwardConfig::Mixture(mixture) } else { sizes.gated() };
        (AttentionConfig::Grouped(attention(index)), feed_forward)
    }))
}
