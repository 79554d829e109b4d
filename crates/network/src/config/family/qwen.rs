//! Qwen2, Qwen2.5 and Qwen3: biases on queries, keys and values in the former, norms of queries and keys in the latter.

use super::sizes::Sizes;
use super::{Definitions, Family, names};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, GroupedConfig, HeadNorms};
use crate::config::fields::Fields;

pub(crate) const QWEN2: Family = Family {
    home: "transformers.models.qwen2.modeling_qwen2",
    names: names!("Qwen2"),
    definitions: Definitions::COMMON,
};

pub(crate) const QWEN3: Family = Family {
    home: "transformers.models.qwen3.modeling_qwen3",
    names: names!("Qwen3"),
    definitions: Definitions {
        attention: "y = o_proj(softmax(q k^T / sqrt(d), causal) v) with q and k normalised per head, then rotated, \
                    over all cached keys and values",
        ..Definitions::COMMON
    },
};

pub(in crate::config) fn read_qwen2(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    qwen2(fields, &QWEN2)
}

pub(in crate::config) fn read_qwen3(fields: &Fields<'_>) -> Result<DecoderConfig, ConfigProblem> {
    qwen3(fields, &QWEN3)
}

pub(super) fn qwen2(fields: &Fields<'_>, family: &'static Family) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = Sizes::read(fields)?;
    let attention = GroupedConfig { input_bias: true, ..sizes.grouped() };
    windowed(fields, &sizes, family, attention)
}

pub(super) fn qwen3(fields: &Fields<'_>, family: &'static Family) -> Result<DecoderConfig, ConfigProblem> {
    // Published configurations state the width of a head; the class takes 128 where they do not.
    let sizes = Sizes::read(fields)?.head_width(fields.size_or("head_dim", 128)?);
    let bias = fields.flag_or("attention_bias", false)?;
    let attention =
        GroupedConfig { input_bias: bias, output_bias: bias, head_norms: Some(HeadNorms::EachHead), ..sizes.grouped() };
    windowed(fields, &sizes, family, attention)
}

/// Layers from `max_window_layers` on have a window, when windows are used at all.
fn windowed(
    fields: &Fields<'_>,
    sizes: &Sizes,
    family: &'static Family,
    attention: GroupedConfig,
) -> Result<DecoderConfig, ConfigProblem> {
    let window =
        if fields.flag_or("use_sliding_window", false)? { Some(fields.size_or("sliding_window", 4096)?) } else { None };
    let first = if window.is_some() { fields.count_or("max_window_layers", 28)? } else { 0 };
    let sliding = sizes.sliding_through(fields, window, |index| index >= first)?;
    Ok(sizes.decoder(family, |index| {
        let window = window.filter(|_| sliding[index]);
        (AttentionConfig::Grouped(attention.with_window(window)), sizes.gated())
    }))
}
