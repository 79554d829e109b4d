//! Decoders of before Llama: LayerNorm, a feed-forward without a gate, learned positions or parallel blocks.

use types::ActivationKind;

use super::dense::fused;
use super::sizes::{Sizes, activation_named, rotary};
use super::{Definitions, Family, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, FusedOrder, GroupedConfig, NormKind, NormPlacement, PlainConfig,
    PositionsConfig,
};
use crate::config::fields::Fields;

const LAYER_NORM: &str = "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias";

pub(crate) const STARCODER2: Family = Family {
    home: "transformers.models.starcoder2.modeling_starcoder2",
    names: Names {
        norm: "LayerNorm",
        plain_modules: ["c_fc", "c_proj"],
        plain_activation: "act",
        ..names!("Starcoder2")
    },
    definitions: Definitions { norm: LAYER_NORM, mlp: "y = c_proj(gelu(c_fc(x)))", ..Definitions::COMMON },
};

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

pub(crate) const GPT2: Family = Family {
    home: "transformers.models.gpt2.modeling_gpt2",
    names: Names {
        causal: "GPT2LMHeadModel",
        layer: "GPT2Block",
        norm: "LayerNorm",
        linear: "Conv1D",
        model_module: "transformer",
        embedding_module: "wte",
        positions: ("wpe", "Embedding"),
        layers_module: "h",
        final_norm: "ln_f",
        attention_module: "attn",
        projections: ["", "", "", "c_proj"],
        fused_projection: "c_attn",
        layer_norms: ["ln_1", "", "ln_2", ""],
        plain_modules: ["c_fc", "c_proj"],
        plain_activation: "act",
        ..names!("GPT2")
    },
    definitions: Definitions {
        layer: "h = x + attn(ln_1(x)); y = h + mlp(ln_2(h))",
        norm: LAYER_NORM,
        attention: "y = c_proj(softmax(q k^T / sqrt(d), causal) v), over all cached keys and values",
        mlp: "y = c_proj(gelu(c_fc(x)))",
        ..Definitions::COMMON
    },
};

pub(crate) const OPT: Family = Family {
    home: "transformers.models.opt.modeling_opt",
    names: Names {
        norm: "LayerNorm",
        model_module: "model.decoder",
        model: "OPTDecoder",
        positions: ("embed_positions", "OPTLearnedPositionalEmbedding"),
        final_norm: "final_layer_norm",
        projections: ["q_proj", "k_proj", "v_proj", "out_proj"],
        layer_norms: ["self_attn_layer_norm", "", "final_layer_norm", ""],
        mlp_module: "",
        plain_modules: ["fc1", "fc2"],
        plain_activation: "activation_fn",
        ..names!("OPT")
    },
    definitions: Definitions {
        layer: "h = x + self_attn(self_attn_layer_norm(x)); y = h + fc2(relu(fc1(final_layer_norm(h))))",
        norm: LAYER_NORM,
        attention: "y = out_proj(softmax(q k^T / sqrt(d), causal) v), over all cached keys and values",
        ..Definitions::COMMON
    },
};

/// Every family of this file.
pub(crate) const FAMILIES: &[&Family] = &[&STARCODER2, &NEOX, &FALCON, &GPT2, &OPT];

pub(in crate::config) fn read_starcoder2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read(fields)?;
    sizes.tied_embeddings = fields.flag_or("tie_word_embeddings", true)?;
    let bias = fields.flag_or("use_bias", true)?;
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, ..sizes.grouped() };
    let attention = attention.with_window(fields.optional_size("sliding_window")?);
    let activation = super::sizes::activation_of(fields)?.unwrap_or(ActivationKind::GeluTanh);
    let plain = FeedForwardConfig::Plain(PlainConfig { inner: sizes.intermediate, activation, bias });
    Ok(layer_norm(sizes.decoder(&STARCODER2, |_| (AttentionConfig::Grouped(attention), plain))))
}

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
        (true, _) => fields.optional_size_of(&["num_kv_heads", "n_head_kv"])?.unwrap_or(heads),
        (false, true) => 1,
        (false, false) => heads,
    };
    let epsilon = fields.number_or("layer_norm_epsilon", 1e-5)?;
    let layers = fields.size_of(&["num_hidden_layers", "n_layer"])?;
    let inner = fields.size_or("ffn_hidden_size", 4 * width)?;
    let mut sizes = Sizes::stated(fields, [width, heads, key_value_heads, layers, inner], epsilon)?;
    sizes.rotary = rotary(fields, 10_000.0, sizes.head_width)?;
    sizes.tied_embeddings = fields.flag_or("tie_word_embeddings", true)?;
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

pub(in crate::config) fn read_gpt2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let width = fields.size_of(&["n_embd", "hidden_size"])?;
    let heads = fields.size_of(&["n_head", "num_attention_heads"])?;
    let layers = fields.size_of(&["n_layer", "num_hidden_layers"])?;
    let inner = fields.size_or("n_inner", 4 * width)?;
    let rows = fields.size_of(&["n_positions", "max_position_embeddings"])?;
    let sizes =
        Sizes::stated(fields, [width, heads, heads, layers, inner], fields.number_or("layer_norm_epsilon", 1e-5)?)?;
    let activation = match fields.optional_text("activation_function")? {
        None => ActivationKind::GeluTanh,
        Some(text) => activation_named(&text).ok_or_else(|| fields.wrong("activation_function", text, "gelu_new"))?,
    };
    let attention = GroupedConfig { input_bias: true, output_bias: true, rotary: None, ..sizes.grouped() };
    let attention = AttentionConfig::Grouped(fused(attention, FusedOrder::Blocks));
    let plain = FeedForwardConfig::Plain(PlainConfig { inner, activation, bias: true });
    let mut decoder = layer_norm(sizes.decoder(&GPT2, |_| (attention, plain)));
    decoder.positions = Some(PositionsConfig { rows, first: 0 });
    decoder.tied_embeddings = fields.flag_or("tie_word_embeddings", true)?;
    Ok(decoder)
}

pub(in crate::config) fn read_opt(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let width = fields.size("hidden_size")?;
    let projected = fields.size_or("word_embed_proj_dim", width)?;
    if projected != width {
        return Err(fields.wrong("word_embed_proj_dim", projected, format!("`hidden_size` ({width})")));
    }
    for (name, wanted) in [("do_layer_norm_before", true), ("layer_norm_elementwise_affine", true)] {
        if fields.flag_or(name, wanted)? != wanted {
            return Err(fields.wrong(name, !wanted, wanted.to_string()));
        }
    }
    let heads = fields.size("num_attention_heads")?;
    let inner = fields.size("ffn_dim")?;
    let sizes = Sizes::stated(fields, [width, heads, heads, fields.size("num_hidden_layers")?, inner], 1e-5)?;
    let bias = fields.flag_or("enable_bias", true)?;
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, rotary: None, ..sizes.grouped() };
    let activation = match fields.optional_text("activation_function")? {
        None => ActivationKind::Relu,
        Some(text) => activation_named(&text).ok_or_else(|| fields.wrong("activation_function", text, "relu"))?,
    };
    let plain = FeedForwardConfig::Plain(PlainConfig { inner, activation, bias });
    let mut decoder = layer_norm(sizes.decoder(&OPT, |_| (AttentionConfig::Grouped(attention), plain)));
    // The published table has two rows in front that no position uses.
    decoder.positions = Some(PositionsConfig { rows: fields.size("max_position_embeddings")? + 2, first: 2 });
    decoder.tied_embeddings = fields.flag_or("tie_word_embeddings", true)?;
    Ok(decoder)
}
