//! Alternating updates: several streams of hidden states of which each layer computes one and predicts the others, and the
//! residual of low rank beside attention, as Gemma 3n has them.

use types::Op;

use super::{Linear, Norm};
use crate::config::Names;
use crate::config::decoder::{NormConfig, StreamsConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

/// What a layer does with the streams.
#[derive(Clone, Debug)]
pub(crate) struct AltUp {
    module: Module,
    scale: Param,
    correction: Linear,
    prediction: Linear,
    router: Linear,
    norm: Norm,
    config: StreamsConfig,
    laurel: Laurel,
}

#[derive(Clone, Debug)]
struct Laurel {
    module: Module,
    left: Linear,
    right: Linear,
    norm: Norm,
}

/// What makes streams of embeddings, and hidden states of streams.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    apart: Vec<Linear>,
    together: Vec<Linear>,
    epsilon: f64,
}

impl AltUp {
    /// Adds `altup` and `laurel` to the layer under construction.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: StreamsConfig,
        norm: NormConfig,
    ) -> Self {
        let streams = config.count;
        let laurel = builder.module("laurel", names.laurel, |builder, module| Laurel {
            module,
            left: Linear::new(builder, "linear_left", width, config.rank, false),
            right: Linear::new(builder, "linear_right", config.rank, width, false),
            norm: Norm::new(builder, "post_laurel_norm", names.norm, width, norm),
        });
        builder.module("altup", names.altup, |builder, module| Self {
            module,
            scale: builder.param("correct_output_scale", [width]),
            correction: Linear::new(builder, "correction_coefs", streams, streams, false),
            prediction: Linear::new(builder, "prediction_coefs", streams, streams * streams, false),
            router: Linear::new(builder, "modality_router", width, streams, false),
            norm: Norm::new(builder, "router_norm", names.norm, width, norm),
            config,
            laurel,
        })
    }

    /// Streams `[N, B, S, O]` as each other predict them.
    pub(crate) fn predict<B: Backend>(&self, b: &mut B, streams: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let count = self.config.count;
        b.scope(self.module, &[streams], |b| {
            let active = self.active(b, streams)?;
            let routed = self.routed(b, &active)?;
            let weights = self.prediction.forward(b, &routed)?;
            let [batch, length] = [b.shape(&weights).dims()[0], b.shape(&weights).dims()[1]];
            let weights = b.reshape(&weights, [batch, length, count, count])?;
            let last = b.permute_copy(streams, [1, 2, 3, 0])?;
            let mixed = b.apply(Op::MatMulTransposed, &[&last, &weights])?;
            let mixed = b.permute(&mixed, [3, 0, 1, 2])?;
            b.add(&mixed, streams)
        })
    }

    /// Predictions `[N, B, S, O]` corrected by what the layer made of the active one, `[B, S, O]`.
    pub(crate) fn correct<B: Backend>(
        &self,
        b: &mut B,
        predicted: &B::Tensor,
        made: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[predicted, made], |b| {
            let [batch, length, width] = [0, 1, 2].map(|dim| b.shape(made).dims()[dim]);
            let routed = self.routed(b, made)?;
            let active = self.active(b, predicted)?;
            let new = b.add(made, &active)?;
            let new = b.reshape(&new, [1, batch, length, width])?;
            let weights = self.correction.forward(b, &routed)?;
            let weights = b.permute(&weights, [2, 0, 1])?;
            let weights = b.reshape(&weights, [self.config.count, batch, length, 1])?;
            let weighed = b.multiply(&new, &weights)?;
            b.add(&weighed, predicted)
        })
    }

    /// The stream that layers compute, `[B, S, O]`.
    pub(crate) fn active<B: Backend>(&self, b: &mut B, streams: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let [batch, length, width] = [1, 2, 3].map(|dim| b.shape(streams).dims()[dim]);
        let active = b.slice(streams, 0, self.config.active, 1)?;
        b.reshape(&active, [batch, length, width])
    }

    /// The active stream, times a learned factor of each feature.
    pub(crate) fn scaled<B: Backend>(&self, b: &mut B, active: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let scale = b.param(self.scale)?;
        b.multiply(active, &scale)
    }

    /// `addition [B, S, O]` added to all streams but the first.
    pub(crate) fn add_to_others<B: Backend>(
        &self,
        b: &mut B,
        streams: &B::Tensor,
        addition: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let shape = b.shape(addition);
        let first = b.slice(streams, 0, 0, 1)?;
        let others = b.slice(streams, 0, 1, self.config.count - 1)?;
        let addition = b.reshape(addition, [1, shape.dims()[0], shape.dims()[1], shape.last()])?;
        let others = b.add(&others, &addition)?;
        b.concat(0, &[&first, &others])
    }

    /// What is added beside attention of `given [B, S, O]`.
    pub(crate) fn beside<B: Backend>(&self, b: &mut B, given: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let Laurel { module, left, right, norm } = &self.laurel;
        b.scope(*module, &[given], |b| {
            let low = left.forward(b, given)?;
            let low = right.forward(b, &low)?;
            let low = norm.forward(b, &low)?;
            b.add(given, &low)
        })
    }

    /// `tanh(router(x))`.
    fn routed<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let width = b.shape(x).last();
        let normed = self.norm.forward(b, x)?;
        let normed = b.apply(Op::Scale { factor: 1.0 / width as f64 }, &[&normed])?;
        let routed = self.router.forward(b, &normed)?;
        b.apply(Op::Softcap { limit: 1.0 }, &[&routed])
    }
}

