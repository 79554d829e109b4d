//! Families whose layers have another mixer than attention beside it or in its place: Falcon-H1, LFM2, and Llama 3.2 Vision.

use super::mixture::{PLAIN_GATE, mixture};
use super::sizes::Sizes;
use super::state_space::{HYBRID_FIELDS, mamba2};
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, Correction, DecoderConfig, FeedForwardConfig, GateConfig, GroupedConfig, HeadNorms, HybridConfig,
    MixtureConfig, NormPlacement, OutputGate, ScoreKind, ShortConvConfig, StateSpaceConfig, StateSpaceKind,
};
use crate::config::fields::Fields;

pub(crate) const FALCON_H1: Family = Family {
    home: "transformers.models.falcon_h1.modeling_falcon_h1",
    names: Names {
        final_norm: "final_layernorm",
        layer_norms: ["input_layernorm", "", "pre_ff_layernorm", ""],
        mlp_module: "feed_forward",
        gated_norm: "FalconH1RMSNormGated",
        ..names!("FalconH1")
    },
    definitions: Definitions {
        layer: "g = input_layernorm(x); h = x + mamba(g) + self_attn(g), each times a factor; y = h + \
                feed_forward(pre_ff_layernorm(h)); constant factors inside the parts are folded into their weights",
        ..Definitions::COMMON
    },
};

pub(crate) const LFM2: Family = Family {
    home: "transformers.models.lfm2.modeling_lfm2",
    names: Names {
        final_norm: "embedding_norm",
        layer_norms: ["operator_norm", "", "ffn_norm", ""],
        projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
        head_norms: ["q_layernorm", "k_layernorm"],
        mlp_module: "feed_forward",
        mlp_modules: ["w1", "w3", "w2"],
        ..names!("Lfm2")
    },
    definitions: Definitions {
        layer: "h = x + mixer(operator_norm(x)); y = h + feed_forward(ffn_norm(h)), where the mixer is a gated \
                convolution in most layers and self_attn in the others",
        attention: "y = out_proj(softmax(q k^T / sqrt(d), causal) v) with q and k normalised per head, then rotated, \
                    over all cached keys and values",
        mlp: "y = w2(silu(w1(x)) * w3(x))",
        ..Definitions::COMMON
    },
};

pub(crate) const LFM2_MOE: Family = Family {
    home: "transformers.models.lfm2_moe.modeling_lfm2_moe",
    names: Names {
        mixture_module: "feed_forward",
        expert_modules: ["w1", "w3", "w2"],
        ..Names {
            final_norm: LFM2.names.final_norm,
            layer_norms: LFM2.names.layer_norms,
            projections: LFM2.names.projections,
            head_norms: LFM2.names.head_norms,
            mlp_module: LFM2.names.mlp_module,
            mlp_modules: LFM2.names.mlp_modules,
            ..names!("Lfm2Moe")
        }
    },
    definitions: Definitions {
        gate: "scores = sigmoid(x W^T); the k best experts of each token by score plus correction",
        ..LFM2.definitions
    },
};

pub(crate) const LFM3: Family = Family {
    home: "transformers.models.lfm3.modeling_lfm3",
    names: Names {
        final_norm: LFM2.names.final_norm,
        layer_norms: ["operator_norm", "post_operator_norm", "ffn_norm", "post_ffn_norm"],
        output_gate: "g_proj",
        mlp_module: LFM2.names.mlp_module,
        mlp_modules: LFM2.names.mlp_modules,
        ..names!("Lfm3")
    },
    definitions: Definitions {
        layer: "h = x + post_operator_norm(mixer(operator_norm(x))); y = h + post_ffn_norm(feed_forward(ffn_norm(h))), \
                where the mixer is a gated convolution in most layers and self_attn in the others",
        ..LFM2.definitions
    },
};

pub(crate) const MLLAMA: Family = Family {
    home: "transformers.models.mllama.modeling_mllama",
    names: Names {
        causal: "MllamaForCausalLM",
        layer: "MllamaSelfAttentionDecoderLayer",
        attention: "MllamaTextSelfAttention",
        cross: ["MllamaCrossAttentionDecoderLayer", "MllamaTextCrossAttention"],
        ..names!("MllamaText")
    },
    definitions: Definitions::COMMON,
};

