//! What attends in layers of encoders, whatever their modules are called, and how scores depend on distances.

use types::{AttentionDetail, Op};

use crate::config::decoder::RotaryConfig;
use crate::config::encoder::{DistancesConfig, EncoderConfig};
use crate::layer::{Embedding, LayerNorm, Linear};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

/// From which distance on positions share the last row, in MPNet.
const FURTHEST: u64 = 128;

/// What scores are given for distances.
#[derive(Debug)]
pub(super) struct Distances {
    table: Embedding,
    /// Of the table.
    norm: Option<LayerNorm>,
    /// Beside the first layer.
    conv: Option<(Module, [Param; 2], LayerNorm)>,
    config: DistancesConfig,
}

/// Distances, the table of them, and what projects it for queries and keys.
pub(super) type Seen<'a, T> = (&'a Distances, &'a T, Option<&'a [Option<Linear>; 2]>);

impl Distances {
    pub(super) fn new(builder: &mut Builder, encoder: &EncoderConfig, config: DistancesConfig) -> Self {
        let EncoderConfig { width, heads, epsilon, .. } = *encoder;
        let (table, normed, kernel) = match config {
            DistancesConfig::Buckets(buckets) => {
                (Embedding::new(builder, "relative_attention_bias", buckets, heads), false, 0)
            }
            DistancesConfig::Embedded { span, normed, kernel, .. } => {
                (Embedding::new(builder, "rel_embeddings", 2 * span, width), normed, kernel)
            }
        };
        let norm = normed.then(|| LayerNorm::new(builder, "LayerNorm", width, epsilon));
        let conv = (kernel > 0).then(|| {
            builder.module("conv", "ConvLayer", |builder, _| {
                let (module, params) = builder.module("conv", "Conv1d", |builder, module| {
                    builder.setting("kernel_size", kernel);
                    (module, [builder.param("weight", [width, width, kernel]), builder.param("bias", [width])])
                });
                (module, params, LayerNorm::new(builder, "LayerNorm", width, epsilon))
            })
        });
        Self { table, norm, conv, config }
    }

    /// Projections of distances in a layer, where those of queries and keys do not serve.
    pub(super) fn projections(builder: &mut Builder, encoder: &EncoderConfig) -> Option<[Option<Linear>; 2]> {
        let Some(DistancesConfig::Embedded { shared: false, with: [queries, keys], .. }) = encoder.distances else {
            return None;
        };
        let width = encoder.width;
        let mut linear = |name, is: bool| is.then(|| Linear::new(builder, name, width, width, true));
        Some([linear("pos_key_proj", queries), linear("pos_query_proj", keys)])
    }

    /// Scores of distances `[1, H, S, S]`, or embeddings of distances `[D, O]`.
    pub(super) fn table<B: Backend>(&self, b: &mut B, length: u64) -> Result<B::Tensor, NetworkError> {
        match self.config {
            DistancesConfig::Buckets(_) => {
                let op = Op::DistanceBias { queries: length, keys: length, furthest: FURTHEST, both_ways: true };
                self.table.applied(b, op)
            }
            DistancesConfig::Embedded { .. } => {
                let table = self.table.table(b)?;
                self.norm.as_ref().map_or_else(|| Ok(table.clone()), |norm| norm.forward(b, &table))
            }
        }
    }

