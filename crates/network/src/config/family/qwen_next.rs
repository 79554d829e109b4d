//! Qwen3-Next, Qwen3.5 and their mixtures, and Olmo Hybrid: three layers of gated delta-net to one of attention.

use super::described::Described;
use super::sizes::{Sizes, WIDEST_HEAD};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, DeltaConfig, DeltaProjections, GroupedConfig, OutputGate,
};
use crate::config::fields::Fields;

/// Olmo's attention without positions where the file states no base for them.
pub(in crate::config) fn read_olmo(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let rotates = match fields.optional_object("rope_parameters")? {
        None => false,
        Some(stated) => stated.optional_number("rope_theta")?.is_some(),
    };
    let rotary = Some(sizes.rotary).filter(|_| rotates);
    let attention = GroupedConfig { rotary, ..row.attention(fields, &sizes)? };
    let keys = fields.size_or("linear_num_key_heads", sizes.heads)?;
    let width = fields.size_or("linear_key_head_dim", (sizes.width * 3 / 4 / keys).max(1))?;
    let defaults = [keys, sizes.heads, width, 2 * width];
    mixed(fields, &sizes, row, (attention, defaults, DeltaProjections::Apart))
}

/// Qwen's, whose projections to linear attention are two or four.
pub(in crate::config) fn read(
    fields: &Fields<'_>,
    row: &'static Described,
    projections: DeltaProjections,
) -> Result<DecoderConfig, ConfigProblem> {
    if !fields.flag_or("attn_output_gate", true)? {
        return Err(fields.wrong("attn_output_gate", false, "true"));
    }
    let sizes = row.sizes(fields)?;
    let attention = GroupedConfig { gate: Some(OutputGate::InQuery), ..row.attention(fields, &sizes)? };
    mixed(fields, &sizes, row, (attention, [16, 32, 128, 128], projections))
}

/// Layers of linear attention with one of `attention` behind every few, with the sizes that files leave open: heads of keys and
/// of values, and their widths.
fn mixed(
    fields: &Fields<'_>,
    sizes: &Sizes,
    row: &'static Described,
    (attention, [keys, values, key_width, value_width], projections): (GroupedConfig, [u64; 4], DeltaProjections),
) -> Result<DecoderConfig, ConfigProblem> {
    let bounded = |name: &str, default: u64| fields.at_most(name, fields.size_or(name, default)?, WIDEST_HEAD);
    let delta = DeltaConfig {
        key_heads: bounded("linear_num_key_heads", keys)?,
        value_heads: bounded("linear_num_value_heads", values)?,
        key_width: bounded("linear_key_head_dim", key_width)?,
        value_width: bounded("linear_value_head_dim", value_width)?,
        kernel: fields.at_most("linear_conv_kernel_dim", fields.size_or("linear_conv_kernel_dim", 4)?, 1 << 10)?,
        projections,
    };
    fields.divides(("linear_num_value_heads", delta.value_heads), ("linear_num_key_heads", delta.key_heads))?;
    let every = fields.size_or("full_attention_interval", 4)?;
    let linear =
        sizes.kinds(fields, ["full_attention", "linear_attention"], |index| !(index + 1).is_multiple_of(every))?;
    let feed_forwards = row.feed_forwards(fields, sizes)?;
    let decoder = sizes.decoder(&row.family, |index| {
        let attention = if linear[index] { AttentionConfig::Delta(delta) } else { AttentionConfig::Grouped(attention) };
        (attention, feed_forwards[index])
    });
    row.finished(fields, decoder)
}