/// Every family of this file.
pub(crate) const FAMILIES: &[&Family] = &[&FALCON_H1, &LFM2, &LFM2_MOE, &LFM3, &MLLAMA];

/// Tokens of pictures, which have rows in the table of embeddings and none in the head.
const PICTURE_TOKENS: u64 = 8;

pub(in crate::config) fn read_mllama(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read_with(fields, 500_000.0)?;
    let stated = fields.optional_counts("cross_attention_layers")?;
    let crossed = stated.unwrap_or_else(|| (3..=38).step_by(5).collect());
    let attention = sizes.grouped();
    let across = GroupedConfig { head_norms: Some(HeadNorms::EachHead), rotary: None, ..attention };
    let mut decoder = sizes.decoder(&MLLAMA, |index| {
        let attention = if crossed.contains(&(index as u64)) {
            AttentionConfig::Cross(across)
        } else {
            AttentionConfig::Grouped(attention)
        };
        (attention, sizes.gated())
    });
    decoder.further_tokens = PICTURE_TOKENS;
    Ok(decoder)
}

pub(in crate::config) fn read_falcon_h1(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let part = mamba2(fields, &HYBRID_FIELDS)?;
    let inner = fields.optional_size("mamba_d_ssm")?.unwrap_or(part.inner);
    let StateSpaceKind::Heads { heads, groups, chunk, .. } = part.kind else { return Err(of_heads(fields)) };
    fields.divides(("mamba_d_ssm", inner), ("mamba_n_heads", heads))?;
    let normed = fields.flag_or("mamba_rms_norm", false)?;
    let state_space = StateSpaceConfig {
        inner,
        output_bias: fields.flag_or("projectors_bias", false)?,
        kind: StateSpaceKind::Heads { heads, groups, chunk, normed },
        ..part
    };
    let bias = fields.flag_or("attention_bias", false)?;
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, ..sizes.grouped() };
    let factor = |name: &str| fields.number_or(name, 1.0);
    let scales =
        [factor("attention_in_multiplier")?, factor("attention_out_multiplier")?, factor("ssm_out_multiplier")?];
    let mut decoder =
        sizes.uniform(&FALCON_H1, AttentionConfig::Hybrid(HybridConfig { attention, state_space, scales }));
    decoder.embedding_scale = Some(factor("embedding_multiplier")?).filter(|factor| *factor != 1.0);
    decoder.logit_scale = Some(factor("lm_head_multiplier")?).filter(|factor| *factor != 1.0);
    Ok(decoder)
}

fn of_heads(fields: &Fields<'_>) -> ConfigProblem {
    fields.wrong("mamba_n_heads", "absent", "heads of a Mamba-2 layer")
}

pub(in crate::config) fn read_lfm2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let stated = fields.size_of(&["block_ff_dim", "intermediate_size"])?;
    lfm2(fields, &LFM2, Sizes::read_inner(fields, 1_000_000.0, adjusted(fields, stated)?)?)
}

/// Experts in all layers but the first few.
pub(in crate::config) fn read_lfm2_moe(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read_with(fields, 1_000_000.0)?;
    let experts = ("num_experts", fields.size("num_experts")?);
    let correction = fields.flag_or("use_expert_bias", true)?.then_some(Correction::Buffer);
    let gate = GateConfig { scores: ScoreKind::Sigmoid, correction, ..PLAIN_GATE };
    let mixture = mixture(fields, &sizes, experts, fields.size("moe_intermediate_size")?)?;
    let mut mixture = MixtureConfig { gate, ..mixture };
    mixture.routing.normalise = fields.flag_or("norm_topk_prob", true)?;
    mixture.routing.scale = fields.number_or("routed_scaling_factor", 1.0)?;
    let dense = fields.count_or("num_dense_layers", 2)?;
    let mut decoder = lfm2(fields, &LFM2_MOE, sizes)?;
    for (_, layer) in decoder.layers.iter_mut().enumerate().filter(|(index, _)| *index as u64 >= dense) {
        layer.feed_forward = FeedForwardConfig::Mixture(mixture);
    }
    Ok(decoder)
}

