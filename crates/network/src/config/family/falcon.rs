//! Falcon: fields of other names, and attention and feed-forward side by side.

use types::ActivationKind;

use super::described::Described;
use super::sizes::{Sizes, activation_named, rotary};
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, FeedForwardConfig, FusedOrder, GroupedConfig, NormKind, NormPlacement, PlainConfig,
};
use crate::config::fields::Fields;

pub(in crate::config) fn read(fields: &Fields<'_>, row: &'static Described) -> Result<DecoderConfig, ConfigProblem> {
    if fields.flag_or("alibi", false)? {
        return Err(fields.wrong("alibi", true, "false: position biases are not modelled"));
    }
    let width = fields.size("hidden_size")?;
    let heads = fields.size_of(&["num_attention_heads", "n_head"])?;
    let new = fields.flag_or("new_decoder_architecture", false)?;
    let multi_query = fields.flag_or("multi_query", true)?;
    let key_value_heads = match (new, multi_query) {
        (true, _) => match fields.optional_size_of(&["num_kv_heads", "n_head_kv"])? {
            Some(heads) => heads,
            None => fields.size_or("num_kv_heads", heads)?,
        },
        (false, true) => 1,
        (false, false) => heads,
    };
    let epsilon = fields.number_or("layer_norm_epsilon", 1e-5)?;
    let layers = fields.size_of(&["num_hidden_layers", "n_layer"])?;
    let inner = fields.size_or("ffn_hidden_size", 4 * width)?;
    let mut sizes = Sizes::stated(fields, [width, heads, key_value_heads, layers, inner], epsilon)?;
    sizes.rotary = rotary(fields, 10_000.0, sizes.head_width)?;
    sizes.tied_embeddings = fields.ties(true)?;
    let bias = fields.flag_or("bias", false)?;
    let activation = match fields.optional_text("activation")? {
        None => ActivationKind::Gelu,
        Some(text) => activation_named(&text).ok_or_else(|| fields.wrong("activation", text, "gelu"))?,
    };
    let fused = Some(FusedOrder::Groups);
    let attention = GroupedConfig { input_bias: bias, output_bias: bias, fused, ..sizes.grouped() };
    let attention = AttentionConfig::Grouped(attention);
    let plain = FeedForwardConfig::Plain(PlainConfig { inner: sizes.intermediate, activation, bias });
    let two = new && fields.size_or("num_ln_in_parallel_attn", 2)? == 2;
    let row = if two { super::described::row("falcon-two")? } else { row };
    let mut decoder = sizes.decoder(&row.family, |_| (attention, plain));
    decoder.norm.kind = NormKind::Layer;
    if new || fields.flag_or("parallel_attn", true)? {
        decoder.norm.placement = NormPlacement::Parallel { both: two };
    }
    Ok(decoder)
}
