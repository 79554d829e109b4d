//! Mixtures of experts that differ from Mixtral or DeepSeek in gates, shared experts and field names.

use super::dense::{ernie, grouped, scaled};
use super::mixture::{PLAIN_GATE, mixture, shared};
use super::sizes::{Sizes, WIDEST_HEAD};
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, Correction, DecoderConfig, FeedForwardConfig, GateConfig, GatedConfig, GroupLimit, GroupedConfig,
    HeadNorms, MixtureConfig, NormKind, ScoreKind,
};
use crate::config::fields::Fields;

const SHARED: Definitions = Definitions {
    mixture: "y = sum over the chosen experts of score * expert(x), plus shared_experts(x), which every token passes \
              through",
    gate: "scores = sigmoid(x W^T) in single precision; the k best experts of each token by score plus correction",
    ..Definitions::COMMON
};

pub(crate) const OLMOE: Family = Family {
    home: "transformers.models.olmoe.modeling_olmoe",
    names: names!("Olmoe"),
    definitions: Definitions::COMMON,
};

pub(crate) const GLM4: Family = Family {
    home: "transformers.models.glm4_moe.modeling_glm4_moe",
    names: Names { mixture: "Glm4MoeMoE", shared_module: "shared_experts", ..names!("Glm4Moe") },
    definitions: SHARED,
};

pub(crate) const DOTS1: Family = Family {
    home: "transformers.models.dots1.modeling_dots1",
    names: Names { mixture: "Dots1MoE", gate: "Dots1TopkRouter", shared_module: "shared_experts", ..names!("Dots1") },
    definitions: SHARED,
};

pub(crate) const MINIMAX: Family = Family {
    home: "transformers.models.minimax_m2.modeling_minimax_m2",
    names: Names { mixture_module: "block_sparse_moe", expert_modules: ["w1", "w3", "w2"], ..names!("MiniMaxM2") },
    definitions: Definitions { gate: SHARED.gate, ..Definitions::COMMON },
};

pub(crate) const PHI: Family = Family {
    home: "transformers.models.phimoe.modeling_phimoe",
    names: Names {
        norm: "LayerNorm",
        mixture_module: "block_sparse_moe",
        expert_modules: ["w1", "w3", "w2"],
        ..names!("Phimoe")
    },
    definitions: Definitions {
        norm: "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias",
        gate: "two experts of each token, chosen in sequence, each scored by a softmax over those near the best",
        ..Definitions::COMMON
    },
};

pub(crate) const ERNIE: Family = Family {
    home: "transformers.models.ernie4_5_moe.modeling_ernie4_5_moe",
    names: Names { shared_module: "shared_experts", ..names!("Ernie4_5_Moe") },
    definitions: Definitions {
        gate: "scores = softmax(x W^T) in single precision; the k best experts of each token by score plus correction",
        ..SHARED
    },
};

pub(crate) const GRANITE: Family = Family {
    home: "transformers.models.granitemoe.modeling_granitemoe",
    names: Names {
        causal: "GraniteMoeForCausalLM",
        mixture: "GraniteMoeMoE",
        gate: "GraniteMoeTopKGating",
        mixture_module: "block_sparse_moe",
        ..names!("GraniteMoe")
    },
    definitions: super::dense::GRANITE,
};

pub(crate) const HUNYUAN: Family = Family {
    home: "transformers.models.hunyuan_v1_moe.modeling_hunyuan_v1_moe",
    names: Names {
        mixture: "HunYuanMoEV1Moe",
        gate: "HunYuanMoEV1Gate",
        shared_module: "shared_mlp",
        ..names!("HunYuanMoEV1")
    },
    definitions: Definitions {
        gate: Definitions::COMMON.gate,
        attention: super::qwen::QWEN3.definitions.attention,
        ..SHARED
    },
};

pub(crate) const MIMO: Family = Family {
    home: "transformers.models.mimo_v2_flash.modeling_mimo_v2_flash",
    names: Names { mixture: "MiMoV2FlashMoE", gate: "MiMoV2FlashTopkRouter", ..names!("MiMoV2Flash") },
    definitions: Definitions {
        attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v) with partly rotated q and k and narrower values; most layers \
                    see a window of keys only, with sinks",
        mixture: Definitions::COMMON.mixture,
        ..SHARED
    },
};

/// Every family of this file.
pub(crate) const FAMILIES: &[&Family] = &[&OLMOE, &GLM4, &DOTS1, &MINIMAX, &PHI, &ERNIE, &GRANITE, &HUNYUAN, &MIMO];

pub(in crate::config) fn read_olmoe(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let attention = GroupedConfig { head_norms: Some(HeadNorms::AllHeads), ..grouped(fields, &sizes)? };
    let experts = ("num_experts", fields.size_or("num_experts", 64)?);
    let mut mixture = mixture(fields, &sizes, experts, sizes.intermediate)?;
    mixture.routing.normalise = fields.flag_or("norm_topk_prob", false)?;
    Ok(everywhere(&sizes, &OLMOE, attention, mixture))
}

