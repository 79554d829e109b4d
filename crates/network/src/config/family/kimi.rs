//! Kimi Linear and Ling 3.0: linear attention in most layers, and latent attention without rotary positions or with gates in the
//! others. LongCat-Flash: two attentions and two feed-forwards to a mixture.

use super::deepseek::{self, latent};
use super::mixture::{PLAIN_GATE, mixture, shared};
use super::sizes::{Sizes, WIDEST_HEAD};
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, Correction, DecoderConfig, DeltaConfig, DeltaProjections, FeedForwardConfig, GateConfig,
    LatentConfig, MixtureConfig, ScoreKind, SharedConfig,
};
use crate::config::fields::Fields;

pub(crate) const KIMI: Family = Family {
    home: "transformers.models.kimi_linear.modeling_kimi_linear",
    names: Names {
        delta: "KimiLinearDeltaAttention",
        delta_module: "self_attn",
        gated_norm: "KimiLinearRMSNormGated",
        mixture: "KimiLinearMoE",
        gate: "KimiLinearTopkRouter",
        shared_module: "shared_experts",
        ..names!("KimiLinear")
    },
    definitions: Definitions {
        layer: "h = x + self_attn(input_layernorm(x)); y = h + mlp(post_attention_layernorm(h)), where self_attn is a \
                gated delta rule with a decay for each channel in most layers",
        ..deepseek::V3.definitions
    },
};

pub(crate) const LONGCAT: Family = Family {
    home: "transformers.models.longcat_flash.modeling_longcat_flash",
    names: Names {
        attention: "LongcatFlashMLA",
        mixture: "LongcatFlashMoE",
        gate: "LongcatFlashTopkRouter",
        gate_module: "router",
        shared_module: "mlps",
        ..names!("LongcatFlash")
    },
    definitions: Definitions {
        layer: "h = x + self_attn(input_layernorm(x)); y = h + mlp(post_attention_layernorm(h)), two of them for one of \
                the published class; what the first one's experts give is added behind the second",
        mixture: "y = sum over the chosen experts of score * expert(x), some of which are x itself, plus a dense \
                  feed-forward of x",
        gate: "scores = softmax(x W^T) in single precision; the k best experts of each token by score plus correction",
        ..deepseek::V3.definitions
    },
};

pub(crate) const LING: Family = Family {
    home: "transformers.models.bailing_hybrid.modeling_bailing_hybrid",
    names: Names {
        delta: "BailingHybridDeltaAttention",
        delta_module: "self_attn",
        gated_norm: "BailingHybridRMSNormGated",
        mixture: "BailingHybridMoE",
        gate: "BailingHybridTopkRouter",
        shared_module: "shared_experts",
        ..names!("BailingHybrid")
    },
    definitions: KIMI.definitions,
};

/// Every family of this file.
pub(crate) const FAMILIES: &[&Family] = &[&KIMI, &LONGCAT, &LING];

pub(in crate::config) fn read_kimi(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
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
    with_experts(fields, &sizes, &KIMI, (attention, delta, linear), 1)
}

/// Ling 3.0: gates and decays of one projection each, and a gate for each head of latent attention.
pub(in crate::config) fn read_ling(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
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
    with_experts(fields, &sizes, &LING, (attention, delta, linear), 2)
}

/// Layers of both kinds of attention with experts behind dense ones, `dense` of which the class has at the front.
fn with_experts(
    fields: &Fields<'_>,
    sizes: &Sizes,
    family: &'static Family,
    (attention, delta, linear): (LatentConfig, DeltaConfig, Vec<bool>),
    dense: u64,
) -> Result<DecoderConfig, ConfigProblem> {
    let inner = fields.size("moe_intermediate_size")?;
    let experts = ("num_experts", fields.size_of(&["num_experts", "num_local_experts"])?);
    let groups = match fields.optional_size("n_group")? {
        None | Some(1) => None,
        Some(_) => Some(deepseek::groups(fields, 2, experts)?),
    };
    let gate = GateConfig {
        groups,
        scores: ScoreKind::Sigmoid,
        single_precision: true,
        correction: Some(Correction::Buffer),
        ..PLAIN_GATE
    };
    let always = fields.optional_size_of(&["num_shared_experts", "n_shared_experts"])?.unwrap_or(0);
    let mixture = mixture(fields, sizes, experts, inner)?;
    let mut mixture = MixtureConfig { gate, shared: shared(always, inner), ..mixture };
    mixture.routing.scale = fields.number_or("routed_scaling_factor", 1.0)?;
    let first = fields.count_or("first_k_dense_replace", dense)?;
    let mixes = sizes.listed(fields, "mlp_layer_types", ["dense", "sparse"], |index| index >= first)?;
    Ok(sizes.decoder(family, |index| {
        let attention = if linear[index] { AttentionConfig::Delta(delta) } else { AttentionConfig::Latent(attention) };
        (attention, if mixes[index] { FeedForwardConfig::Mixture(mixture) } else { sizes.gated() })
    }))
}

/// One of its layers is two of ours. A token chooses among experts that compute and those that do not: it goes to as many of the
/// first as their share, if all are chosen alike.
pub(in crate::config) fn read_longcat(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
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
    Ok(sizes.decoder(&LONGCAT, |index| {
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
