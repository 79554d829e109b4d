//! Attention with heads that share keys and values in groups: projections, norms, rotary positions, cache.

use types::{ActivationKind, AttentionDetail, Chosen, Op};

use super::{BlockIndexer, Linear, Norm, Rotary};
use crate::config::Names;
use crate::config::decoder::{FusedOrder, GroupedConfig, HeadNorms, NormConfig, NormPlacement, OutputGate, Values};
use crate::{Backend, Builder, KeptSource, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct GroupedAttention {
    module: Module,
    inputs: Inputs,
    output: Linear,
    /// In front of the output's projection.
    output_norm: Option<Norm>,
    norms: HeadNorm,
    value_norm: Option<Norm>,
    sinks: Option<Param>,
    rotary: Option<Rotary>,
    gate: Option<Linear>,
    blocks: Option<BlockIndexer>,
    config: GroupedConfig,
    layer: usize,
}

#[derive(Clone, Debug)]
enum Inputs {
    /// Values may be the keys' projection; both may be another layer's.
    Apart {
        query: Linear,
        key: Option<Linear>,
        value: Option<Linear>,
    },
    Fused(Linear),
}

/// What cross-attention sees.
#[derive(Debug)]
pub(crate) enum Source<'a, T> {
    /// Features, at prefill.
    Given(&'a T),
    /// Their keys and values, from then on.
    Held(T, T),
}

/// Norms of queries and keys.
#[derive(Clone, Debug)]
enum HeadNorm {
    Absent,
    /// Of queries, and of keys where the layer has any.
    Each(Norm, Option<Norm>),
    /// One without a weight for both.
    Both(Norm),
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
        let [query, key, value, output] = names.projections;
        let [query_norm, key_norm] = names.head_norms;
        builder.module(names.attention_module, names.attention, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            builder.setting("num_key_value_heads", key_value_heads);
            builder.setting("head_dim", head_width);
            if let Some(rotary) = config.rotary {
                builder.setting("rope_theta", rotary.theta);
            }
            if let Some(window) = config.detail.window {
                builder.setting("sliding_window", window);
            }
            let [all, shared] = [heads * head_width, key_value_heads * head_width];
            let [mixed, values] = [heads, key_value_heads].map(|heads| heads * config.value_width);
            let borrows = matches!(config.values, Values::OfLayer(_));
            let gated = if config.gate == Some(OutputGate::InQuery) { 2 } else { 1 };
            let mut linear = |name, sizes, bias| Linear::of_class(builder, name, names.linear, sizes, bias);
            let inputs = if config.fused.is_some() {
                Inputs::Fused(linear(names.fused_projection, [width, all + 2 * shared], input_bias))
            } else {
                Inputs::Apart {
                    query: linear(query, [width, gated * all], input_bias),
                    key: (!borrows).then(|| linear(key, [width, shared], input_bias)),
                    value: (config.values == Values::Own).then(|| linear(value, [width, values], input_bias)),
                }
            };
            let output = linear(output, [mixed, width], output_bias);
            let gate = match config.gate {
                None | Some(OutputGate::InQuery) => None,
                Some(OutputGate::Elements) => Some(linear(names.output_gate, [width, mixed], false)),
                Some(OutputGate::Heads) => Some(linear(names.output_gate, [width, heads], false)),
            };
            let widths = match config.head_norms {
                Some(HeadNorms::AllHeads) => [all, shared],
                _ => [head_width; 2],
            };
            let norms = match config.head_norms {
                None => HeadNorm::Absent,
                Some(HeadNorms::Bare) => HeadNorm::Both(Norm::bare(builder, "qk_norm", names.bare_norm, norm)),
                Some(_) => {
                    let mut head_norm = |name, width| Norm::new(builder, name, names.norm, width, norm);
                    let query = head_norm(query_norm, widths[0]);
                    HeadNorm::Each(query, (!borrows).then(|| head_norm(key_norm, widths[1])))
                }
            };
            let value_norm =
                (config.value_norm && !borrows).then(|| Norm::bare(builder, "v_norm", names.bare_norm, norm));
            let output_norm = (norm.placement == NormPlacement::Inside)
                .then(|| Norm::new(builder, "attn_sub_norm", names.norm, mixed, norm));
            let sinks = config.detail.sinks.then(|| builder.param("sinks", [heads]));
            let rotary = config.rotary.map(|rotary| Rotary::new(builder, names.rotary, rotary));
            let blocks = config
                .blocks
                .zip(config.rotary)
                .map(|(blocks, rotary)| BlockIndexer::new(builder, names, width, (blocks, rotary), norm, layer));
            Self { module, inputs, output, output_norm, norms, value_norm, sinks, rotary, gate, blocks, config, layer }
        })
    }

    /// `x [B, S, O]`, whose first position is `offset`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let GroupedConfig { heads, value_width, scale, detail, .. } = self.config;
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let Projected { mut query, mut own, gate } = self.project(b, x)?;
            if self.config.head_norms == Some(HeadNorms::EachHead) {
                (query, own) = self.norm(b, query, own)?;
            }
            if let Some(rotary) = &self.rotary {
                query = rotary.forward(b, &query, offset)?;
                if let Some([key, _]) = &mut own {
                    *key = rotary.forward(b, key, offset)?;
                }
            }
            if matches!(self.config.head_norms, Some(HeadNorms::EachHeadTurned | HeadNorms::Bare)) {
                (query, own) = self.norm(b, query, own)?;
            }
            let (keys, values) = match (own, self.config.values) {
                (Some([key, value]), _) => b.cache(self.layer, key, value, detail.window)?,
                (None, Values::OfLayer(layer)) => {
                    let each = [batch, self.config.key_value_heads, length];
                    b.cache_of(layer, each, [self.config.head_width, value_width], detail.window)?
                }
                (None, _) => return Err(NetworkError::Prompt("attention without keys".into())),
            };
            let mut detail = AttentionDetail { chunked: detail.chunked.map(|_| offset), ..detail };
            if let (Some(indexer), Some(blocks)) = (&self.blocks, self.config.blocks) {
                indexer.score(b, x, offset)?;
                // A query that sees chosen blocks has as many pairs as one that sees a window of so many positions.
                detail = AttentionDetail { window: Some(blocks.keep), chosen: Chosen::Elsewhere, ..detail };
            }
            let op = Op::Attention { causal: true, scale, fused: false, detail };
            let mixed = match self.sinks {
                None => b.apply(op, &[&query, &keys, &values])?,
                Some(sinks) => {
                    let sinks = b.param(sinks)?;
                    b.apply(op, &[&query, &keys, &values, &sinks])?
                }
            };
            let mut mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            let gate = match &self.gate {
                None => gate,
                Some(project) => Some(project.forward(b, x)?),
            };
            if let Some(gate) = gate {
                let gate = b.activation(ActivationKind::Sigmoid, &gate)?;
                let each = b.shape(&gate).last() / heads;
                let gate = b.reshape(&gate, [batch, length, heads, each])?;
                mixed = b.multiply(&mixed, &gate)?;
            }
            let mixed = b.reshape(&mixed, [batch, length, heads * value_width])?;
            let mixed = self.output_norm.as_ref().map_or_else(|| Ok(mixed.clone()), |norm| norm.forward(b, &mixed))?;
            self.output.forward(b, &mixed)
        })
    }

    /// Attention of `x [B, S, O]` to a source, without positions of its own.
    pub(crate) fn cross<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        source: Source<'_, B::Tensor>,
    ) -> Result<B::Tensor, NetworkError> {
        let GroupedConfig { heads, key_value_heads, head_width, value_width, scale, detail, .. } = self.config;
        let mut inputs = vec![x];
        if let Source::Given(source) = &source {
            inputs.push(source);
        }
        b.scope(self.module, &inputs, |b| {
            let Inputs::Apart { query, key: Some(key), value: Some(value) } = &self.inputs else {
                return Err(NetworkError::Prompt("cross-attention without keys".into()));
            };
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let split = |b: &mut B, projection: &Linear, x: &B::Tensor, heads: u64, width: u64| {
                let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
                let projected = projection.forward(b, x)?;
                let split = b.reshape(&projected, [batch, length, heads, width])?;
                b.permute(&split, [0, 2, 1, 3])
            };
            let query = split(b, query, x, heads, head_width)?;
            let (query, _) = self.norm(b, query, None)?;
            let (keys, values) = match source {
                Source::Held(keys, values) => (keys, values),
                Source::Given(source) => {
                    let mut key = split(b, key, source, key_value_heads, head_width)?;
                    if let HeadNorm::Each(_, Some(norm)) = &self.norms {
                        key = norm.forward(b, &key)?;
                    }
                    let value = split(b, value, source, key_value_heads, value_width)?;
                    b.keep_source(self.layer, key, value)?
                }
            };
            let op = Op::Attention { causal: false, scale, fused: false, detail };
            let mixed = b.apply(op, &[&query, &keys, &values])?;
            let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            let mixed = b.reshape(&mixed, [batch, length, heads * value_width])?;
            self.output.forward(b, &mixed)
        })
    }

    /// The source that an earlier pass has kept, where there was one.
    pub(crate) fn held<B: Backend>(&self, b: &mut B, batch: u64) -> Result<KeptSource<B::Tensor>, NetworkError> {
        let GroupedConfig { key_value_heads, head_width, value_width, .. } = self.config;
        b.source(self.layer, [batch, key_value_heads], [head_width, value_width])
    }

    /// Queries, and keys where the layer has any, normed.
    fn norm<B: Backend>(&self, b: &mut B, query: B::Tensor, own: Own<B::Tensor>) -> Result<Pair<B>, NetworkError> {
        let (query_norm, key_norm) = match &self.norms {
            HeadNorm::Absent => return Ok((query, own)),
            HeadNorm::Each(query_norm, key_norm) => (query_norm, key_norm.as_ref()),
            HeadNorm::Both(norm) => (norm, Some(norm)),
        };
        let query = query_norm.forward(b, &query)?;
        let own = match (own, key_norm) {
            (Some([key, value]), Some(norm)) => Some([norm.forward(b, &key)?, value]),
            (own, _) => own,
        };
        Ok((query, own))
    }

    /// Queries, keys and values, head by head: `[B, H, S, D]`.
    fn project<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<Projected<B::Tensor>, NetworkError> {
        let GroupedConfig { heads, key_value_heads, head_width, .. } = self.config;
        let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
        let apart = |b: &mut B, projected: &B::Tensor, heads: u64, width: u64| {
            let split = b.reshape(projected, [batch, length, heads, width])?;
            b.permute(&split, [0, 2, 1, 3])
        };
        let split = |b: &mut B, projected: &B::Tensor, heads: u64| apart(b, projected, heads, head_width);
        match &self.inputs {
            Inputs::Apart { query, key, value } => {
                let mut query = query.forward(b, x)?;
                let mut own = match key {
                    None => None,
                    Some(key) => {
                        let key = key.forward(b, x)?;
                        let value = value.as_ref().map_or_else(|| Ok(key.clone()), |value| value.forward(b, x))?;
                        Some([key, value])
                    }
                };
                let mut gate = None;
                if self.config.gate == Some(OutputGate::InQuery) {
                    // Each head's query, then its gate.
                    let both = b.reshape(&query, [batch, length, heads, 2 * head_width])?;
                    let mut half = |start| {
                        let half = b.slice(&both, 3, start, head_width)?;
                        b.reshape(&half, [batch, length, heads * head_width])
                    };
                    query = half(0)?;
                    gate = Some(half(head_width)?);
                }
                if self.config.head_norms == Some(HeadNorms::AllHeads) {
                    (query, own) = self.norm(b, query, own)?;
                }
                let query = split(b, &query, heads)?;
                let own = match own {
                    None => None,
                    Some([key, value]) => {
                        let key = split(b, &key, key_value_heads)?;
                        let mut value = apart(b, &value, key_value_heads, self.config.value_width)?;
                        if let Some(norm) = &self.value_norm {
                            value = norm.forward(b, &value)?;
                        }
                        Some([key, value])
                    }
                };
                Ok(Projected { query, own, gate })
            }
            Inputs::Fused(all) => {
                let all = all.forward(b, x)?;
                let [query, key, value] = match self.config.fused {
                    // Parts of one row, told apart without moving them.
                    None | Some(FusedOrder::Blocks) => {
                        let all = split(b, &all, heads + 2 * key_value_heads)?;
                        parts(b, &all, 1, [heads, key_value_heads])?
                    }
                    Some(FusedOrder::Groups) => {
                        let each = heads / key_value_heads;
                        let all = b.reshape(&all, [batch * length, key_value_heads, each + 2, head_width])?;
                        let [query, key, value] = parts(b, &all, 2, [each, 1])?;
                        [split(b, &query, heads)?, split(b, &key, key_value_heads)?, split(b, &value, key_value_heads)?]
                    }
                };
                Ok(Projected { query, own: Some([key, value]), gate: None })
            }
        }
    }
}

/// Queries, keys and values that lie one behind the other along `dim`.
fn parts<B: Backend>(
    b: &mut B,
    x: &B::Tensor,
    dim: u64,
    [queries, keys]: [u64; 2],
) -> Result<[B::Tensor; 3], NetworkError> {
    let query = b.slice(x, dim, 0, queries)?;
    let key = b.slice(x, dim, queries, keys)?;
    Ok([query, key, b.slice(x, dim, queries + keys, keys)?])
}

/// Keys and values, where the layer has its own.
type Own<T> = Option<[T; 2]>;

/// Queries, and keys and values where the layer has its own.
type Pair<B> = (<B as Backend>::Tensor, Own<<B as Backend>::Tensor>);

/// What the projections give.
struct Projected<T> {
    query: T,
    own: Own<T>,
    /// `[B, S, H * D]`.
    gate: Option<T>,
}
