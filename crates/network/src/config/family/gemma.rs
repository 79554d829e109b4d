//! Gemma 2 and 3: norms before and behind, factors one more than their weight, scaled embeddings, alternating windows.

use types::ActivationKind;

use super::sizes::{Sizes, rotary, rotary_of};
use super::{Definitions, Family, NORMS_AROUND, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, GroupedConfig, HeadNorms, NormKind, NormPlacement, RotaryConfig,
};
use crate::config::fields::Fields;

const COMMON: Definitions = Definitions {
    layer: "h = x + post_attention_layernorm(self_attn(input_layernorm(x))); \
            y = h + post_feedforward_layernorm(mlp(pre_feedforward_layernorm(h)))",
    norm: "y = x / sqrt(mean(x^2) + eps) * (1 + weight)",
    embedding: "y = table[ids] * sqrt(hidden_size)",
    mlp: "y = down_proj(gelu(gate_proj(x)) * up_proj(x))",
    ..Definitions::COMMON
};

pub(crate) const GEMMA2: Family = Family {
    home: "transformers.models.gemma2.modeling_gemma2",
    names: Names { embedding: "Gemma2TextScaledWordEmbedding", layer_norms: NORMS_AROUND, ..names!("Gemma2") },
    definitions: Definitions {
        attention: "y = o_proj(softmax(cap * tanh(q k^T * scale / cap), causal) v) with rotated q and k; every other layer \
                    sees a window of keys only",
        ..COMMON
    },
};

pub(crate) const GEMMA3: Family = Family {
    home: "transformers.models.gemma3.modeling_gemma3",
    names: Names {
        model: "Gemma3TextModel",
        embedding: "Gemma3TextScaledWordEmbedding",
        layer_norms: NORMS_AROUND,
        ..names!("Gemma3")
    },
    definitions: Definitions {
        attention: "y = o_proj(softmax(q k^T * scale, causal) v) with q and k normalised per head, then rotated; all \
                    but every sixth layer see a window of keys only",
        ..COMMON
    },
};

pub(in crate::config) fn read_gemma2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = sizes(fields)?;
    let sliding = sizes.sliding(fields, |index| index.is_multiple_of(2))?;
    let window = window(fields)?;
    let mut attention = attention(fields, &sizes)?;
    attention.detail.softcap = softcap(fields, "attn_logit_softcapping", Some(50.0))?;
    let decoder = sizes.decoder(&GEMMA2, |index| {
        let window = window.filter(|_| sliding[index]);
        (AttentionConfig::Grouped(attention.with_window(window)), sizes.gated())
    });
    let logit_softcap = softcap(fields, "final_logit_softcapping", Some(30.0))?;
    Ok(DecoderConfig { logit_softcap, ..around(decoder) })
}

pub(in crate::config) fn read_gemma3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = sizes(fields)?;
    let pattern = fields.size_or("sliding_window_pattern", 6)?;
    let sliding = sizes.sliding(fields, |index| !(index + 1).is_multiple_of(pattern))?;
    let window = window(fields)?;
    let mut attention = GroupedConfig { head_norms: Some(HeadNorms::EachHead), ..attention(fields, &sizes)? };
    attention.detail.softcap = softcap(fields, "attn_logit_softcapping", None)?;
    let [everywhere, nearby] = angles(fields, sizes.head_width)?;
    let decoder = sizes.decoder(&GEMMA3, |index| {
        let attention = if sliding[index] {
            GroupedConfig { rotary: Some(nearby), ..attention.with_window(window) }
        } else {
            GroupedConfig { rotary: Some(everywhere), ..attention }
        };
        (AttentionConfig::Grouped(attention), sizes.gated())
    });
    let logit_softcap = softcap(fields, "final_logit_softcapping", None)?;
    Ok(DecoderConfig { logit_softcap, ..around(decoder) })
}

/// Sizes with what the classes take where a file, such as the text part of a larger one, leaves fields out.
fn sizes(fields: &Fields<'_>) -> Result<Sizes, ConfigProblem> {
    let head_width = fields.size_or("head_dim", 256)?;
    let mut sizes = Sizes::read(fields)?.head_width(head_width);
    if !["hidden_activation", "hidden_act"].iter().any(|name| fields.states(name)) {
        sizes.activation = ActivationKind::GeluTanh;
    }
    sizes.tied_embeddings = fields.ties(true)?;
    Ok(sizes)
}

fn attention(fields: &Fields<'_>, sizes: &Sizes) -> Result<GroupedConfig, ConfigProblem> {
    let bias = fields.flag_or("attention_bias", false)?;
    let scale = 1.0 / fields.number_or("query_pre_attn_scalar", 256.0)?.sqrt();
    Ok(GroupedConfig { input_bias: bias, output_bias: bias, scale, ..sizes.grouped() })
}

fn window(fields: &Fields<'_>) -> Result<Option<u64>, ConfigProblem> {
    fields.optional_size("sliding_window")
}

/// A cap that the class sets where the file does not mention it; `null` switches it off.
fn softcap(fields: &Fields<'_>, name: &str, default: Option<f64>) -> Result<Option<f64>, ConfigProblem> {
    if fields.states(name) { fields.optional_number(name) } else { Ok(default) }
}

/// Rotary positions of layers that see everything, and of those that see a window.
pub(super) fn angles(fields: &Fields<'_>, head_width: u64) -> Result<[RotaryConfig; 2], ConfigProblem> {
    if let Some(both) = fields.optional_object("rope_parameters")?
        && both.states("full_attention")
    {
        let of = |kind: &str, theta: f64| rotary_of(fields, both.optional_object(kind)?.as_ref(), theta, head_width);
        return Ok([of("full_attention", 1_000_000.0)?, of("sliding_attention", 10_000.0)?]);
    }
    let nearby = rotary_of(fields, None, fields.number_or("rope_local_base_freq", 10_000.0)?, head_width)?;
    Ok([rotary(fields, 1_000_000.0, head_width)?, nearby])
}

fn around(mut decoder: DecoderConfig) -> DecoderConfig {
    decoder.norm.kind = NormKind::RmsUnitOffset;
    decoder.norm.placement = NormPlacement::Around;
    decoder.embedding_scale = Some((decoder.width as f64).sqrt());
    decoder
}
