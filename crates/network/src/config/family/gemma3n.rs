//! Gemma 3n: four streams of which each layer computes one, embeddings of each layer, layers that use the cache of an
//! earlier one.

use super::described::Described;
use super::gemma4::cache_sources;
use super::sizes::{Sizes, WIDEST_HEAD, angles};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, GroupedConfig, PerLayerConfig, StreamsConfig, Values,
};
use crate::config::fields::Fields;

/// Most streams that are taken seriously.
const MOST_STREAMS: u64 = 16;

pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    let inner = inner_widths(fields)?;
    let sizes = Sizes::read_inner(fields, 1_000_000.0, inner[0])?;
    let sliding = sizes.sliding(fields, |index| !(index + 1).is_multiple_of(5))?;
    let sources = cache_sources(fields, &sliding, fields.count_or("num_kv_shared_layers", 15)?)?;
    let [everywhere, nearby] = match angles(fields, &sizes, [1_000_000.0, 10_000.0])? {
        Some(both) => both,
        None => [sizes.rotary, sizes.local(fields)?],
    };
    let window = fields.size_or("sliding_window", 512)?;
    let attention = GroupedConfig { scale: 1.0, value_norm: true, ..row.attention(fields, &sizes)? };
    let mut decoder = sizes.decoder(&row.family, |index| {
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
    decoder = row.finished(fields, decoder)?;
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
