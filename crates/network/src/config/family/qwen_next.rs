//! Qwen3-Next, Qwen3.5 and their mixtures, and Olmo Hybrid: three layers of gated delta-net to one of attention.

use super::mixture::mixture;
use super::sizes::{Sizes, WIDEST_HEAD};
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, DeltaConfig, DeltaProjections, FeedForwardConfig, GroupedConfig, HeadNorms,
    MixtureConfig, NormKind, NormPlacement, OutputGate, SharedConfig,
};
use crate::config::fields::Fields;

const COMMON: Definitions = Definitions {
    layer: "h = x + attention(input_layernorm(x)); y = h + mlp(post_attention_layernorm(h)), where attention is \
            linear_attn in three of four layers and self_attn in the fourth",
    attention: "y = o_proj(sigmoid(gate) * softmax(q k^T / sqrt(d), causal) v) with q and k normalised per head, then \
                partly rotated; q_proj also produces the gate",
    norm: "y = x / sqrt(mean(x^2) + eps) * (1 + weight)",
    mixture: "y = sum over the chosen experts of score * expert(x), plus sigmoid(shared_expert_gate(x)) * shared_expert(x)",
    ..Definitions::COMMON
};

pub(crate) const NEXT: Family = Family {
    home: "transformers.models.qwen3_next.modeling_qwen3_next",
    names: Names { delta: "Qwen3NextGatedDeltaNet", gated_norm: "Qwen3NextRMSNormGated", ..names!("Qwen3Next") },
    definitions: COMMON,
};

pub(crate) const DENSE: Family = Family {
    home: "transformers.models.qwen3_5.modeling_qwen3_5",
    names: Names {
        model: "Qwen3_5TextModel",
        delta: "Qwen3_5GatedDeltaNet",
        gated_norm: "Qwen3_5RMSNormGated",
        ..names!("Qwen3_5")
    },
    definitions: COMMON,
};

pub(crate) const SPARSE: Family = Family {
    home: "transformers.models.qwen3_5_moe.modeling_qwen3_5_moe",
    names: Names {
        model: "Qwen3_5MoeTextModel",
        delta: "Qwen3_5MoeGatedDeltaNet",
        gated_norm: "Qwen3_5MoeRMSNormGated",
        ..names!("Qwen3_5Moe")
    },
    definitions: COMMON,
};

pub(crate) const OLMO: Family = Family {
    home: "transformers.models.olmo_hybrid.modeling_olmo_hybrid",
    names: Names {
        layer: "OlmoHybridAttentionDecoderLayer",
        state_space_layer: Some("OlmoHybridLinearAttentionDecoderLayer"),
        delta: "OlmoHybridGatedDeltaNet",
        gated_norm: "OlmoHybridRMSNormGated",
        layer_norms: [
            "input_layernorm",
            "post_attention_layernorm",
            "post_attention_layernorm",
            "post_feedforward_layernorm",
        ],
        ..names!("OlmoHybrid")
    },
    definitions: Definitions {
        layer: "h = x + attention(norm(x)); y = h + mlp(norm(h)) with linear attention, else h = x + norm(self_attn(x)); \
                y = h + norm(mlp(h))",
        attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v) with q and k normalised over all heads",
        ..Definitions::COMMON
    },
};

/// Every family of this file.
pub(crate) const FAMILIES: &[&Family] = &[&NEXT, &DENSE, &SPARSE, &OLMO];

/// Olmo's attention without positions where the file states no base for them.
pub(in crate::config) fn read_olmo(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let rotates = match fields.optional_object("rope_parameters")? {
        None => false,
        Some(stated) => stated.optional_number("rope_theta")?.is_some(),
    };
    let bias = fields.flag_or("attention_bias", false)?;
    let attention = GroupedConfig {
        input_bias: bias,
        output_bias: bias,
        head_norms: Some(HeadNorms::AllHeads),
        rotary: Some(sizes.rotary).filter(|_| rotates),
        ..sizes.grouped()
    };
    let keys = fields.size_or("linear_num_key_heads", sizes.heads)?;
    let width = fields.size_or("linear_key_head_dim", (sizes.width * 3 / 4 / keys).max(1))?;
    let defaults = [keys, sizes.heads, width, 2 * width];
    let mut decoder = mixed(fields, &sizes, &OLMO, (attention, defaults, DeltaProjections::Apart), |_| sizes.gated())?;
    decoder.norm.placement = NormPlacement::AfterSoftmax;
    Ok(decoder)
}