fn everywhere(
    sizes: &Sizes,
    family: &'static Family,
    attention: GroupedConfig,
    mixture: MixtureConfig,
) -> DecoderConfig {
    sizes.decoder(family, |_| (AttentionConfig::Grouped(attention), FeedForwardConfig::Mixture(mixture)))
}

pub(in crate::config) fn read_glm4(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?.partial(fields, 0.5)?;
    let bias = fields.flag_or("attention_bias", false)?;
    let head_norms = fields.flag_or("use_qk_norm", false)?.then_some(HeadNorms::EachHead);
    let attention = GroupedConfig { input_bias: bias, head_norms, ..sizes.grouped() };
    dense_first(fields, &sizes, &GLM4, attention)
}

pub(in crate::config) fn read_dots1(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let attention = GroupedConfig { head_norms: Some(HeadNorms::EachHead), ..grouped(fields, &sizes)? };
    let window = fields.size_or_none("sliding_window")?;
    let sliding = sizes.sliding_through(fields, window, |_| false)?;
    let mut decoder = dense_first(fields, &sizes, &DOTS1, attention)?;
    for (layer, _) in decoder.layers.iter_mut().zip(sliding).filter(|(_, sliding)| *sliding) {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention {
            attention.detail.window = window;
        }
    }
    Ok(decoder)
}

/// Dense layers at the front, then experts chosen as DeepSeek-V3 does.
pub(super) fn dense_first(
    fields: &Fields<'_>,
    sizes: &Sizes,
    family: &'static Family,
    attention: GroupedConfig,
) -> Result<DecoderConfig, ConfigProblem> {
    let mixture = corrected(fields, sizes)?;
    let first = fields.count_or("first_k_dense_replace", 1)?;
    Ok(sizes.decoder(family, |index| {
        let feed_forward = if (index as u64) < first { sizes.gated() } else { FeedForwardConfig::Mixture(mixture) };
        (AttentionConfig::Grouped(attention), feed_forward)
    }))
}

/// Sigmoid scores with a correction for the choice, from the best groups.
pub(super) fn corrected(fields: &Fields<'_>, sizes: &Sizes) -> Result<MixtureConfig, ConfigProblem> {
    let inner = fields.size("moe_intermediate_size")?;
    let experts = ("n_routed_experts", fields.size("n_routed_experts")?);
    let groups = [fields.size_or("n_group", 1)?, fields.size_or("topk_group", 1)?];
    fields.divides(experts, ("n_group", groups[0]))?;
    let gate = GateConfig {
        scores: ScoreKind::Sigmoid,
        single_precision: true,
        correction: Some(Correction::Buffer),
        groups: Some(GroupLimit { groups: groups[0], keep: groups[1].min(groups[0]), best: 2 }),
        ..PLAIN_GATE
    };
    let always = shared(fields.count_or("n_shared_experts", 1)?, inner);
    let mut mixture = MixtureConfig { gate, shared: always, ..mixture(fields, sizes, experts, inner)? };
    mixture.routing.normalise = fields.flag_or("norm_topk_prob", true)?;
    mixture.routing.scale = fields.number_or("routed_scaling_factor", 1.0)?;
    Ok(mixture)
}

pub(in crate::config) fn read_minimax(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read_with(fields, 5_000_000.0)?;
    if let Some(width) = fields.optional_size("rotary_dim")? {
        sizes.rotary.width = fields.at_most("rotary_dim", width, sizes.head_width)?;
    }
    let head_norms = fields.flag_or("use_qk_norm", true)?.then_some(HeadNorms::AllHeads);
    let attention = GroupedConfig { head_norms, ..sizes.grouped() };
    let experts = ("num_local_experts", fields.size_or("num_local_experts", 256)?);
    let gate = GateConfig { scores: ScoreKind::Sigmoid, correction: Some(Correction::Buffer), ..PLAIN_GATE };
    let mixture = MixtureConfig { gate, ..mixture(fields, &sizes, experts, sizes.intermediate)? };
    Ok(everywhere(&sizes, &MINIMAX, attention, mixture))
}

pub(in crate::config) fn read_phi(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read_with(fields, 1_000_000.0)?;
    let attention = grouped(fields, &sizes)?.with_window(fields.size_or_none("sliding_window")?);
    let experts = ("num_local_experts", fields.size_or("num_local_experts", 16)?);
    let mixture = mixture(fields, &sizes, experts, sizes.intermediate)?;
    let mut decoder = everywhere(&sizes, &PHI, attention, mixture);
    decoder.norm.kind = NormKind::Layer;
    decoder.head_bias = fields.flag_or("lm_head_bias", false)?;
    Ok(decoder)
}

