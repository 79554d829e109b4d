//! Attention of a decoder layer: projections, rotary positions, cache.

use types::Op;

use super::Linear;
use crate::{Backend, Builder, Module, NetworkError, Ops};

#[derive(Clone, Copy, Debug)]
pub(crate) struct DecoderAttentionSettings {
    /// Class name of the published module.
    pub(crate) class: &'static str,
    /// Class name of its rotary submodule; absent where the model computes angles once for all layers.
    pub(crate) rotary_class: Option<&'static str>,
    pub(crate) width: u64,
    pub(crate) heads: u64,
    pub(crate) key_value_heads: u64,
    pub(crate) head_width: u64,
    pub(crate) bias: bool,
    pub(crate) theta: f64,
    /// Index of the layer; names its part of the cache.
    pub(crate) layer: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct DecoderAttention {
    module: Module,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    rotary: Option<Module>,
    settings: DecoderAttentionSettings,
}

impl DecoderAttention {
    pub(crate) fn new(builder: &mut Builder, settings: DecoderAttentionSettings) -> Self {
        let DecoderAttentionSettings { class, width, heads, key_value_heads, head_width, bias, .. } = settings;
        builder.module("self_attn", class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            builder.setting("num_key_value_heads", key_value_heads);
            builder.setting("head_dim", head_width);
            builder.setting("rope_theta", settings.theta);
            Self {
                module,
                query: Linear::new(builder, "q_proj", width, heads * head_width, bias),
                key: Linear::new(builder, "k_proj", width, key_value_heads * head_width, bias),
                value: Linear::new(builder, "v_proj", width, key_value_heads * head_width, bias),
                output: Linear::new(builder, "o_proj", heads * head_width, width, bias),
                rotary: settings.rotary_class.map(|class| builder.module("rotary_emb", class, |_, module| module)),
                settings,
            }
        })
    }

    /// `x [B, S, O]`, whose first position is `offset`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let DecoderAttentionSettings { heads, key_value_heads, head_width, layer, .. } = self.settings;
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let query = self.query.forward(b, x)?;
            let key = self.key.forward(b, x)?;
            let value = self.value.forward(b, x)?;
            let split = |b: &mut B, projected: &B::Tensor, heads: u64| {
                let split = b.reshape(projected, [batch, length, heads, head_width])?;
                b.permute(&split, [0, 2, 1, 3])
            };
            let query = split(b, &query, heads)?;
            let key = split(b, &key, key_value_heads)?;
            let value = split(b, &value, key_value_heads)?;
            let query = self.rotate(b, &query, offset)?;
            let key = self.rotate(b, &key, offset)?;
            let (keys, values) = b.cache(layer, key, value)?;
            let scale = 1.0 / (head_width as f64).sqrt();
            let mixed = b.apply(Op::Attention { causal: true, scale, fused: false }, &[&query, &keys, &values])?;
            let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            let mixed = b.reshape(&mixed, [batch, length, heads * head_width])?;
            self.output.forward(b, &mixed)
        })
    }

    fn rotate<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let op = Op::Rotary { theta: self.settings.theta, offset };
        match self.rotary {
            Some(module) => b.scope(module, &[x], |b| b.apply(op, &[x])),
            None => b.apply(op, &[x]),
        }
    }
}
