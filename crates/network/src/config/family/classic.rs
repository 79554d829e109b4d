//! Decoders of before Llama: LayerNorm, a feed-forward without a gate, learned positions or parallel blocks.

use types::ActivationKind;

use super::dense::fused;
use super::sizes::{Sizes, activation_named, rotary};
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, FusedOrder, GroupedConfig, NormKind, NormPlacement, PlainConfig,
};
use crate::config::fields::Fields;

const LAYER_NORM: &str = "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias";

pub(crate) const NEOX: Family = Family {
    home: "transformers.models.gpt_neox.modeling_gpt_neox",
    names: Names {
        layer: "GPTNeoXLayer",
        norm: "LayerNorm",
        model_module: "gpt_neox",
        embedding_module: "embed_in",
        final_norm: "final_layer_norm",
        attention_module: "attention",
        projections: ["", "", "", "dense"],
        fused_projection: "query_key_value",
        plain_modules: ["dense_h_to_4h", "dense_4h_to_h"],
        plain_activation: "act",
        ..names!("GPTNeoX")
    },
    definitions: Definitions {
        layer: "y = x + attention(input_layernorm(x)) + mlp(post_attention_layernorm(x)), or the two in sequence",
        norm: LAYER_NORM,
        attention: "y = dense(softmax(q k^T / sqrt(d), causal) v) with partly rotated q and k, over all cached keys and \
                    values",
        mlp: "y = dense_4h_to_h(gelu(dense_h_to_4h(x)))",
        ..Definitions::COMMON
    },
};

pub(crate) const FALCON: Family = Family {
    home: "transformers.models.falcon.modeling_falcon",
    names: Names {
        norm: "LayerNorm",
        linear: "FalconLinear",
        model_module: "transformer",
        embedding_module: "word_embeddings",
        layers_module: "h",
        final_norm: "ln_f",
        attention_module: "self_attention",
        projections: ["", "", "", "dense"],
        fused_projection: "query_key_value",
        plain_modules: ["dense_h_to_4h", "dense_4h_to_h"],
        plain_activation: "act",
        ..names!("Falcon")
    },
    definitions: Definitions {
        layer: "y = x + self_attention(norm(x)) + mlp(norm(x)), or the two in sequence",
        norm: LAYER_NORM,
        attention: NEOX.definitions.attention,
        mlp: NEOX.definitions.mlp,
        ..Definitions::COMMON
    },
};

/// The same with two norms in front.
pub(crate) const FALCON_TWO: Family = Family {
    home: FALCON.home,
    names: Names { layer_norms: ["ln_attn", "", "ln_mlp", ""], ..FALCON.names },
    definitions: FALCON.definitions,
};

/// Every family of this file.
pub(crate) const FAMILIES: &[&Family] = &[&NEOX, &FALCON];

fn layer_norm(mut decoder: DecoderConfig) -> DecoderConfig {
    decoder.norm.kind = NormKind::Layer;
    decoder
}

pub(in crate::config) fn read_neox(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read(fields)?;
    let partial = fields.number_or("rotary_pct", 0.25)?;
    sizes = sizes.partial(fields, partial)?;
    let theta = fields.number_or("rotary_emb_base", 10_000.0)?;
    if !fields.states("rope_parameters") && !fields.states("rope_theta") {
        sizes.rotary.theta = theta;
    }
    let bias = fields.flag_or("attention_bias", true)?;
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, ..sizes.grouped() };
    let activation = super::sizes::activation_of(fields)?.unwrap_or(ActivationKind::Gelu);
    let plain = FeedForwardConfig::Plain(PlainConfig { inner: sizes.intermediate, activation, bias: true });
    let attention = AttentionConfig::Grouped(fused(attention, FusedOrder::Groups));
    let mut decoder = layer_norm(sizes.decoder(&NEOX, |_| (attention, plain)));
    if fields.flag_or("use_parallel_residual", true)? {
        decoder.norm.placement = NormPlacement::Parallel { both: true };
    }
    Ok(decoder)
}

pub(in crate::config) fn read_falcon(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    if fields.flag_or("alibi", false)? {
        return Err(fields.wrong("alibi", true, "false: position biases are not modelled"));
    }
    let width = fields.size("hidden_size")?;
    let heads = fields.size_of(&["num_attention_heads", "n_head"])?;
    let new = fields.flag_or("new_decoder_architecture", false)?;
    let multi_query = fields.flag_or("multi_query", true)?;
    let key_value_heads = match (new, multi_query) {
        (true, _) => match fields.optional_size_of(&["num_kv_heads", "n_head_kv"])? {
            Some(heads) => heads,
            None => fields.size_or("num_kv_heads", heads)?,
        },
        (false, true) => 1,
        (false, false) => heads,
    };
    let epsilon = fields.number_or("layer_norm_epsilon", 1e-5)?;
    let layers = fields.size_of(&["num_hidden_layers", "n_layer"])?;
    let inner = fields.size_or("ffn_hidden_size", 4 * width)?;
    let mut sizes = Sizes::stated(fields, [width, heads, key_value_heads, layers, inner], epsilon)?;
    sizes.rotary = rotary(fields, 10_000.0, sizes.head_width)?;
    sizes.tied_embeddings = fields.ties(true)?;
    let bias = fields.flag_or("bias", false)?;
    let activation = match fields.optional_text("activation")? {
        None => ActivationKind::Gelu,
        Some(text) => activation_named(&text).ok_or_else(|| fields.wrong("activation", text, "gelu"))?,
    };
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, ..sizes.grouped() };
    let attention = AttentionConfig::Grouped(fused(attention, FusedOrder::Groups));
    let plain = FeedForwardConfig::Plain(PlainConfig { inner: sizes.intermediate, activation, bias });
    let two = new && fields.size_or("num_ln_in_parallel_attn", 2)? == 2;
    let family = if two { &FALCON_TWO } else { &FALCON };
    let mut decoder = layer_norm(sizes.decoder(family, |_| (attention, plain)));
    if new || fields.flag_or("parallel_attn", true)? {
        decoder.norm.placement = NormPlacement::Parallel { both: two };
    }
    Ok(decoder)
}
