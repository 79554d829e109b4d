//! Gemma 4: heads of two widths, keys that are values too, layers that use the cache of an earlier one, embeddings of
//! each layer, and experts beside a dense feed-forward.

use super::described::Described;
use super::mixture::mixture;
use super::sizes::{Sizes, WIDEST_HEAD, rotary_of};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, BesideConfig, DecoderConfig, FeedForwardConfig, GroupedConfig, PerLayerConfig, RotaryConfig,
    Values,
};
use crate::config::fields::Fields;

pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    let mut decoder = read_unified(fields, row)?;
    decoder.per_layer = match fields.count_or("hidden_size_per_layer_input", 256)? {
        0 => None,
        width => Some(PerLayerConfig {
            width: fields.at_most("hidden_size_per_layer_input", width, WIDEST_HEAD)?,
            vocabulary: fields.size_or("vocab_size_per_layer_input", 262_144)?,
        }),
    };
    Ok(decoder)
}

/// Without embeddings of each layer and without experts.
pub(in crate::config) fn read_unified(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    if fields.optional_text("use_bidirectional_attention")?.is_some_and(|kind| kind == "all") {
        return Err(fields.wrong(
            "use_bidirectional_attention",
            "\"all\"",
            "\"vision\" or absent: a decoder is causal",
        ));
    }
    let mut sliding = sizes.sliding(fields, |index| !(index + 1).is_multiple_of(6))?;
    // The class sees to it that the last layer sees everything.
    if let Some(last) = sliding.last_mut() {
        *last = false;
    }
    let kinds = attention(fields, (row, &sizes), stated_by_layer(fields, &sliding)?)?;
    let sources = cache_sources(fields, &sliding, fields.count_or("num_kv_shared_layers", 0)?)?;
    let doubled = fields.flag_or("use_double_wide_mlp", false)?;
    let beside = if fields.flag_or("enable_moe_block", false)? {
        let inner = fields.size("moe_intermediate_size")?;
        Some(mixture(fields, &sizes, ("num_experts", fields.size("num_experts")?), inner)?)
    } else {
        None
    };
    let mut decoder = sizes.decoder(&row.family, |index| {
        let mut part = kinds[usize::from(sliding[index])];
        let mut dense = sizes.gated_of(sizes.intermediate);
        if let Some(source) = sources[index] {
            part.values = Values::OfLayer(source);
            dense.inner *= if doubled { 2 } else { 1 };
        }
        let feed_forward = match beside {
            None => FeedForwardConfig::Gated(dense),
            Some(mixture) => FeedForwardConfig::Beside(BesideConfig { dense, mixture }),
        };
        (AttentionConfig::Grouped(part), feed_forward)
    });
    decoder.layer_scalar = true;
    row.finished(fields, decoder)
}

/// The layer whose keys and values each layer uses, where they are not its own: the last of its kind before the last
/// `shared` layers.
pub(super) fn cache_sources(
    fields: &Fields<'_>,
    sliding: &[bool],
    shared: u64,
) -> Result<Vec<Option<usize>>, ConfigProblem> {
    let first = sliding.len().saturating_sub(usize::try_from(shared).unwrap_or(usize::MAX));
    let mut sources = vec![None; sliding.len()];
    for index in first..sliding.len() {
        let earlier = (0..first).rev().find(|earlier| sliding[*earlier] == sliding[index]);
        let expected = || format!("fewer, so that an earlier layer like layer {index} keeps its keys and values");
        let source = earlier.ok_or_else(|| fields.wrong("num_kv_shared_layers", shared, expected()))?;
        sources[index] = Some(source);
    }
    Ok(sources)
}

/// Width and key heads of the layers that see everything, where a file lists them layer by layer; the newer way to say so.
fn stated_by_layer(fields: &Fields<'_>, sliding: &[bool]) -> Result<[Option<u64>; 2], ConfigProblem> {
    let Some(listed) = fields.optional_object(BY_LAYER)? else { return Ok([None, None]) };
    let mut found = Vec::new();
    for (index, sliding) in sliding.iter().enumerate() {
        let names = [index.to_string(), format!("{index:02}")];
        let named = names.iter().find(|name| listed.states(name));
        let own = named.map(|name| listed.optional_object(name)).transpose()?.flatten();
        let known = ["head_dim", "num_key_value_heads"];
        match own {
            None if *sliding => {}
            Some(own) if !sliding && own.names().all(|name| known.contains(&name)) => {
                found.push([own.optional_size("head_dim")?, own.optional_size("num_key_value_heads")?]);
            }
            None => found.push([None, None]),
            Some(_) => return Err(fields.wrong(BY_LAYER, format!("another for layer {index}"), EXPECTED_BY_LAYER)),
        }
    }
    match found.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => Ok(*first),
        None => Ok([None, None]),
        Some(_) => Err(fields.wrong(BY_LAYER, "of different layers", EXPECTED_BY_LAYER)),
    }
}

const BY_LAYER: &str = "per_layer_config";
const EXPECTED_BY_LAYER: &str =
    "`head_dim` and `num_key_value_heads` of all layers that see everything, the same for each";

/// Attention of layers that see everything, and of those that see a window.
fn attention(
    fields: &Fields<'_>,
    (row, sizes): (&Described, &Sizes),
    [far_width, far_heads]: [Option<u64>; 2],
) -> Result<[GroupedConfig; 2], ConfigProblem> {
    let near = GroupedConfig { scale: 1.0, value_norm: true, ..row.attention(fields, sizes)? };
    let width = match far_width {
        Some(width) => fields.at_most("per_layer_config", width, WIDEST_HEAD)?,
        None => fields.at_most("global_head_dim", fields.size_or("global_head_dim", 512)?, WIDEST_HEAD)?,
    };
    let alike = fields.flag_or("attention_k_eq_v", false)?;
    let mut far = GroupedConfig { head_width: width, value_width: width, ..near };
    if alike {
        far.values = Values::Keys;
        far.key_value_heads = fields.size_or("num_global_key_value_heads", near.key_value_heads)?;
    }
    far.key_value_heads = far_heads.unwrap_or(far.key_value_heads);
    fields.divides(("num_attention_heads", far.heads), ("num_global_key_value_heads", far.key_value_heads))?;
    let both = fields.optional_object("rope_parameters")?;
    let angles = |kind: &str, theta: f64, width: u64| -> Result<RotaryConfig, ConfigProblem> {
        let stated = both.as_ref().map(|both| both.optional_object(kind)).transpose()?.flatten();
        rotary_of(fields, stated.as_ref(), theta, width)
    };
    far.rotary = Some(angles("full_attention", 1_000_000.0, width)?);
    let window = fields.size_or("sliding_window", 512)?;
    let near = GroupedConfig { rotary: Some(angles("sliding_attention", 10_000.0, near.head_width)?), ..near };
    Ok([far, near.with_window(Some(window))])
}
