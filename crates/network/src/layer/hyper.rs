//! Hyper-connections: several streams of hidden states, collapsed into one for each part of a layer, as DeepSeek-V4 has them.

use types::Op;

use super::Norm;
use crate::config::Names;
use crate::config::decoder::{HyperConfig, NormConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

/// What collapses streams, and mixes them with what a part of a layer gives.
#[derive(Clone, Debug)]
pub(crate) struct HyperConnection {
    module: Module,
    norm: Norm,
    weight: Param,
    base: Param,
    scale: Param,
    config: HyperConfig,
}

impl HyperConnection {
    /// That of a part of a layer.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        name: &str,
        width: u64,
        config: HyperConfig,
        norm: NormConfig,
    ) -> Self {
        let outputs = (2 + config.streams) * config.streams;
        Self::of(builder, names, (name, names.hyper[0], ["fn", "base", "scale"]), [width, outputs, 3], config, norm)
    }

    /// The one behind all layers, which only collapses.
    pub(crate) fn last(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: HyperConfig,
        norm: NormConfig,
    ) -> Self {
        let named = ("hc_head", names.hyper[1], ["hc_fn", "hc_base", "hc_scale"]);
        Self::of(builder, names, named, [width, config.streams, 1], config, norm)
    }

    fn of(
        builder: &mut Builder,
        names: &Names,
        (name, class, [weight, base, scale]): (&str, &'static str, [&str; 3]),
        [width, outputs, scales]: [u64; 3],
        config: HyperConfig,
        norm: NormConfig,
    ) -> Self {
        builder.module(name, class, |builder, module| {
            builder.setting("hc_mult", config.streams);
            Self {
                module,
                norm: Norm::bare(builder, "input_norm", names.bare_norm, norm),
                weight: builder.param(weight, [outputs, config.streams * width]),
                base: builder.param(base, [outputs]),
                scale: builder.param(scale, [scales]),
                config,
            }
        })
    }

    /// Weights of streams `[B, S, N, O]`, and the streams collapsed into `[B, S, O]`.
    pub(crate) fn collapse<B: Backend>(&self, b: &mut B, streams: &B::Tensor) -> Result<[B::Tensor; 2], NetworkError> {
        let [batch, length, count, width] = [0, 1, 2, 3].map(|dim| b.shape(streams).dims()[dim]);
        b.enter(self.module, &[streams]);
        let flat = b.reshape(streams, [batch, length, count * width])?;
        let flat = self.norm.forward(b, &flat)?;
        let weight = b.param(self.weight)?;
        let weights = b.apply(Op::Linear, &[&flat, &weight])?;
        let scale = b.param(self.scale)?;
        // One factor for each kind of weight; they cost what one for all costs.
        let scale = b.slice(&scale, 0, 0, 1)?;
        let weights = b.multiply(&weights, &scale)?;
        let base = b.param(self.base)?;
        let weights = b.add(&weights, &base)?;
        let collapsed = b.apply(Op::CollapseStreams, &[streams, &weights])?;
        b.leave(self.module, &collapsed);
        Ok([weights, collapsed])
    }

    /// Streams mixed by `weights` with `x [B, S, O]`, what a part made of them.
    pub(crate) fn mix<B: Backend>(
        &self,
        b: &mut B,
        streams: &B::Tensor,
        weights: &B::Tensor,
        x: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        b.apply(Op::MixStreams { iterations: self.config.iterations }, &[streams, weights, x])
    }
}

/// Embeddings `[B, S, O]` as streams `[B, S, N, O]` that are all alike.
pub(crate) fn streams<B: Backend>(b: &mut B, x: &B::Tensor, config: HyperConfig) -> Result<B::Tensor, NetworkError> {
    let [batch, length, width] = [0, 1, 2].map(|dim| b.shape(x).dims()[dim]);
    let x = b.reshape(x, [batch, length, 1, width])?;
    let x = b.expand(&x, [batch, length, config.streams, width])?;
    b.apply(Op::Copy, &[&x])
}
