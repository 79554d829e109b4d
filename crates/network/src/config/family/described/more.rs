//! What families have that no switch says: factors and sizes of their own, and what is refused.

use types::{ActivationKind, RotaryForm, RotaryLayout, RotaryScaling};

use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, BlockIndexerConfig, DecoderConfig, FeedForwardConfig, GatedConfig, GroupedConfig, NormKind,
    NormPlacement, OutputGate, SharedConfig,
};
use crate::config::family::{WIDEST_HEAD, shared};
use crate::config::fields::Fields;
use crate::config::table::words;

/// What is done to a decoder that its row has described.
#[derive(Clone, Copy, Debug)]
pub(crate) struct More(pub(super) fn(&Fields<'_>, DecoderConfig) -> Result<DecoderConfig, ConfigProblem>);

words! {
    More: "nothing" => Self(|_, decoder| Ok(decoder)),
        "baichuan" => Self(baichuan),
        "chatglm" => Self(chatglm),
        "cohere" => Self(cohere),
        "cohere2-moe" => Self(cohere_moe),
        "deepseek-ocr" => Self(|fields, decoder| {
            refused_if(fields, decoder, ("use_mla", true), "latent attention is not part of DeepSeek-OCR")
        }),
        "glm" => Self(glm),
        "gpt-neo" => Self(local_layers),
        "gpt-oss" => Self(gpt_oss),
        "granite" => Self(scaled),
        "granite-shared" => Self(granite_shared),
        "hunyuan-moe" => Self(hunyuan),
        "hyperclovax" => Self(hyperclovax),
        "laguna" => Self(laguna),
        "minicpm3" => Self(minicpm),
        "minimax-m3" => Self(minimax),
        "opt" => Self(opt),
        "stablelm" => Self(|fields, decoder| {
            refused_if(fields, decoder, ("qk_layernorm", true), "a norm for each head is not modelled")
        }),
        "step" => Self(step);
}

fn scale(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, ConfigProblem> {
    Ok(fields.optional_number(name)?.filter(|factor| (*factor - 1.0).abs() > f64::EPSILON))
}

/// Factors of Granite: on embeddings, on scores, on what is added, on logits.
pub(in crate::config::family) fn scaled(
    fields: &Fields<'_>,
    mut decoder: DecoderConfig,
) -> Result<DecoderConfig, ConfigProblem> {
    decoder.embedding_scale = scale(fields, "embedding_multiplier")?;
    decoder.residual_scale = scale(fields, "residual_multiplier")?;
    decoder.logit_scale = scale(fields, "logits_scaling")?.map(|divisor| 1.0 / divisor);
    let factor = fields.number_or("attention_multiplier", 1.0)?;
    Ok(with_attention(decoder, |_, attention| attention.scale = factor))
}

/// An expert of a width of its own that every token passes through, and Granite's factors.
fn granite_shared(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let inner = fields.count_or("shared_intermediate_size", 0)?;
    for layer in &mut decoder.layers {
        if let FeedForwardConfig::Mixture(mixture) = &mut layer.feed_forward {
            mixture.shared = (inner > 0).then_some(SharedConfig { count: None, inner, gated: false });
        }
    }
    scaled(fields, decoder)
}

/// Norms behind attention and feed-forward unless the file says no, and Granite's factors.
fn hyperclovax(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if !fields.flag_or("use_post_norm", true)? {
        decoder.norm.placement = NormPlacement::Before;
    }
    scaled(fields, decoder)
}

/// The factor on logits.
fn cohere(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    decoder.logit_scale = Some(fields.number_or("logit_scale", 0.0625)?);
    refused_if(fields, decoder, ("use_qk_norm", true), "its norms of queries and keys are not modelled")
}

/// GLM-OCR's class has no biases and no flag for them.
fn glm(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let bare = fields.kind() == Some("glm_ocr_text") && !fields.states("attention_bias");
    Ok(with_attention(decoder, |_, attention| attention.input_bias &= !bare))
}

/// Angles that the class stretches where the file says nothing of them.
fn gpt_oss(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if ["rope_parameters", "rope_scaling"].iter().any(|name| fields.states(name)) {
        return Ok(decoder);
    }
    let magnitude = 0.1 * 32f64.ln() + 1.0;
    let (factor, fast, slow, original) = (32.0, 32.0, 1.0, 4096.0);
    let scaling = RotaryScaling::Yarn { factor, fast, slow, original, magnitude, truncate: false };
    let form = RotaryForm { layout: RotaryLayout::Halves, scaling };
    Ok(with_attention(decoder, |_, attention| {
        if let Some(rotary) = &mut attention.rotary {
            rotary.form = form;
        }
    }))
}

/// Values as wide as a head of plain attention would be.
fn minicpm(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let width = fields.size_or("v_head_dim", decoder.width / decoder.heads)?;
    for layer in &mut decoder.layers {
        if let AttentionConfig::Latent(latent) = &mut layer.attention {
            latent.value_width = fields.at_most("v_head_dim", width, WIDEST_HEAD)?;
        }
    }
    Ok(decoder)
}

/// Shared experts as wide as a dense feed-forward.
fn hunyuan(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let count = fields.uniform_size("num_shared_expert")?.unwrap_or(1);
    let inner = decoder.intermediate.unwrap_or_default();
    for layer in &mut decoder.layers {
        if let FeedForwardConfig::Mixture(mixture) = &mut layer.feed_forward {
            mixture.shared = shared(count, inner);
        }
    }
    Ok(decoder)
}

/// Laguna's layers may differ in heads, and its gates may have an element for each of the output.
fn laguna(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let gating = if fields.is_text("gating") { fields.optional_text("gating")? } else { None };
    let gate = match gating.as_deref() {
        None | Some("per-head") if !fields.is_text("gating") && !fields.flag_or("gating", true)? => {
            OutputGate::Elements
        }
        None | Some("per-head") => OutputGate::Heads,
        Some(_) => OutputGate::Elements,
    };
    let heads = fields.optional_counts("num_attention_heads_per_layer")?.unwrap_or_default();
    let each = heads_of(fields, "num_attention_heads_per_layer", &decoder, &heads)?;
    Ok(with_attention(decoder, |index, attention| {
        attention.gate = Some(gate);
        attention.heads = each.get(index).copied().unwrap_or(attention.heads);
    }))
}

/// That a list has query heads for every layer, if it has any, and that key-value heads divide them.
fn heads_of(
    fields: &Fields<'_>,
    name: &str,
    decoder: &DecoderConfig,
    heads: &[u64],
) -> Result<Vec<u64>, ConfigProblem> {
    let shared = fields.size_or("num_key_value_heads", decoder.heads)?;
    if !heads.is_empty() && heads.len() != decoder.layers.len() {
        let expected = format!("{} entries, one for each layer", decoder.layers.len());
        return Err(fields.wrong(name, format!("a list of {}", heads.len()), expected));
    }
    for each in heads {
        fields.divides((name, *each), ("num_key_value_heads", shared))?;
    }
    Ok(heads.to_vec())
}

/// Step 3.5's layers with a window have query heads of their own, and a list says which layers mix.
fn step(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if let Some(listed) = fields.optional_text("moe_layers_enum").ok().flatten()
        && !fields.states("mlp_layer_types")
    {
        let first = listed.split(',').filter_map(|index| index.trim().parse::<usize>().ok()).min();
        let count = listed.split(',').count();
        if first != Some(3) || count + 3 != decoder.layers.len() {
            let expected = "every layer from the fourth on, or `mlp_layer_types` in its place";
            return Err(fields.wrong("moe_layers_enum", format!("\"{listed}\""), expected));
        }
    }
    let other = fields.optional_object("attention_other_setting")?;
    let stated = other.map(|other| other.optional_size("num_attention_heads")).transpose()?.flatten();
    let near = match fields.optional_size("num_sliding_attention_heads")? {
        Some(heads) => heads,
        None => stated.unwrap_or(decoder.heads),
    };
    heads_of(fields, "num_sliding_attention_heads", &decoder, &vec![near; decoder.layers.len()])?;
    decoder.norm.kind = NormKind::RmsUnitOffset;
    Ok(with_attention(decoder, |_, attention| {
        if attention.detail.window.is_some() {
            attention.heads = near;
        }
    }))
}

/// Command A's mixtures norm by the mean square where the file says how far, and have dense layers of another width.
fn cohere_moe(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if fields.optional_number("rms_norm_eps")?.is_some() {
        decoder.norm.kind = NormKind::Rms;
    }
    if let Some(inner) = fields.optional_size("prefix_dense_intermediate_size")? {
        for layer in &mut decoder.layers {
            if let FeedForwardConfig::Gated(dense) = &mut layer.feed_forward {
                dense.inner = inner;
            }
        }
    }
    decoder.logit_scale = fields.optional_number("logit_scale")?;
    Ok(decoder)
}

/// MiniMax-M3's dense layers have another width, and most of its layers see chosen blocks of positions.
fn minimax(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let older = fields.optional_object("sparse_attention_config")?;
    let size = |name: &str, old: &str, default: u64| match &older {
        Some(older) if older.states(old) => older.size(old),
        _ => fields.size_or(name, default),
    };
    let blocks = BlockIndexerConfig {
        heads: size("index_n_heads", "sparse_num_index_heads", 4)?,
        width: size("index_head_dim", "sparse_index_dim", 128)?,
        keep: size("index_block_size", "sparse_block_size", 128)?.saturating_mul(size(
            "index_topk_blocks",
            "sparse_topk_blocks",
            16,
        )?),
    };
    let frequency = older.map(|older| older.optional_counts("sparse_attention_freq")).transpose()?.flatten();
    let kinds = fields.text_list("layer_types")?;
    let is_sparse = |index: usize| match (kinds.get(index), &frequency) {
        (Some(kind), _) => kind == "minimax_m3_sparse",
        (None, Some(listed)) => listed.get(index).is_some_and(|flag| *flag != 0),
        (None, None) => false,
    };
    if let Some(kind) = kinds.iter().find(|kind| !matches!(kind.as_str(), "minimax_m3_sparse" | "full_attention")) {
        return Err(fields.wrong("layer_types", format!("\"{kind}\""), "`full_attention` or `minimax_m3_sparse`"));
    }
    fields.left_open("layer_types", "as its class has them");
    let inner = fields.size_or("dense_intermediate_size", 12_288)?;
    let frequency = fields.optional_counts("moe_layer_freq")?;
    if frequency.is_none() {
        fields.left_open("mlp_layer_types", "experts in every layer");
    }
    let mixes = |index: usize| frequency.as_ref().is_none_or(|listed| listed.get(index).is_none_or(|flag| *flag != 0));
    let dense = GatedConfig { inner, activation: ActivationKind::Silu, bias: false, fused: true };
    for (index, layer) in decoder.layers.iter_mut().enumerate() {
        let is_dense = matches!(layer.feed_forward, FeedForwardConfig::Gated(_));
        if is_dense || (!fields.states("mlp_layer_types") && !mixes(index)) {
            layer.feed_forward = FeedForwardConfig::Gated(dense);
        }
    }
    Ok(with_attention(decoder, |index, attention| attention.blocks = is_sparse(index).then_some(blocks)))
}

/// ChatGLM2 and later. The first generation, which goes by the same names, has biases, positions in two dimensions and a
/// feed-forward without a gate.
fn chatglm(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    if let Some(field) = ["position_encoding_2d", "inner_hidden_size"].into_iter().find(|field| fields.states(field)) {
        let expected = "no such field: the first ChatGLM-6B is not modelled, ChatGLM2 and later are";
        return Err(fields.wrong(field, "stated", expected));
    }
    refused_if(fields, decoder, ("multi_query_attention", false), "a key and value for each head is not modelled")
}

/// Baichuan's two published widths: positions are rotary at 4,096, and biases on scores, which nothing keeps, at 5,120.
fn baichuan(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    match decoder.width {
        4096 => Ok(decoder),
        5120 => Ok(with_attention(decoder, |_, attention| attention.rotary = None)),
        other => Err(fields.wrong("hidden_size", other, "4096 (7B, rotary positions) or 5120 (13B, ALiBi)")),
    }
}

/// OPT's published sizes but 350M, which norms behind and embeds in another width.
fn opt(fields: &Fields<'_>, mut decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let projected = fields.size_or("word_embed_proj_dim", decoder.width)?;
    if projected != decoder.width {
        return Err(fields.wrong("word_embed_proj_dim", projected, format!("`hidden_size` ({})", decoder.width)));
    }
    decoder.norm.epsilon = 1e-5;
    let decoder = refused_if(fields, decoder, ("do_layer_norm_before", false), "norms behind are not modelled")?;
    refused_if(fields, decoder, ("layer_norm_elementwise_affine", false), "norms without weights are not modelled")
}

/// GPT-Neo's layers that see a window, as `attention_types` repeats them.
fn local_layers(fields: &Fields<'_>, decoder: DecoderConfig) -> Result<DecoderConfig, ConfigProblem> {
    let local = fields.repeated("attention_types", ["global", "local"], decoder.layers.len())?;
    let window = fields.size_or("window_size", 256)?;
    Ok(with_attention(decoder, |index, attention| attention.detail.window = local[index].then_some(window)))
}

/// Every layer's attention changed.
fn with_attention(mut decoder: DecoderConfig, change: impl Fn(usize, &mut GroupedConfig)) -> DecoderConfig {
    for (index, layer) in decoder.layers.iter_mut().enumerate() {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention {
            change(index, attention);
        }
    }
    decoder
}

/// The family as it is, unless the file sets a flag to what is not modelled.
fn refused_if(
    fields: &Fields<'_>,
    decoder: DecoderConfig,
    (name, refused): (&str, bool),
    why: &str,
) -> Result<DecoderConfig, ConfigProblem> {
    if fields.flag_or(name, !refused)? == refused {
        return Err(fields.wrong(name, refused, format!("{}: {why}", !refused)));
    }
    Ok(decoder)
}
