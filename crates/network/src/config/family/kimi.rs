//! Kimi Linear and Ling 3.0: linear attention in most layers, and latent attention without rotary positions or with gates in the
//! others. LongCat-Flash: two attentions and two feed-forwards to a mixture.

use super::deepseek::latent;
use super::described::Described;
use super::mixture::{PLAIN_GATE, mixture};
use super::sizes::{Sizes, WIDEST_HEAD};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, Correction, DecoderConfig, DeltaConfig, DeltaProjections, FeedForwardConfig, GateConfig,
    LatentConfig, MixtureConfig, SharedConfig,
};
use crate::config::fields::Fields;

pub(in crate::config) fn read_kimi(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let older = fields.optional_object("linear_attn_config")?;
    let size = |name: &str, old: &str, default: u64| {
        let found = match &older {
            Some(older) if older.states(old) => older.size(old)?,
            _ => fields.size_or(name, default)?,
        };
        fields.at_most(name, found, WIDEST_HEAD)
    };
    let (heads, width) = (size("linear_num_heads", "num_heads", 32)?, size("linear_head_dim", "head_dim", 128)?);
    let delta = DeltaConfig {
        key_heads: heads,
        value_heads: heads,
        key_width: width,
        value_width: width,
        kernel: size("linear_conv_kernel_dim", "short_conv_kernel_size", 4)?,
        projections: DeltaProjections::Channels { rank: Some(width) },
    };
    // Counted from one.
    let full = older.map(|older| older.optional_counts("full_attn_layers")).transpose()?.flatten();
    let linear = sizes.kinds(fields, ["full_attention", "linear_attention"], |index| match &full {
        Some(full) => !full.contains(&(index + 1)),
        None => index == 0 || !index.is_multiple_of(4),
    })?;
    let attention = LatentConfig { rotary: None, ..latent(fields, &sizes)? };
    with_experts(fields, &sizes, row, (attention, delta, &linear))
}

/// Ling 3.0: gates and decays of one projection each, and a gate for each head of latent attention.
pub(in crate::config) fn read_ling(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let bounded = |name: &str, default: u64| fields.at_most(name, fields.size_or(name, default)?, WIDEST_HEAD);
    // Files of the class state both: the width of a head there is that of its rotated part.
    let width = bounded(fields.spelling(&["linear_head_dim", "head_dim"]).unwrap_or("head_dim"), 128)?;
    let delta = DeltaConfig {
        key_heads: sizes.heads,
        value_heads: sizes.heads,
        key_width: width,
        value_width: width,
        kernel: bounded("short_conv_kernel_size", 4)?,
        projections: DeltaProjections::Channels { rank: None },
    };
    let every = fields.size_or("layer_group_size", 6)?;
    let linear =
        sizes.kinds(fields, ["full_attention", "linear_attention"], |index| !(index + 1).is_multiple_of(every))?;
    let attention = LatentConfig { gated: true, query_rank: None, ..latent(fields, &sizes)? };
    with_experts(fields, &sizes, row, (attention, delta, &linear))
}

/// Layers of both kinds of attention, with experts behind dense ones.
fn with_experts(
    fields: &Fields<'_>,
    sizes: &Sizes,
    row: &'static Described,
    (attention, delta, linear): (LatentConfig, DeltaConfig, &[bool]),
) -> Result<DecoderConfig, ConfigProblem> {
    let feed_forwards = row.feed_forwards(fields, sizes)?;
    Ok(sizes.decoder(&row.family, |index| {
        let attention = if linear[index] { AttentionConfig::Delta(delta) } else { AttentionConfig::Latent(attention) };
        (attention, feed_forwards[index])
    }))
}

/// One of its layers is two of ours. A token chooses among experts that compute and those that do not: it goes to as many of the
/// first as their share, if all are chosen alike.
pub(in crate::config) fn read_longcat(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let dense = fields.size_of(&["ffn_hidden_size", "intermediate_size"])?;
    let mut sizes = Sizes::read_inner(fields, 10_000_000.0, dense)?;
    let layers = fields.layers("num_layers")?;
    sizes.layers = fields.at_most("num_layers", 2 * layers, crate::config::fields::MOST_LAYERS)?;
    let experts = fields.size("n_routed_experts")?;
    let idle = fields.count_or("zero_expert_num", 0)?;
    let inner = fields.size_of(&["expert_ffn_hidden_size", "moe_intermediate_size"])?;
    let gate = GateConfig {
        single_precision: true,
        bias: fields.flag_or("router_bias", false)?,
        correction: Some(Correction::Buffer),
        ..PLAIN_GATE
    };
    let mut mixture = MixtureConfig {
        gate,
        idle,
        shared: Some(SharedConfig { count: None, inner: dense, gated: false }),
        ..mixture(fields, &sizes, ("n_routed_experts", experts), inner)?
    };
    mixture.routing.per_token = (mixture.routing.per_token * experts).div_ceil(experts + idle);
    mixture.routing.normalise = false;
    mixture.routing.scale = fields.number_or("routed_scaling_factor", 1.0)?;
    let attention = AttentionConfig::Latent(latent(fields, &sizes)?);
    Ok(sizes.decoder(&row.family, |index| {
        let feed_forward = if index.is_multiple_of(2) { FeedForwardConfig::Mixture(mixture) } else { sizes.gated() };
        (attention, feed_forward)
    }))
}

#[cfg(test)]
mod tests {
    use crate::Model;
    use crate::config::ModelConfig;

    /// The sizes of LongCat-Flash-Chat as published, whose card says 560B parameters and 27B active on average.
    #[test]
    fn longcat_has_the_parameters_of_its_card_without_experts_that_compute_nothing() {
        let text = r#"{"architectures": ["LongcatFlashForCausalLM"], "model_type": "longcat_flash", "hidden_size": 6144,
            "num_layers": 28, "num_attention_heads": 64, "vocab_size": 131072, "ffn_hidden_size": 12288,
            "expert_ffn_hidden_size": 2048, "n_routed_experts": 512, "zero_expert_num": 256, "moe_topk": 12,
            "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "rms_norm_eps": 1e-05, "routed_scaling_factor": 6.0}"#;
        let config = ModelConfig::from_json("config.json", text).unwrap();
        let parameters = Model::new(&config).blueprint().parameters_under("");
        // transformers 5 counts 256 more first projections, of the experts that hand on what they are given:
        // 741,053,585,408 less 28 * 256 * 4096 * 6144.
        assert_eq!(parameters, 560_664_958_976);
        let active = parameters - config.decoder().unwrap().idle_parameters();
        assert!((26_000_000_000..28_000_000_000).contains(&active), "{active}");
    }
}