impl Streams {
    /// Adds its projections to the decoder under construction.
    pub(crate) fn new(builder: &mut Builder, width: u64, config: StreamsConfig, epsilon: f64) -> Self {
        let mut list = |name: &str| {
            builder.module(name, "ModuleList", |builder, _| {
                (1..config.count).map(|at| Linear::new(builder, &(at - 1).to_string(), width, width, false)).collect()
            })
        };
        Self { apart: list("altup_projections"), together: list("altup_unembed_projections"), epsilon }
    }

    /// Embeddings `[B, S, O]` to streams `[N, B, S, O]`, all of the same magnitude.
    pub(crate) fn part<B: Backend>(&self, b: &mut B, embedded: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let shape = b.shape(embedded);
        let whole = [1, shape.dims()[0], shape.dims()[1], shape.last()];
        let mut streams = vec![b.reshape(embedded, whole)?];
        for projection in &self.apart {
            let stream = self.alike(b, projection, embedded)?;
            streams.push(b.reshape(&stream, whole)?);
        }
        b.concat(0, &streams.iter().collect::<Vec<_>>())
    }

    /// Streams `[N, B, S, O]` to their mean `[B, S, O]`.
    pub(crate) fn join<B: Backend>(&self, b: &mut B, streams: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let [batch, length, width] = [1, 2, 3].map(|dim| b.shape(streams).dims()[dim]);
        let stream = |b: &mut B, at: u64| {
            let one = b.slice(streams, 0, at, 1)?;
            b.reshape(&one, [batch, length, width])
        };
        let mut sum = stream(b, 0)?;
        for (projection, at) in self.together.iter().zip(1..) {
            let one = stream(b, at)?;
            let one = self.alike(b, projection, &one)?;
            sum = b.add(&sum, &one)?;
        }
        b.apply(Op::Scale { factor: 1.0 / (self.together.len() + 1) as f64 }, &[&sum])
    }

    /// A projection, brought to the magnitude of the first stream: divided by its own, times that.
    fn alike<B: Backend>(&self, b: &mut B, projection: &Linear, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let projected = projection.forward(b, x)?;
        let divided = b.apply(Op::RmsNorm { epsilon: self.epsilon, unit_offset: false }, &[&projected])?;
        b.apply(Op::Scale { factor: 1.0 }, &[&divided])
    }
}