/// LFM2 with windows in most of its attention, gates of its heads, and norms behind both parts.
pub(in crate::config) fn read_lfm3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read_with(fields, 1_000_000.0)?;
    let gate = fields.flag_or("use_attention_gate", true)?.then_some(OutputGate::Heads);
    let bias = fields.flag_or("attention_bias", false)?;
    let attention = GroupedConfig {
        head_norms: Some(HeadNorms::EachHead),
        gate,
        input_bias: bias,
        output_bias: bias,
        ..sizes.grouped()
    };
    let window = fields.size_or_none("sliding_window")?;
    let kernel = fields.at_most("conv_L_cache", fields.size_or("conv_L_cache", 7)?, 1 << 10)?;
    let conv = ShortConvConfig { kernel, bias: fields.flag_or("conv_bias", false)? };
    let kinds = fields.text_list("layer_types")?;
    if kinds.len() as u64 != sizes.layers {
        let expected = format!("{} entries, one for each layer", sizes.layers);
        return Err(fields.wrong("layer_types", format!("a list of {}", kinds.len()), expected));
    }
    let mixer = |kind: &String| match kind.as_str() {
        "conv" => Ok(AttentionConfig::ShortConv(conv)),
        "full_attention" => Ok(AttentionConfig::Grouped(attention)),
        "sliding_attention" => Ok(AttentionConfig::Grouped(attention.with_window(window))),
        other => {
            let expected = "`conv`, `full_attention` or `sliding_attention`";
            Err(fields.wrong("layer_types", format!("\"{other}\""), expected))
        }
    };
    let mixers = kinds.iter().map(mixer).collect::<Result<Vec<_>, _>>()?;
    let mut decoder = sizes.decoder(&LFM3, |index| (mixers[index], sizes.gated()));
    decoder.tied_embeddings = fields.ties(true)?;
    if fields.flag_or("use_sandwich_norm", true)? {
        decoder.norm.placement = NormPlacement::Around;
    }
    Ok(decoder)
}

fn lfm2(fields: &Fields<'_>, family: &'static Family, mut sizes: Sizes) -> Result<DecoderConfig, ConfigProblem> {
    sizes.tied_embeddings =
        if fields.states("tie_embedding") { fields.flag_or("tie_embedding", true)? } else { fields.ties(true)? };
    let attends = fields.optional_counts("full_attn_idxs")?;
    let rule = |index: u64| attends.as_ref().is_some_and(|attends| !attends.contains(&index));
    let convolves = sizes.kinds(fields, ["full_attention", "conv"], rule)?;
    let attention = GroupedConfig { head_norms: Some(HeadNorms::EachHead), ..sizes.grouped() };
    let kernel = fields.at_most("conv_L_cache", fields.size_or("conv_L_cache", 3)?, 1 << 10)?;
    let conv = ShortConvConfig { kernel, bias: fields.flag_or("conv_bias", false)? };
    let mixer = |index: usize| {
        if convolves[index] { AttentionConfig::ShortConv(conv) } else { AttentionConfig::Grouped(attention) }
    };
    Ok(sizes.decoder(family, |index| (mixer(index), sizes.gated())))
}

/// The inner width that the class makes of the stated one.
fn adjusted(fields: &Fields<'_>, stated: u64) -> Result<u64, ConfigProblem> {
    if !fields.flag_or("block_auto_adjust_ff_dim", true)? {
        return Ok(stated);
    }
    let factor = fields.number_or("block_ffn_dim_multiplier", 1.0)?;
    let multiple = fields.at_most("block_multiple_of", fields.size_or("block_multiple_of", 256)?, 1 << 20)?;
    let inner = (factor * (2 * stated / 3) as f64) as u64;
    let inner = inner.div_ceil(multiple).saturating_mul(multiple);
    fields.at_most("intermediate_size", inner.max(1), 1 << 32)
}
