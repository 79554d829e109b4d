//! Gemma 3n: four streams of which each layer computes one, embeddings of each layer, layers that use the cache of an
//! earlier one.

use types::ActivationKind;

use super::gemma::angles;
use super::gemma4::cache_sources;
use super::sizes::{Sizes, WIDEST_HEAD};
use super::{Definitions, Family, NORMS_AROUND, Names, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, GroupedConfig, HeadNorms, NormPlacement, PerLayerConfig,
    StreamsConfig, Values,
};
use crate::config::fields::Fields;

/// Most streams that are taken seriously.
const MOST_STREAMS: u64 = 16;

pub(crate) const FAMILY: Family = Family {
    home: "transformers.models.gemma3n.modeling_gemma3n",
    names: Names {
        causal: "Gemma3nForCausalLM",
        norm: "Gemma3nRMSNorm",
        bare_norm: "Gemma3nRMSNorm",
        embedding: "Gemma3nTextScaledWordEmbedding",
        layer_norms: NORMS_AROUND,
        ..names!("Gemma3nText")
    },
    definitions: Definitions {
        layer: "streams = altup.predict(streams); h = (x + post_attention_layernorm(self_attn(n)) + laurel(n)) / \
                sqrt(2) with x the active stream and n = input_layernorm(x); y = h + \
                post_feedforward_layernorm(mlp(pre_feedforward_layernorm(h))); altup.correct(streams, y), plus the \
                contribution of the layer's own embeddings to the other streams",
        attention: "y = o_proj(softmax(q k^T, causal) v) with q, k and v normalised per head, q and k rotated; four of \
                    five layers see a window of keys only",
        embedding: "y = table[ids] * sqrt(hidden_size)",
        mlp: "y = down_proj(gelu(gate_proj(x)) * up_proj(x)), with the gate cut off below a quantile in the first layers",
        ..Definitions::COMMON
    },
};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    let inner = inner_widths(fields)?;
    let mut sizes = Sizes::read_inner(fields, 1_000_000.0, inner[0])?;
    let head_width = fields.at_most("head_dim", fields.size_or("head_dim", 256)?, WIDEST_HEAD)?;
    sizes = sizes.head_width(head_width);
    if !["hidden_activation", "hidden_act"].iter().any(|name| fields.states(name)) {
        sizes.activation = ActivationKind::GeluTanh;
    }
    sizes.tied_embeddings = fields.ties(true)?;
    let sliding = sizes.sliding(fields, |index| !(index + 1).is_multiple_of(5))?;
    let sources = cache_sources(fields, &sliding, fields.count_or("num_kv_shared_layers", 15)?)?;
    let [everywhere, nearby] = angles(fields, head_width)?;
    let bias = fields.flag_or("attention_bias", false)?;
    let window = fields.size_or("sliding_window", 512)?;
    let attention = GroupedConfig {
        input_bias: bias,
        output_bias: bias,
        scale: 1.0,
        head_norms: Some(HeadNorms::EachHead),
        value_norm: true,
        ..sizes.grouped()
    };
    let mut decoder = sizes.decoder(&FAMILY, |index| {
        let mut part = if sliding[index] {
            GroupedConfig { rotary: Some(nearby), ..attention.with_window(Some(window)) }
        } else {
            GroupedConfig { rotary: Some(everywhere), ..attention }
        };
        if let Some(source) = sources[index] {
            part.values = Values::OfLayer(source);
        }
        (AttentionConfig::Grouped(part), FeedForwardConfig::Gated(sizes.gated_of(inner[index])))
    });
    decoder.norm.placement = NormPlacement::Around;
    decoder.embedding_scale = Some((sizes.width as f64).sqrt());
    decoder.logit_softcap = if fields.states("final_logit_softcapping") {
        fields.optional_number("final_logit_softcapping")?
    } else {
        Some(30.0)
    };
    let own = fields.size_or("hidden_size_per_layer_input", 256)?;
    decoder.per_layer = Some(PerLayerConfig {
        width: fields.at_most("hidden_size_per_layer_input", own, WIDEST_HEAD)?,
        vocabulary: fields.size_or("vocab_size_per_layer_input", 262_144)?,
    });
    let count = fields.at_most("altup_num_inputs", fields.size_or("altup_num_inputs", 4)?, MOST_STREAMS)?;
    let active = fields.count_or("altup_active_idx", 0)?;
    if active >= count {
        return Err(fields.wrong("altup_active_idx", active, format!("less than `altup_num_inputs` ({count})")));
    }
    decoder.streams = Some(StreamsConfig { count, active, rank: fields.size_or("laurel_rank", 64)? });
    Ok(decoder)
}

/// Inner widths of all layers, from a list or from one for all.
fn inner_widths(fields: &Fields<'_>) -> Result<Vec<u64>, ConfigProblem> {
    let layers = fields.layers("num_hidden_layers")?;
    match fields.uniform_size("intermediate_size") {
        Ok(Some(inner)) => Ok(vec![inner; layers as usize]),
        _ => {
            let widths = fields.counts("intermediate_size")?;
            let right = widths.len() as u64 == layers && widths.iter().all(|width| *width > 0);
            let expected = || format!("a size, or {layers} of them, one for each layer");
            right.then_some(widths).ok_or_else(|| fields.wrong("intermediate_size", "another list", expected()))
        }
    }
}