pub(in crate::config) fn read_ernie(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read_with(fields, 500_000.0)?;
    sizes.tied_embeddings = fields.ties(true)?;
    sizes.mlp_bias = fields.flag_or("use_bias", false)?;
    let attention = ernie(fields, &sizes)?;
    let inner = fields.size_or("moe_intermediate_size", 1536)?;
    let experts = ("moe_num_experts", fields.size_or("moe_num_experts", 64)?);
    let gate = GateConfig { single_precision: true, correction: Some(Correction::Parameter), ..PLAIN_GATE };
    let always = shared(fields.count_or("moe_num_shared_experts", 2)?, inner);
    let mixture = MixtureConfig { gate, shared: always, ..mixture(fields, &sizes, experts, inner)? };
    let [start, every] = [fields.count_or("moe_layer_start_index", 1)?, fields.size_or("moe_layer_interval", 1)?];
    let end = match fields.integer_or("moe_layer_end_index", -1)? {
        -1 => sizes.layers - 1,
        end => end.unsigned_abs(),
    };
    Ok(sizes.decoder(&ERNIE, |index| {
        let index = index as u64;
        let mixes = (index + 1).is_multiple_of(every) && (start..=end).contains(&index);
        let feed_forward = if mixes { FeedForwardConfig::Mixture(mixture) } else { sizes.gated() };
        (AttentionConfig::Grouped(attention), feed_forward)
    }))
}

pub(in crate::config) fn read_granite(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let attention = grouped(fields, &sizes)?;
    let experts = ("num_local_experts", fields.size_or("num_local_experts", 8)?);
    let mixture = MixtureConfig {
        expert: GatedConfig { fused: true, ..sizes.gated_of(sizes.intermediate) },
        ..mixture(fields, &sizes, experts, sizes.intermediate)?
    };
    scaled(fields, everywhere(&sizes, &GRANITE, attention, mixture))
}

pub(in crate::config) fn read_hunyuan(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let attention = GroupedConfig { head_norms: Some(HeadNorms::EachHeadTurned), ..grouped(fields, &sizes)? };
    let experts = ("num_experts", fields.uniform_size("num_experts")?.unwrap_or(1));
    let inner = fields.uniform_size("moe_intermediate_size")?.unwrap_or(sizes.intermediate);
    let always = shared(fields.uniform_size("num_shared_expert")?.unwrap_or(1), sizes.intermediate);
    let gate = GateConfig { single_precision: true, ..PLAIN_GATE };
    let mixture = MixtureConfig { gate, shared: always, ..mixture(fields, &sizes, experts, inner)? };
    Ok(everywhere(&sizes, &HUNYUAN, attention, mixture))
}

pub(in crate::config) fn read_mimo(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read_with(fields, 5_000_000.0)?.partial(fields, 0.334)?;
    if let Some(epsilon) = fields.optional_number("layernorm_epsilon")? {
        sizes.epsilon = epsilon;
    }
    let bias = fields.flag_or("attention_bias", false)?;
    let value_width = fields.at_most("v_head_dim", fields.size_or("v_head_dim", 128)?, WIDEST_HEAD)?;
    let attention = GroupedConfig { input_bias: bias, value_width, ..sizes.grouped() };
    let listed = fields.optional_counts("hybrid_layer_pattern")?;
    let sliding = match &listed {
        Some(kinds) if !fields.states("layer_types") => each(fields, "hybrid_layer_pattern", &sizes, kinds)?,
        _ => sizes.sliding(fields, |index| index != 0 && !(index + 1).is_multiple_of(6))?,
    };
    // The published window counts the keys before the query.
    let window = match fields.size_or_none("sliding_window_size")? {
        Some(before) => before + 1,
        None => fields.size_or("sliding_window", 129)?,
    };
    let mut near =
        GroupedConfig { key_value_heads: 2 * attention.key_value_heads, ..attention.with_window(Some(window)) };
    fields.divides(("num_attention_heads", near.heads), ("num_key_value_heads", near.key_value_heads))?;
    near.detail.sinks = true;
    if let Some(rotary) = &mut near.rotary {
        rotary.theta = fields.number_or("swa_rope_theta", 10_000.0)?;
    }
    let mixture = MixtureConfig { shared: None, ..corrected(fields, &sizes)? };
    let mixes = match fields.optional_counts("moe_layer_freq")? {
        Some(kinds) => each(fields, "moe_layer_freq", &sizes, &kinds)?,
        None => (0..sizes.layers).map(|index| index > 0).collect(),
    };
    Ok(sizes.decoder(&MIMO, |index| {
        let attention = if sliding[index] { near } else { attention };
        let feed_forward = if mixes[index] { FeedForwardConfig::Mixture(mixture) } else { sizes.gated() };
        (AttentionConfig::Grouped(attention), feed_forward)
    }))
}

/// A list of one flag for each layer.
fn each(fields: &Fields<'_>, name: &str, sizes: &Sizes, flags: &[u64]) -> Result<Vec<bool>, ConfigProblem> {
    if flags.len() as u64 != sizes.layers {
        let expected = format!("{} entries, one for each layer", sizes.layers);
        return Err(fields.wrong(name, format!("a list of {}", flags.len()), expected));
    }
    Ok(flags.iter().map(|flag| *flag != 0).collect())
}
