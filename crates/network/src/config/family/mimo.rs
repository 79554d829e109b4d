//! MiMo: attention through windows with sinks and other heads in most layers.

use super::described::Described;
use super::sizes::WIDEST_HEAD;
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, GroupedConfig};
use crate::config::fields::Fields;

pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    let mut sizes = row.sizes(fields)?;
    if let Some(epsilon) = fields.optional_number("layernorm_epsilon")? {
        sizes.epsilon = epsilon;
    }
    let value_width = fields.at_most("v_head_dim", fields.size_or("v_head_dim", 128)?, WIDEST_HEAD)?;
    let attention = GroupedConfig { value_width, ..row.attention(fields, &sizes)? };
    let sliding = match sizes.flags(fields, "hybrid_layer_pattern")? {
        Some(listed) if !fields.states("layer_types") => listed,
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
    let feed_forwards = row.feed_forwards(fields, &sizes)?;
    Ok(sizes.decoder(&row.family, |index| {
        let attention = if sliding[index] { near } else { attention };
        (AttentionConfig::Grouped(attention), feed_forwards[index])
    }))
}
