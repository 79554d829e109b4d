//! Dense decoders that differ from Llama in where norms stand, which layers have positions, and constant factors.

use types::RotaryLayout;

use super::sizes::{Sizes, rotary_of};
use super::{Definitions, Family, NORMS_AROUND, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, FusedOrder, GatedConfig, GroupedConfig, HeadNorms, NormKind,
    NormPlacement,
};
use crate::config::fields::Fields;

pub(super) const AFTER: Definitions = Definitions {
    layer: "h = x + post_attention_layernorm(self_attn(x)); y = h + post_feedforward_layernorm(mlp(h))",
    ..Definitions::COMMON
};

const PARALLEL: Definitions = Definitions {
    layer: "y = x + self_attn(input_layernorm(x)) + mlp(input_layernorm(x))",
    norm: "y = (x - mean(x)) / sqrt(var(x) + eps) * weight",
    attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v) over all cached keys and values, or over a window of them \
                with rotated q and k",
    ..Definitions::COMMON
};

pub(super) const GRANITE: Definitions = Definitions {
    layer: "h = x + m * self_attn(input_layernorm(x)); y = h + m * mlp(post_attention_layernorm(h)), with the residual \
            multiplier m",
    ..Definitions::COMMON
};

pub(crate) const OLMO3: Family = Family {
    home: "transformers.models.olmo3.modeling_olmo3",
    names: Names { layer_norms: NORMS_AROUND, ..names!("Olmo3") },
    definitions: AFTER,
};

pub(crate) const EXAONE4: Family = Family {
    home: "transformers.models.exaone4.modeling_exaone4",
    names: Names { layer_norms: NORMS_AROUND, ..names!("Exaone4") },
    definitions: AFTER,
};

pub(crate) const SMOLLM3: Family = Family {
    home: "transformers.models.smollm3.modeling_smollm3",
    names: names!("SmolLM3"),
    definitions: Definitions {
        attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v) over all cached keys and values; q and k are rotated in \
                    all but every fourth layer",
        ..Definitions::COMMON
    },
};

pub(crate) const COHERE: Family = Family {
    home: "transformers.models.cohere.modeling_cohere",
    names: Names { norm: "CohereLayerNorm", ..names!("Cohere") },
    definitions: PARALLEL,
};

pub(crate) const COHERE2: Family = Family {
    home: "transformers.models.cohere2.modeling_cohere2",
    names: Names { norm: "Cohere2LayerNorm", ..names!("Cohere2") },
    definitions: PARALLEL,
};

pub(crate) const ERNIE: Family = Family {
    home: "transformers.models.ernie4_5.modeling_ernie4_5",
    names: names!("Ernie4_5"),
    definitions: Definitions::COMMON,
};

pub(crate) const GLM: Family =
    Family { home: "transformers.models.glm.modeling_glm", names: names!("Glm"), definitions: Definitions::COMMON };

pub(crate) const GLM4: Family = Family {
    home: "transformers.models.glm4.modeling_glm4",
    names: Names {
        layer_norms: ["input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"],
        ..names!("Glm4")
    },
    definitions: Definitions {
        layer: "h = x + post_self_attn_layernorm(self_attn(input_layernorm(x))); \
                y = h + post_mlp_layernorm(mlp(post_attention_layernorm(h)))",
        ..Definitions::COMMON
    },
};

pub(crate) const MINISTRAL: Family = Family {
    home: "transformers.models.ministral.modeling_ministral",
    names: names!("Ministral"),
    definitions: Definitions::COMMON,
};

pub(crate) const MINISTRAL3: Family = Family {
    home: "transformers.models.ministral3.modeling_ministral3",
    names: names!("Ministral3"),
    definitions: Definitions::COMMON,
};

pub(crate) const CWM: Family =
    Family { home: "transformers.models.cwm.modeling_cwm", names: names!("Cwm"), definitions: Definitions::COMMON };

/// Every family of this file.
pub(crate) const FAMILIES: &[&Family] =
    &[&OLMO3, &EXAONE4, &SMOLLM3, &COHERE, &COHERE2, &ERNIE, &GLM, &GLM4, &MINISTRAL, &MINISTRAL3, &CWM];

/// Attention with biases as `attention_bias` says, on all four projections.
pub(super) fn grouped(fields: &Fields<'_>, sizes: &Sizes) -> Result<GroupedConfig, ConfigProblem> {
    let bias = fields.flag_or("attention_bias", false)?;
    Ok(GroupedConfig { input_bias: bias, output_bias: bias, ..sizes.grouped() })
}

