//! DeciLM, from which Llama-Nemotron Super and Ultra are made: a Llama whose layers differ in size or lack a part.

use super::described::Described;
use super::sizes::Sizes;
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig, FeedForwardConfig, GroupedConfig};
use crate::config::fields::Fields;

pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    let width = fields.size("hidden_size")?;
    let sizes = Sizes::read_inner(fields, 500_000.0, width)?;
    let blocks = fields.objects("block_configs")?;
    if blocks.len() as u64 != sizes.layers {
        let expected = format!("{} entries, one for each layer", sizes.layers);
        return Err(fields.wrong("block_configs", format!("a list of {}", blocks.len()), expected));
    }
    let layer = |block: &Fields<'_>| {
        let [attention, feed_forward] = [block.object("attention")?, block.object("ffn")?];
        Ok((mixer(&attention, &sizes)?, inner(&feed_forward, width)?))
    };
    let layers = blocks.iter().map(layer).collect::<Result<Vec<_>, ConfigProblem>>()?;
    let mut decoder = sizes.decoder(&row.family, |index| {
        let (attention, inner) = layers[index];
        let gated = |inner| FeedForwardConfig::Gated(sizes.gated_of(inner));
        (attention, inner.map_or(FeedForwardConfig::Absent, gated))
    });
    decoder.intermediate = None;
    Ok(decoder)
}

/// Whether a part is there; a matrix in its place is not modelled.
fn is_there(part: &Fields<'_>) -> Result<bool, ConfigProblem> {
    if part.flag_or("replace_with_linear", false)? {
        return Err(part.wrong("replace_with_linear", true, "false: a matrix in place of a part is not modelled"));
    }
    Ok(!part.flag_or("no_op", false)?)
}

fn mixer(part: &Fields<'_>, sizes: &Sizes) -> Result<AttentionConfig, ConfigProblem> {
    if !is_there(part)? {
        return Ok(AttentionConfig::Absent);
    }
    if let Some(sinks) = part.optional_size("num_sink_tokens")? {
        return Err(part.wrong("num_sink_tokens", sinks, "null: tokens that every position sees are not modelled"));
    }
    let group = part.size("n_heads_in_group")?;
    if !sizes.heads.is_multiple_of(group) {
        let expected = format!("a divisor of `num_attention_heads` ({})", sizes.heads);
        return Err(part.wrong("n_heads_in_group", group, expected));
    }
    let attention = GroupedConfig { key_value_heads: sizes.heads / group, ..sizes.grouped() };
    Ok(AttentionConfig::Grouped(attention.with_window(part.optional_size("window_length")?)))
}

/// The inner width of a feed-forward: stated, or a factor as the published code rounds it.
fn inner(part: &Fields<'_>, width: u64) -> Result<Option<u64>, ConfigProblem> {
    if !is_there(part)? {
        return Ok(None);
    }
    if let Some(stated) = part.optional_size("intermediate_size")? {
        return Ok(Some(stated));
    }
    let inner = (2.0 * part.number("ffn_mult")? * width as f64 / 3.0) as u64;
    part.at_most("ffn_mult", inner, 1 << 32).map(|inner| Some(inner.max(1).next_multiple_of(256)))
}
