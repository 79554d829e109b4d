//! A transformer block that several layers share, each with adapters of its own: Zamba2's.

use std::sync::Arc;

use types::Op;

use super::{Linear, Norm, Rotary};
use crate::config::Names;
use crate::config::decoder::{NormConfig, SharedBlockConfig};
use crate::{Backend, Builder, NetworkError, Ops};

/// What one layer makes of a block.
#[derive(Debug)]
pub(crate) struct SharedBlock {
    weights: Arc<Weights>,
    /// Added to queries, keys and values, and to gate and up.
    adapters: [Option<[Linear; 2]>; 4],
    output: Linear,
    rotary: Option<Rotary>,
    config: SharedBlockConfig,
    layer: usize,
}

/// What layers share.
#[derive(Debug)]
pub(crate) struct Weights {
    norms: [Norm; 2],
    inputs: [Linear; 3],
    mixed: Linear,
    gate_and_up: Linear,
    down: Linear,
}

impl SharedBlock {
    /// That of layer `layer`, the first of its block where `known` are the blocks so far and there may be more.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        (config, norm): (SharedBlockConfig, NormConfig),
        (layer, place): (usize, u64),
        known: &mut Vec<Arc<Weights>>,
    ) -> Self {
        let SharedBlockConfig { attention, inner, rank, adapts_attention, bias, .. } = config;
        let (both, all) = (2 * width, attention.heads * attention.head_width);
        let kept = attention.key_value_heads * attention.head_width;
        let at = (place % config.blocks) as usize;
        if at >= known.len() {
            let weights = builder.module("shared_transformer", names.shared_block, |builder, _| {
                let first = Norm::new(builder, "input_layernorm", names.norm, both, norm);
                let (inputs, mixed) = builder.module("self_attn", names.attention, |builder, _| {
                    let mut linear = |name, sizes: [u64; 2]| Linear::new(builder, name, sizes[0], sizes[1], false);
                    let inputs =
                        [linear("q_proj", [both, all]), linear("k_proj", [both, kept]), linear("v_proj", [both, kept])];
                    (inputs, linear("o_proj", [all, width]))
                });
                let second = Norm::new(builder, "pre_ff_layernorm", names.norm, width, norm);
                let (gate_and_up, down) = builder.module("feed_forward", names.mlp, |builder, _| {
                    let first = Linear::new(builder, "gate_up_proj", width, 2 * inner, bias);
                    (first, Linear::new(builder, "down_proj", inner, width, bias))
                });
                Arc::new(Weights { norms: [first, second], inputs, mixed, gate_and_up, down })
            });
            known.push(weights);
        }
        let mut adapter = |name: &str, from: u64, to: u64| {
            builder.module(name, "Sequential", |builder, _| {
                [Linear::new(builder, "0", from, rank, false), Linear::new(builder, "1", rank, to, false)]
            })
        };
        let mut projection = |name| adapts_attention.then(|| adapter(name, both, both));
        let [query, key, value] = ["linear_q_adapter", "linear_k_adapter", "linear_v_adapter"].map(&mut projection);
        let adapters = [query, key, value, Some(adapter("gate_up_proj_adapter", width, 2 * inner))];
        let output = Linear::new(builder, "linear", width, width, false);
        let rotary = attention.rotary.map(|rotary| Rotary::new(builder, None, rotary));
        Self { weights: Arc::clone(&known[at]), adapters, output, rotary, config, layer }
    }

    /// What is added to `x [B, S, O]`, of it and of the embeddings that went in.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        [x, embedded]: [&B::Tensor; 2],
        offset: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let SharedBlockConfig { attention, inner, activation, .. } = self.config;
        let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
        let weights = self.weights.as_ref();
        let both = b.concat(2, &[x, embedded])?;
        let given = weights.norms[0].forward(b, &both)?;
        let mut made = Vec::new();
        for (at, projection) in weights.inputs.iter().enumerate() {
            let heads = if at == 0 { attention.heads } else { attention.key_value_heads };
            let projected = self.adapted(b, projection, at, &given)?;
            let split = b.reshape(&projected, [batch, length, heads, attention.head_width])?;
            let mut split = b.permute(&split, [0, 2, 1, 3])?;
            if let Some(rotary) = self.rotary.as_ref().filter(|_| at < 2) {
                split = rotary.forward(b, &split, offset)?;
            }
            made.push(split);
        }
        let (Some(value), Some(key), Some(query)) = (made.pop(), made.pop(), made.pop()) else {
            return Err(NetworkError::Prompt("attention without keys".to_owned()));
        };
        let (keys, values) = b.cache(self.layer, key, value, None)?;
        let op = Op::Attention { causal: true, scale: attention.scale, fused: false, detail: attention.detail };
        let mixed = b.apply(op, &[&query, &keys, &values])?;
        let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
        let mixed = b.reshape(&mixed, [batch, length, attention.heads * attention.head_width])?;
        let mixed = weights.mixed.forward(b, &mixed)?;
        let given = weights.norms[1].forward(b, &mixed)?;
        let gate_and_up = self.adapted(b, &weights.gate_and_up, 3, &given)?;
        let gate = b.slice(&gate_and_up, 2, 0, inner)?;
        let up = b.slice(&gate_and_up, 2, inner, inner)?;
        let gate = b.activation(activation, &gate)?;
        let given = b.multiply(&gate, &up)?;
        let given = weights.down.forward(b, &given)?;
        self.output.forward(b, &given)
    }

    /// What a shared projection makes of `x`, with what the layer's own adapter adds.
    fn adapted<B: Backend>(
        &self,
        b: &mut B,
        projection: &Linear,
        at: usize,
        x: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let projected = projection.forward(b, x)?;
        let Some([first, second]) = &self.adapters[at] else { return Ok(projected) };
        let added = first.forward(b, x)?;
        let added = second.forward(b, &added)?;
        b.add(&projected, &added)
    }
}
