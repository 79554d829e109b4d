//! Attention with heads that share keys and values in groups: projections, norms, rotary positions, cache.

use types::Op;

use super::{Linear, RmsNorm, Rotary};
use crate::config::Names;
use crate::config::decoder::{GroupedConfig, NormConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct GroupedAttention {
    module: Module,
    inputs: Inputs,
    output: Linear,
    norms: Option<[RmsNorm; 2]>,
    sinks: Option<Param>,
    rotary: Rotary,
    config: GroupedConfig,
    layer: usize,
}

#[derive(Clone, Debug)]
enum Inputs {
    Apart([Linear; 3]),
    Fused(Linear),
}

impl GroupedAttention {
    /// Attention of layer `layer`, which names its part of the cache.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: GroupedConfig,
        norm: NormConfig,
        layer: usize,
    ) -> Self {
        let GroupedConfig { heads, key_value_heads, head_width, input_bias, output_bias, .. } = config;
        builder.module("self_attn", names.attention, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            builder.setting("num_key_value_heads", key_value_heads);
            builder.setting("head_dim", head_width);
            builder.setting("rope_theta", config.rotary.theta);
            if let Some(window) = config.detail.window {
                builder.setting("sliding_window", window);
            }
            let [all, shared] = [heads * head_width, key_value_heads * head_width];
            let inputs = if config.fused {
                Inputs::Fused(Linear::new(builder, "qkv_proj", width, all + 2 * shared, input_bias))
            } else {
                Inputs::Apart([
                    Linear::new(builder, "q_proj", width, all, input_bias),
                    Linear::new(builder, "k_proj", width, shared, input_bias),
                    Linear::new(builder, "v_proj", width, shared, input_bias),
                ])
            };
            let output = Linear::new(builder, "o_proj", all, width, output_bias);
            let mut head_norm = |name| RmsNorm::new(builder, name, names.norm, head_width, norm);
            let norms = config.head_norms.then(|| [head_norm("q_norm"), head_norm("k_norm")]);
            let sinks = config.detail.sinks.then(|| builder.param("sinks", [heads]));
            let rotary = Rotary::new(builder, names.rotary, config.rotary);
            Self { module, inputs, output, norms, sinks, rotary, config, layer }
        })
    }

    /// `x [B, S, O]`, whose first position is `offset`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let GroupedConfig { heads, head_width, scale, detail, .. } = self.config;
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let [mut query, mut key, value] = self.project(b, x)?;
            if let Some([query_norm, key_norm]) = &self.norms {
                query = query_norm.forward(b, &query)?;
                key = key_norm.forward(b, &key)?;
            }
            let query = self.rotary.forward(b, &query, offset)?;
            let key = self.rotary.forward(b, &key, offset)?;
            let (keys, values) = b.cache(self.layer, key, value, detail.window)?;
            let op = Op::Attention { causal: true, scale, fused: false, detail };
            let mixed = match self.sinks {
                None => b.apply(op, &[&query, &keys, &values])?,
                Some(sinks) => {
                    let sinks = b.param(sinks)?;
                    b.apply(op, &[&query, &keys, &values, &sinks])?
                }
            };
            let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            let mixed = b.reshape(&mixed, [batch, length, heads * head_width])?;
            self.output.forward(b, &mixed)
        })
    }

    /// Queries, keys and values, head by head: `[B, H, S, D]`.
    fn project<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<[B::Tensor; 3], NetworkError> {
        let GroupedConfig { heads, key_value_heads, head_width, .. } = self.config;
        let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
        let split = |b: &mut B, projected: &B::Tensor, heads: u64| {
            let split = b.reshape(projected, [batch, length, heads, head_width])?;
            b.permute(&split, [0, 2, 1, 3])
        };
        match &self.inputs {
            Inputs::Apart([query, key, value]) => {
                let query = query.forward(b, x)?;
                let key = key.forward(b, x)?;
                let value = value.forward(b, x)?;
                Ok([split(b, &query, heads)?, split(b, &key, key_value_heads)?, split(b, &value, key_value_heads)?])
            }
            Inputs::Fused(all) => {
                // Heads of queries, then of keys, then of values: parts of one row, told apart without moving them.
                let all = all.forward(b, x)?;
                let all = split(b, &all, heads + 2 * key_value_heads)?;
                let query = b.slice(&all, 1, 0, heads)?;
                let key = b.slice(&all, 1, heads, key_value_heads)?;
                let value = b.slice(&all, 1, heads + key_value_heads, key_value_heads)?;
                Ok([query, key, value])
            }
        }
    }
}