fn scale(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, ConfigProblem> {
    Ok(fields.optional_number(name)?.filter(|factor| (*factor - 1.0).abs() > f64::EPSILON))
}

/// Factors of Granite: on embeddings, on scores, on what is added, on logits.
pub(super) fn scaled(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    decoder.embedding_scale = scale(fields, "embedding_multiplier")?;
    decoder.residual_scale = scale(fields, "residual_multiplier")?;
    decoder.logit_scale = scale(fields, "logits_scaling")?.map(|divisor| 1.0 / divisor);
    let factor = fields.number_or("attention_multiplier", 1.0)?;
    for layer in &mut decoder.layers {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention {
            attention.scale = factor;
        }
    }
    Ok(decoder)
}

pub(in crate::config) fn read_olmo3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read_with(fields, 500_000.0)?;
    let sliding = sizes.sliding(fields, |index| !(index + 1).is_multiple_of(4))?;
    let window = fields.size_or("sliding_window", 4096)?;
    let attention = GroupedConfig { head_norms: Some(HeadNorms::AllHeads), ..grouped(fields, &sizes)? };
    let both = fields.optional_object("rope_parameters")?.filter(|both| both.states("full_attention"));
    let rotary = |kind: &str| match &both {
        None => Ok(sizes.rotary),
        Some(both) => rotary_of(fields, both.optional_object(kind)?.as_ref(), 500_000.0, sizes.head_width),
    };
    let [everywhere, nearby] = [rotary("full_attention")?, rotary("sliding_attention")?];
    Ok(after(sizes.decoder(&OLMO3, |index| {
        let (rotary, window) = if sliding[index] { (nearby, Some(window)) } else { (everywhere, None) };
        let attention = GroupedConfig { rotary: Some(rotary), ..attention }.with_window(window);
        (AttentionConfig::Grouped(attention), sizes.gated())
    })))
}

fn after(mut decoder: DecoderConfig) -> DecoderConfig {
    decoder.norm.placement = NormPlacement::After;
    decoder
}

/// Layers that see everything have no positions, where others see a window.
pub(in crate::config) fn read_exaone4(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let window = fields.size_or_none("sliding_window")?;
    let pattern =
        if fields.is_text("sliding_window_pattern") { 4 } else { fields.count_or("sliding_window_pattern", 4)? };
    let sliding = sizes.sliding_through(fields, window, |index| pattern > 0 && !(index + 1).is_multiple_of(pattern))?;
    let attention = GroupedConfig { head_norms: Some(HeadNorms::EachHead), ..sizes.grouped() };
    Ok(after(sizes.decoder(&EXAONE4, |index| {
        let seen = window.filter(|_| sliding[index]);
        let rotary = attention.rotary.filter(|_| window.is_none() || seen.is_some());
        (AttentionConfig::Grouped(GroupedConfig { rotary, ..attention }.with_window(seen)), sizes.gated())
    })))
}

pub(in crate::config) fn read_smollm3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read_with(fields, 2_000_000.0)?;
    sizes.tied_embeddings = fields.ties(true)?;
    let attention = grouped(fields, &sizes)?;
    let window =
        if fields.flag_or("use_sliding_window", false)? { fields.size_or_none("sliding_window")? } else { None };
    let sliding = sizes.sliding_through(fields, window, |_| false)?;
    let turned = turned(fields, &sizes)?;
    Ok(sizes.decoder(&SMOLLM3, |index| {
        let rotary = attention.rotary.filter(|_| turned[index]);
        let window = window.filter(|_| sliding[index]);
        (AttentionConfig::Grouped(GroupedConfig { rotary, ..attention }.with_window(window)), sizes.gated())
    }))
}

/// Which layers have rotary positions: `no_rope_layers` says 1 for those that do.
pub(super) fn turned(fields: &Fields<'_>, sizes: &Sizes) -> Result<Vec<bool>, ConfigProblem> {
    let listed = fields.optional_counts("no_rope_layers")?.filter(|listed| !listed.is_empty());
    let Some(listed) = listed else {
        let every = fields.size_or("no_rope_layer_interval", 4)?;
        return Ok((0..sizes.layers).map(|index| !(index + 1).is_multiple_of(every)).collect());
    };
    if listed.len() as u64 != sizes.layers {
        let expected = format!("{} entries, one for each layer", sizes.layers);
        return Err(fields.wrong("no_rope_layers", format!("a list of {}", listed.len()), expected));
    }
    Ok(listed.iter().map(|turned| *turned != 0).collect())
}