    /// What the first layer made of `x`, with what the convolution beside it makes.
    pub(super) fn beside<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        made: B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let Some((module, [weight, bias], norm)) = &self.conv else { return Ok(made) };
        let turned = b.permute_copy(x, [0, 2, 1])?;
        let convolved = b.scope(*module, &[&turned], |b| {
            let (weight, bias) = (b.param(*weight)?, b.param(*bias)?);
            let padding = (b.shape(&weight).dims()[2] - 1) / 2;
            b.apply(Op::Conv1d { stride: 1, padding }, &[&turned, &weight, &bias])
        })?;
        let convolved = b.permute_copy(&convolved, [0, 2, 1])?;
        // tanh, as a cap of one.
        let convolved = b.apply(Op::Softcap { limit: 1.0 }, &[&convolved])?;
        let sum = b.add(&made, &convolved)?;
        norm.forward(b, &sum)
    }

    /// Scores `[B, H, S, S]` of queries and keys `[B, H, S, D]` with embeddings of distances.
    fn scores<B: Backend>(
        &self,
        b: &mut B,
        [query, key]: [&B::Tensor; 2],
        (table, own): (&B::Tensor, Option<&[Option<Linear>; 2]>),
        inputs: &[Linear],
    ) -> Result<Option<B::Tensor>, NetworkError> {
        let DistancesConfig::Embedded { shared, with, .. } = self.config else { return Ok(None) };
        let [batch, heads, length, width] = [0, 1, 2, 3].map(|dim| b.shape(query).dims()[dim]);
        let rows = b.shape(table).dims()[0];
        let mut total = None;
        for (at, given) in [query, key].into_iter().enumerate() {
            // Keys of distances for queries, and queries of distances for keys.
            let own = own.and_then(|own| own[at].as_ref());
            let Some(projection) = own.or(shared.then_some(&inputs[1 - at])) else { continue };
            let projected = projection.forward(b, table)?;
            if !with[at] {
                continue;
            }
            let projected = b.reshape(&projected, [rows, heads, width])?;
            let projected = b.permute_copy(&projected, [1, 0, 2])?;
            let given = b.permute_copy(given, [1, 0, 2, 3])?;
            let given = b.reshape(&given, [heads, batch * length, width])?;
            let scores = b.apply(Op::MatMulTransposed, &[&given, &projected])?;
            // Which of the scores belong to which pair changes no cost.
            let scores = b.slice(&scores, 2, 0, 1)?;
            let scores = b.reshape(&scores, [heads, batch, length, 1])?;
            let scores = b.permute(&scores, [1, 0, 2, 3])?;
            let scores = b.expand(&scores, [batch, heads, length, length])?;
            total = Some(match total {
                None => scores,
                Some(total) => b.add(&total, &scores)?,
            });
        }
        Ok(total)
    }
}

/// Attention of all positions to all, without the projection of what comes out.
pub(super) fn attend<B: Backend>(
    b: &mut B,
    x: &B::Tensor,
    inputs: &[Linear],
    config: &EncoderConfig,
    distances: Option<Seen<'_, B::Tensor>>,
) -> Result<B::Tensor, NetworkError> {
    let EncoderConfig { width, heads, .. } = *config;
    let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
    let each = width / heads;
    let mut split = |linear: &Linear| {
        let projected = linear.forward(b, x)?;
        let all = b.shape(&projected).last() / each;
        let projected = b.reshape(&projected, [batch, length, all, each])?;
        b.permute(&projected, [0, 2, 1, 3])
    };
    let [query, key, value] = match inputs {
        [query, key, value] => [split(query)?, split(key)?, split(value)?],
        others => {
            let both = others.first().ok_or_else(|| NetworkError::Prompt("attention without projections".into()))?;
            let all = split(both)?;
            [b.slice(&all, 1, 0, heads)?, b.slice(&all, 1, heads, heads)?, b.slice(&all, 1, 2 * heads, heads)?]
        }
    };
    let mut rotated = |x: B::Tensor| match config.rotary {
        None => Ok(x),
        Some(RotaryConfig { theta, form, .. }) => b.apply(Op::Rotary { theta, offset: 0, form }, &[&x]),
    };
    let (query, key) = (rotated(query)?, rotated(key)?);
    let bias = match distances {
        None => None,
        Some((Distances { config: DistancesConfig::Buckets(_), .. }, scores, _)) => {
            Some(b.expand(scores, [batch, heads, length, length])?)
        }
        Some((distances, table, own)) => distances.scores(b, [&query, &key], (table, own), inputs)?,
    };
    let scale = 1.0 / (each as f64).sqrt();
    let op = Op::Attention { causal: false, scale, fused: false, detail: AttentionDetail::default() };
    let mixed = match &bias {
        None => b.apply(op, &[&query, &key, &value])?,
        Some(bias) => b.apply(op, &[&query, &key, &value, bias])?,
    };
    let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
    b.reshape(&mixed, [batch, length, width])
}
