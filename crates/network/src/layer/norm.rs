//! Normalisations.

use types::Op;

use crate::config::decoder::{NormConfig, NormKind};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

/// Mean and variance over the last dimension.
#[derive(Clone, Debug)]
pub(crate) struct LayerNorm(Affine);

/// Mean and variance over the channels of an image.
#[derive(Clone, Debug)]
pub(crate) struct LayerNorm2d(Affine);

/// A norm of a decoder, over the last dimension: of the mean square, or of mean and variance.
#[derive(Clone, Debug)]
pub(crate) struct Norm {
    module: Module,
    /// Absent in a norm that only divides.
    weight: Option<Param>,
    bias: Option<Param>,
    config: NormConfig,
}

/// Fixed mean and variance for each channel.
#[derive(Clone, Debug)]
pub(crate) struct BatchNorm2d {
    affine: Affine,
    mean: Param,
    variance: Param,
}

#[derive(Clone, Debug)]
struct Affine {
    module: Module,
    weight: Param,
    bias: Param,
    epsilon: f64,
}

impl Affine {
    fn new(builder: &mut Builder, module: Module, width: u64, epsilon: f64) -> Self {
        builder.setting("normalized_shape", width);
        builder.setting("eps", epsilon);
        Self { module, weight: builder.param("weight", [width]), bias: builder.param("bias", [width]), epsilon }
    }

    fn forward<B: Backend>(&self, b: &mut B, op: Op, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let (weight, bias) = (b.param(self.weight)?, b.param(self.bias)?);
            b.apply(op, &[x, &weight, &bias])
        })
    }
}

impl LayerNorm {
    pub(crate) fn new(builder: &mut Builder, name: &str, width: u64, epsilon: f64) -> Self {
        builder.module(name, "LayerNorm", |builder, module| Self(Affine::new(builder, module, width, epsilon)))
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        self.0.forward(b, Op::LayerNorm { epsilon: self.0.epsilon }, x)
    }
}

impl LayerNorm2d {
    pub(crate) fn new(builder: &mut Builder, name: &str, channels: u64, epsilon: f64) -> Self {
        builder.module(name, "LayerNorm2d", |builder, module| Self(Affine::new(builder, module, channels, epsilon)))
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        self.0.forward(b, Op::ChannelNorm { epsilon: self.0.epsilon }, x)
    }
}

impl Norm {
    pub(crate) fn new(builder: &mut Builder, name: &str, class: &'static str, width: u64, config: NormConfig) -> Self {
        builder.module(name, class, |builder, module| {
            let square = matches!(config.kind, NormKind::Rms | NormKind::RmsUnitOffset | NormKind::BareRms);
            let bare = matches!(config.kind, NormKind::BareRms | NormKind::BareLayer);
            builder.setting(if square { "hidden_size" } else { "normalized_shape" }, width);
            builder.setting("eps", config.epsilon);
            let weight = (!bare).then(|| builder.param("weight", [width]));
            let bias = (config.kind == NormKind::Layer).then(|| builder.param("bias", [width]));
            Self { module, weight, bias, config }
        })
    }

    /// Its weight, for operations that norm on the way.
    pub(crate) fn weight<B: Backend>(&self, b: &mut B) -> Result<B::Tensor, NetworkError> {
        let missing = || NetworkError::Prompt("a norm without a weight".into());
        self.weight.map_or_else(|| Err(missing()), |weight| b.param(weight))
    }

    /// One that only divides.
    pub(crate) fn bare(builder: &mut Builder, name: &str, class: &'static str, config: NormConfig) -> Self {
        builder.module(name, class, |builder, module| {
            builder.setting("eps", config.epsilon);
            Self { module, weight: None, bias: None, config: NormConfig { kind: NormKind::BareRms, ..config } }
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let NormConfig { epsilon, kind, .. } = self.config;
            let op = match kind {
                NormKind::Rms | NormKind::RmsUnitOffset | NormKind::BareRms => {
                    Op::RmsNorm { epsilon, unit_offset: kind == NormKind::RmsUnitOffset }
                }
                NormKind::Layer | NormKind::LayerWithoutBias | NormKind::BareLayer => Op::LayerNorm { epsilon },
            };
            let Some(weight) = self.weight else { return b.apply(op, &[x]) };
            let weight = b.param(weight)?;
            match self.bias {
                None => b.apply(op, &[x, &weight]),
                Some(bias) => {
                    let bias = b.param(bias)?;
                    b.apply(op, &[x, &weight, &bias])
                }
            }
        })
    }
}

impl BatchNorm2d {
    pub(crate) fn new(builder: &mut Builder, name: &str, channels: u64, epsilon: f64) -> Self {
        builder.module(name, "BatchNorm2d", |builder, module| Self {
            affine: Affine::new(builder, module, channels, epsilon),
            mean: builder.param("running_mean", [channels]),
            variance: builder.param("running_var", [channels]),
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let Affine { module, weight, bias, epsilon } = self.affine;
        b.scope(module, &[x], |b| {
            let (weight, bias) = (b.param(weight)?, b.param(bias)?);
            let (mean, variance) = (b.param(self.mean)?, b.param(self.variance)?);
            b.apply(Op::BatchNorm { epsilon }, &[x, &weight, &bias, &mean, &variance])
        })
    }
}