pub(in crate::config) fn read_cohere(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    if fields.flag_or("use_qk_norm", false)? {
        return Err(fields.wrong("use_qk_norm", true, "false: its norms of queries and keys are not modelled"));
    }
    let sizes = Sizes::read(fields)?;
    let attention = interleaved(grouped(fields, &sizes)?);
    parallel(fields, sizes.uniform(&COHERE, AttentionConfig::Grouped(attention)))
}

pub(in crate::config) fn read_cohere2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let pattern = fields.size_or("sliding_window_pattern", 4)?;
    let sliding = sizes.sliding(fields, |index| !(index + 1).is_multiple_of(pattern))?;
    let window = fields.size_or("sliding_window", 4096)?;
    let attention = interleaved(grouped(fields, &sizes)?);
    let decoder = sizes.decoder(&COHERE2, |index| {
        let attention = if sliding[index] {
            attention.with_window(Some(window))
        } else {
            GroupedConfig { rotary: None, ..attention }
        };
        (AttentionConfig::Grouped(attention), sizes.gated())
    });
    parallel(fields, decoder)
}

fn parallel(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    decoder.norm.kind = NormKind::LayerWithoutBias;
    decoder.norm.placement = NormPlacement::Parallel { both: false };
    decoder.tied_embeddings = fields.ties(true)?;
    decoder.logit_scale = Some(fields.number_or("logit_scale", 0.0625)?);
    Ok(decoder)
}

pub(super) fn interleaved(mut attention: GroupedConfig) -> GroupedConfig {
    if let Some(rotary) = &mut attention.rotary {
        rotary.form.layout = RotaryLayout::Interleaved;
    }
    attention
}

pub(in crate::config) fn read_ernie(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = Sizes::read_with(fields, 500_000.0)?;
    sizes.tied_embeddings = fields.ties(true)?;
    sizes.mlp_bias = fields.flag_or("use_bias", false)?;
    Ok(sizes.uniform(&ERNIE, AttentionConfig::Grouped(ernie(fields, &sizes)?)))
}

/// One flag says whether every projection has a bias.
pub(super) fn ernie(fields: &Fields<'_>, sizes: &Sizes) -> Result<GroupedConfig, ConfigProblem> {
    let bias = fields.flag_or("use_bias", false)?;
    Ok(interleaved(GroupedConfig { input_bias: bias, output_bias: bias, ..sizes.grouped() }))
}

pub(in crate::config) fn read_glm(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    glm(fields, &GLM)
}

pub(in crate::config) fn read_glm4(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let mut decoder = glm(fields, &GLM4)?;
    decoder.norm.placement = NormPlacement::Around;
    Ok(decoder)
}

fn glm(fields: &Fields<'_>, family: &'static Family) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?.partial(fields, 0.5)?;
    // GLM-OCR's class has no biases and no flag for them.
    let bias = fields.flag_or("attention_bias", fields.kind() != Some("glm_ocr_text"))?;
    let attention = interleaved(GroupedConfig { input_bias: bias, ..sizes.grouped() });
    let gated = FeedForwardConfig::Gated(GatedConfig { fused: true, ..sizes.gated_of(sizes.intermediate) });
    Ok(sizes.decoder(family, |_| (AttentionConfig::Grouped(attention), gated)))
}

pub(in crate::config) fn read_ministral(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    windowed(fields, &MINISTRAL)
}

pub(in crate::config) fn read_ministral3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    windowed(fields, &MINISTRAL3)
}

pub(in crate::config) fn read_cwm(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    windowed(fields, &CWM)
}

/// A window in the layers `layer_types` names; in all where it names none.
fn windowed(fields: &Fields<'_>, family: &'static Family) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read_with(fields, 1_000_000.0)?;
    let window = fields.size_or_none("sliding_window")?;
    let sliding = sizes.sliding_through(fields, window, |_| true)?;
    let attention = sizes.grouped();
    Ok(sizes.decoder(family, |index| {
        let window = window.filter(|_| sliding[index]);
        (AttentionConfig::Grouped(attention.with_window(window)), sizes.gated())
    }))
}

/// Queries, keys and values of one projection, as older decoders have them.
pub(super) fn fused(attention: GroupedConfig, order: FusedOrder) -> GroupedConfig {
    GroupedConfig { fused: Some(order), ..attention }
}
