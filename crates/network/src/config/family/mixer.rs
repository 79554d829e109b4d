//! Families whose layers have another mixer than attention beside it or in its place: Falcon-H1, LFM2, and Llama 3.2 Vision.

use super::described::Described;
use super::sizes::Sizes;
use super::state_space::{HYBRID_FIELDS, mamba2};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, GroupedConfig, HeadNorms, HybridConfig, NormPlacement,
    OutputGate, ShortConvConfig, StateSpaceConfig, StateSpaceKind,
};
use crate::config::fields::Fields;

/// Tokens of pictures, which have rows in the table of embeddings and none in the head.
const PICTURE_TOKENS: u64 = 8;

pub(in crate::config) fn read_mllama(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let stated = fields.optional_counts("cross_attention_layers")?;
    let crossed = stated.unwrap_or_else(|| (3..=38).step_by(5).collect());
    let attention = sizes.grouped();
    let across = GroupedConfig { head_norms: Some(HeadNorms::EachHead), rotary: None, ..attention };
    let mut decoder = sizes.decoder(&row.family, |index| {
        let attention = if crossed.contains(&(index as u64)) {
            AttentionConfig::Cross(across)
        } else {
            AttentionConfig::Grouped(attention)
        };
        (attention, sizes.gated())
    });
    decoder.further_tokens = PICTURE_TOKENS;
    Ok(decoder)
}

pub(in crate::config) fn read_falcon_h1(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let part = mamba2(fields, &HYBRID_FIELDS)?;
    let inner = fields.optional_size("mamba_d_ssm")?.unwrap_or(part.inner);
    let StateSpaceKind::Heads { heads, groups, chunk, .. } = part.kind else { return Err(of_heads(fields)) };
    fields.divides(("mamba_d_ssm", inner), ("mamba_n_heads", heads))?;
    let normed = fields.flag_or("mamba_rms_norm", false)?;
    let state_space = StateSpaceConfig {
        inner,
        output_bias: fields.flag_or("projectors_bias", false)?,
        kind: StateSpaceKind::Heads { heads, groups, chunk, normed },
        ..part
    };
    let attention = row.attention(fields, &sizes)?;
    let factor = |name: &str| fields.number_or(name, 1.0);
    let scales =
        [factor("attention_in_multiplier")?, factor("attention_out_multiplier")?, factor("ssm_out_multiplier")?];
    let hybrid = AttentionConfig::Hybrid(HybridConfig { attention, state_space, scales });
    let mut decoder = sizes.decoder(&row.family, |_| (hybrid, sizes.gated()));
    decoder.embedding_scale = Some(factor("embedding_multiplier")?).filter(|factor| *factor != 1.0);
    decoder.logit_scale = Some(factor("lm_head_multiplier")?).filter(|factor| *factor != 1.0);
    Ok(decoder)
}

fn of_heads(fields: &Fields<'_>) -> ConfigProblem {
    fields.wrong("mamba_n_heads", "absent", "heads of a Mamba-2 layer")
}

pub(in crate::config) fn read_lfm2(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let stated = fields.size_of(&["block_ff_dim", "intermediate_size"])?;
    lfm2(fields, row, Sizes::read_inner(fields, 1_000_000.0, adjusted(fields, stated)?)?)
}

/// Experts in all layers but the first few.
pub(in crate::config) fn read_lfm2_moe(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let corrects = fields.flag_or("use_expert_bias", true)?;
    let feed_forwards = row.feed_forwards(fields, &sizes)?;
    let mut decoder = lfm2(fields, row, sizes)?;
    for (layer, mut feed_forward) in decoder.layers.iter_mut().zip(feed_forwards) {
        if let FeedForwardConfig::Mixture(mixture) = &mut feed_forward {
            mixture.gate.correction = mixture.gate.correction.filter(|_| corrects);
        }
        layer.feed_forward = feed_forward;
    }
    Ok(decoder)
}

/// LFM2 with windows in most of its attention, gates of its heads, and norms behind both parts.
pub(in crate::config) fn read_lfm3(
    fields: &Fields<'_>,
    row: &'static Described,
) -> Result<DecoderConfig, ConfigProblem> {
    let sizes = row.sizes(fields)?;
    let gate = fields.flag_or("use_attention_gate", true)?.then_some(OutputGate::Heads);
    let attention = GroupedConfig { gate, ..row.attention(fields, &sizes)? };
    let window = fields.size_or_none("sliding_window")?;
    let kernel = fields.at_most("conv_L_cache", fields.size_or("conv_L_cache", 7)?, 1 << 10)?;
    let conv = ShortConvConfig { kernel, bias: fields.flag_or("conv_bias", false)? };
    let kinds = fields.text_list("layer_types")?;
    if kinds.len() as u64 != sizes.layers {
        let expected = format!("{} entries, one for each layer", sizes.layers);
        return Err(fields.wrong("layer_types", format!("a list of {}", kinds.len()), expected));
    }
    let mixer = |kind: &String| match kind.as_str() {
        "conv" => Ok(AttentionConfig::ShortConv(conv)),
        "full_attention" => Ok(AttentionConfig::Grouped(attention)),
        "sliding_attention" => Ok(AttentionConfig::Grouped(attention.with_window(window))),
        other => {
            let expected = "`conv`, `full_attention` or `sliding_attention`";
            Err(fields.wrong("layer_types", format!("\"{other}\""), expected))
        }
    };
    let mixers = kinds.iter().map(mixer).collect::<Result<Vec<_>, _>>()?;
    let mut decoder = sizes.decoder(&row.family, |index| (mixers[index], sizes.gated()));
    decoder.tied_embeddings = fields.ties(true)?;
    if fields.flag_or("use_sandwich_norm", true)? {
        decoder.norm.placement = NormPlacement::Around;
    }
    Ok(decoder)
}

fn lfm2(fields: &Fields<'_>, row: &'static Described, mut sizes: Sizes) -> Result<DecoderConfig, ConfigProblem> {
    sizes.tied_embeddings =
        if fields.states("tie_embedding") { fields.flag_or("tie_embedding", true)? } else { fields.ties(true)? };
    let attends = fields.optional_counts("full_attn_idxs")?;
    let rule = |index: u64| attends.as_ref().is_some_and(|attends| !attends.contains(&index));
    let convolves = sizes.kinds(fields, ["full_attention", "conv"], rule)?;
    let attention = GroupedConfig { head_norms: Some(HeadNorms::EachHead), ..sizes.grouped() };
    let kernel = fields.at_most("conv_L_cache", fields.size_or("conv_L_cache", 3)?, 1 << 10)?;
    let conv = ShortConvConfig { kernel, bias: fields.flag_or("conv_bias", false)? };
    let mixer = |index: usize| {
        if convolves[index] { AttentionConfig::ShortConv(conv) } else { AttentionConfig::Grouped(attention) }
    };
    Ok(sizes.decoder(&row.family, |index| (mixer(index), sizes.gated())))
}

/// The inner width that the class makes of the stated one.
fn adjusted(fields: &Fields<'_>, stated: u64) -> Result<u64, ConfigProblem> {
    if !fields.flag_or("block_auto_adjust_ff_dim", true)? {
        return Ok(stated);
    }
    let factor = fields.number_or("block_ffn_dim_multiplier", 1.0)?;
    let multiple = fields.at_most("block_multiple_of", fields.size_or("block_multiple_of", 256)?, 1 << 20)?;
    let inner = (factor * (2 * stated / 3) as f64) as u64;
    let inner = inner.div_ceil(multiple).saturating_mul(multiple);
    fields.at_most("intermediate_size", inner.max(1), 1 << 32)
}