pub(in crate::config) fn read_next(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = sizes(fields)?;
    let mixture = experts(fields, &sizes)?;
    let step = fields.size_or("decoder_sparse_step", 1)?;
    let dense = fields.optional_counts("mlp_only_layers")?.unwrap_or_default();
    read(fields, &sizes, &NEXT, DeltaProjections::Two, |index| {
        if !dense.contains(&index) && (index + 1).is_multiple_of(step) { mixture } else { sizes.gated() }
    })
}

pub(in crate::config) fn read_dense(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = sizes(fields)?;
    read(fields, &sizes, &DENSE, DeltaProjections::Four, |_| sizes.gated())
}

pub(in crate::config) fn read_sparse(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = sizes(fields)?;
    let mixture = experts(fields, &sizes)?;
    read(fields, &sizes, &SPARSE, DeltaProjections::Four, |_| mixture)
}

fn sizes(fields: &Fields<'_>) -> Result<Sizes, ConfigProblem> {
    let intermediate = fields.first_size_of(&["intermediate_size", "moe_intermediate_size"])?;
    let width = fields.size_or("head_dim", 256)?;
    Sizes::read_inner(fields, 10_000.0, intermediate)?.head_width(width).partial(fields, 0.25)
}

fn experts(fields: &Fields<'_>, sizes: &Sizes) -> Result<FeedForwardConfig, ConfigProblem> {
    let inner = fields.size("moe_intermediate_size")?;
    let shared =
        Some(SharedConfig { count: None, inner: fields.size("shared_expert_intermediate_size")?, gated: true });
    let mut mixture =
        MixtureConfig { shared, ..mixture(fields, sizes, ("num_experts", fields.size("num_experts")?), inner)? };
    mixture.routing.normalise = fields.flag_or("norm_topk_prob", true)?;
    Ok(FeedForwardConfig::Mixture(mixture))
}

fn read(
    fields: &Fields<'_>,
    sizes: &Sizes,
    family: &'static Family,
    projections: DeltaProjections,
    feed_forward: impl Fn(u64) -> FeedForwardConfig,
) -> Result<DecoderConfig, ConfigProblem> {
    if !fields.flag_or("attn_output_gate", true)? {
        return Err(fields.wrong("attn_output_gate", false, "true"));
    }
    let bias = fields.flag_or("attention_bias", false)?;
    let attention = GroupedConfig {
        input_bias: bias,
        output_bias: bias,
        head_norms: Some(HeadNorms::EachHead),
        gate: Some(OutputGate::InQuery),
        ..sizes.grouped()
    };
    let part = (attention, [16, 32, 128, 128], projections);
    let mut decoder = mixed(fields, sizes, family, part, feed_forward)?;
    decoder.norm.kind = NormKind::RmsUnitOffset;
    Ok(decoder)
}

/// Layers of linear attention with one of `attention` behind every few, with the sizes that files leave open: heads of keys and
/// of values, and their widths.
fn mixed(
    fields: &Fields<'_>,
    sizes: &Sizes,
    family: &'static Family,
    (attention, [keys, values, key_width, value_width], projections): (GroupedConfig, [u64; 4], DeltaProjections),
    feed_forward: impl Fn(u64) -> FeedForwardConfig,
) -> Result<DecoderConfig, ConfigProblem> {
    let bounded = |name: &str, default: u64| fields.at_most(name, fields.size_or(name, default)?, WIDEST_HEAD);
    let delta = DeltaConfig {
        key_heads: bounded("linear_num_key_heads", keys)?,
        value_heads: bounded("linear_num_value_heads", values)?,
        key_width: bounded("linear_key_head_dim", key_width)?,
        value_width: bounded("linear_value_head_dim", value_width)?,
        kernel: fields.at_most("linear_conv_kernel_dim", fields.size_or("linear_conv_kernel_dim", 4)?, 1 << 10)?,
        projections,
    };
    fields.divides(("linear_num_value_heads", delta.value_heads), ("linear_num_key_heads", delta.key_heads))?;
    let every = fields.size_or("full_attention_interval", 4)?;
    let linear =
        sizes.kinds(fields, ["full_attention", "linear_attention"], |index| !(index + 1).is_multiple_of(every))?;
    Ok(sizes.decoder(family, |index| {
        let attention = if linear[index] { AttentionConfig::Delta(delta) } else { AttentionConfig::Grouped(attention) };
        (attention, feed_forward(index as u64))
    }))
}
