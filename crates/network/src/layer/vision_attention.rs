//! Attention of a vision encoder: no cache, everything sees everything, or everything of its window.

use types::{AttentionDetail, Op, RotaryForm, RotaryLayout, RotaryScaling};

use super::Linear;
use crate::{Backend, Builder, Module, NetworkError, Ops};

/// Angles of a patch follow its row and its column, from this base.
const THETA: f64 = 10_000.0;

#[derive(Clone, Debug)]
pub(crate) struct VisionAttention {
    module: Module,
    inputs: Inputs,
    output: Linear,
    heads: u64,
    rotary: bool,
}

#[derive(Clone, Debug)]
enum Inputs {
    Apart([Linear; 3]),
    Fused(Linear),
}

/// Sequences that are attended to on their own: how many, and how long each is.
pub(crate) type Spans = Vec<[u64; 2]>;

impl VisionAttention {
    /// One projection for queries, keys and values, and rotary positions.
    pub(crate) fn fused(builder: &mut Builder, class: &'static str, width: u64, heads: u64) -> Self {
        builder.module("attn", class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            let inputs = Inputs::Fused(Linear::new(builder, "qkv", width, 3 * width, true));
            Self { module, inputs, output: Linear::new(builder, "proj", width, width, true), heads, rotary: true }
        })
    }

    /// Projections of their own, positions added before.
    pub(crate) fn apart(builder: &mut Builder, class: &'static str, width: u64, heads: u64) -> Self {
        builder.module("self_attn", class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            let mut project = |name| Linear::new(builder, name, width, width, true);
            let inputs = Inputs::Apart([project("q_proj"), project("k_proj"), project("v_proj")]);
            Self { module, inputs, output: project("out_proj"), heads, rotary: false }
        })
    }

    /// `x [B, S, O]`; each batch is cut into `spans`, one behind the other, that add up to `S`.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        spans: &Spans,
    ) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let [batch, length, width] = [b.shape(x).dims()[0], b.shape(x).dims()[1], b.shape(x).dims()[2]];
            let head_width = width / self.heads;
            let [mut query, mut key, value] = self.project(b, x)?;
            if self.rotary {
                let form = RotaryForm { layout: RotaryLayout::Grid, scaling: RotaryScaling::None };
                let op = Op::Rotary { theta: THETA, offset: 0, form };
                query = b.apply(op, &[&query])?;
                key = b.apply(op, &[&key])?;
            }
            let scale = 1.0 / (head_width as f64).sqrt();
            let op = Op::Attention { causal: false, scale, fused: false, detail: AttentionDetail::default() };
            let mut parts = Vec::with_capacity(spans.len());
            let mut start = 0;
            for &[count, each] in spans {
                let part = |b: &mut B, x: &B::Tensor| {
                    if count * each == length && count == 1 {
                        return Ok(x.clone());
                    }
                    let part = b.slice(x, 2, start, count * each)?;
                    let part = b.reshape(&part, [batch, self.heads, count, each, head_width])?;
                    let part = b.permute(&part, [0, 2, 1, 3, 4])?;
                    b.reshape(&part, [batch * count, self.heads, each, head_width])
                };
                let (query, key, value) = (part(b, &query)?, part(b, &key)?, part(b, &value)?);
                let mixed = b.apply(op, &[&query, &key, &value])?;
                let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
                parts.push(b.reshape(&mixed, [batch, count * each, width])?);
                start += count * each;
            }
            let mixed = match parts.as_slice() {
                [whole] => whole.clone(),
                parts => b.concat(1, &parts.iter().collect::<Vec<_>>())?,
            };
            self.output.forward(b, &mixed)
        })
    }

    /// Queries, keys and values `[B, H, S, D]`.
    fn project<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<[B::Tensor; 3], NetworkError> {
        let [batch, length, width] = [b.shape(x).dims()[0], b.shape(x).dims()[1], b.shape(x).dims()[2]];
        let head_width = width / self.heads;
        let split = |b: &mut B, projected: &B::Tensor| {
            let split = b.reshape(projected, [batch, length, self.heads, head_width])?;
            b.permute(&split, [0, 2, 1, 3])
        };
        match &self.inputs {
            Inputs::Apart([query, key, value]) => {
                let (query, key, value) = (query.forward(b, x)?, key.forward(b, x)?, value.forward(b, x)?);
                Ok([split(b, &query)?, split(b, &key)?, split(b, &value)?])
            }
            Inputs::Fused(all) => {
                let all = all.forward(b, x)?;
                let all = b.reshape(&all, [batch, length, 3, self.heads, head_width])?;
                let mut part = |index: u64| {
                    let part = b.slice(&all, 2, index, 1)?;
                    let part = b.reshape(&part, [batch, length, self.heads, head_width])?;
                    b.permute(&part, [0, 2, 1, 3])
                };
                Ok([part(0)?, part(1)?, part(2)?])
            }
        }
    }
}
