//! Llama 4: chunks instead of windows, layers without positions that see everything, one expert of many and a shared one.

use super::described::Described;
use super::mixture::{PLAIN_GATE, mixture};
use super::sizes::Sizes;
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, ExpertStorage, FeedForwardConfig, GateConfig, GroupedConfig, HeadNorms,
    MixtureConfig, ScoreKind, SharedConfig,
};
use crate::config::fields::Fields;

pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = row.sizes(fields)?;
    let expert = sizes.intermediate;
    sizes.intermediate = fields.size_or("intermediate_size_mlp", 16384)?;
    let attention = row.attention(fields, &sizes)?;
    let chunked = chunked(fields, &sizes)?;
    let normed = fields.flag_or("use_qk_norm", true)?.then_some(HeadNorms::Bare);
    let chunk = fields.size_or_none("attention_chunk_size")?;
    let step = fields.size_or("interleave_moe_layer_step", 1)?;
    let mixed = fields.optional_counts("moe_layers")?;
    let experts = ("num_local_experts", fields.size_or("num_local_experts", 16)?);
    let gate = GateConfig { scores: ScoreKind::Sigmoid, ..PLAIN_GATE };
    let shared = Some(SharedConfig { count: None, inner: expert, gated: false });
    let storage = ExpertStorage::Halves;
    let mut mixture = MixtureConfig { gate, shared, storage, ..mixture(fields, &sizes, experts, expert)? };
    mixture.routing.normalise = false;
    mixture.routing.scores_inputs = true;
    let mut decoder = sizes.decoder(&row.family, |index| {
        let attention = if chunked[index] {
            let mut attention = GroupedConfig { head_norms: normed, ..attention.with_window(chunk) };
            attention.detail.chunked = chunk.map(|_| 0);
            attention
        } else {
            GroupedConfig { rotary: None, ..attention }
        };
        let index = index as u64;
        let mixes = match &mixed {
            Some(layers) => layers.contains(&index),
            None => (index + 1).is_multiple_of(step),
        };
        let feed_forward = if mixes { FeedForwardConfig::Mixture(mixture) } else { sizes.gated() };
        (AttentionConfig::Grouped(attention), feed_forward)
    });
    // Queries of layers without positions are scaled from this position on; older files have a number for the choice.
    let tuned = !matches!(fields.flag_or("attn_temperature_tuning", true), Ok(false));
    let floor = fields.size_or("floor_scale", 8192)?;
    decoder.exact_positions = tuned.then(|| floor - 1);
    Ok(decoder)
}

/// Which layers have positions, and see one chunk.
fn chunked(fields: &Fields<'_>, sizes: &Sizes) -> Result<Vec<bool>, ConfigProblem> {
    if let Some(listed) = sizes.flags(fields, "no_rope_layers")? {
        return Ok(listed);
    }
    let every = fields.size_or("no_rope_layer_interval", 4)?;
    sizes.kinds(fields, ["full_attention", "chunked_attention"], |index| !(index + 1).is_multiple_of(every))
}
