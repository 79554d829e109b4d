//! `Conv2d` and `Conv1d`: convolutions over images and sequences.

use types::Op;

use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Conv2dSettings {
    pub(crate) inputs: u64,
    pub(crate) outputs: u64,
    pub(crate) kernel: u64,
    pub(crate) stride: u64,
    pub(crate) padding: u64,
    pub(crate) bias: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Conv2d {
    module: Module,
    weight: Param,
    bias: Option<Param>,
    op: Op,
}

impl Conv2d {
    pub(crate) fn new(builder: &mut Builder, name: &str, settings: Conv2dSettings) -> Self {
        let Conv2dSettings { inputs, outputs, kernel, stride, padding, bias } = settings;
        builder.module(name, "Conv2d", |builder, module| {
            builder.setting("in_channels", inputs);
            builder.setting("out_channels", outputs);
            builder.setting("kernel_size", kernel);
            builder.setting("stride", stride);
            builder.setting("padding", padding);
            builder.setting("bias", bias);
            Self {
                module,
                weight: builder.param("weight", [outputs, inputs, kernel, kernel]),
                bias: bias.then(|| builder.param("bias", [outputs])),
                op: Op::Conv2d { stride, padding },
            }
        })
    }

    /// One with an NVTX range around it.
    pub(crate) fn with_range(builder: &mut Builder, name: &str, range: &'static str, settings: Conv2dSettings) -> Self {
        let conv = Self::new(builder, name, settings);
        builder.range_of(conv.module, range);
        conv
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let weight = b.param(self.weight)?;
            match self.bias {
                None => b.apply(self.op, &[x, &weight]),
                Some(bias) => {
                    let bias = b.param(bias)?;
                    b.apply(self.op, &[x, &weight, &bias])
                }
            }
        })
    }
}

/// A convolution with a bias over a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Conv1d {
    module: Module,
    weight: Param,
    bias: Param,
    op: Op,
}

impl Conv1d {
    /// One of three taps that keeps the length, divided by `stride`.
    pub(crate) fn new(builder: &mut Builder, name: &str, [inputs, outputs]: [u64; 2], stride: u64) -> Self {
        let (kernel, padding) = (3, 1);
        builder.module(name, "Conv1d", |builder, module| {
            builder.setting("in_channels", inputs);
            builder.setting("out_channels", outputs);
            builder.setting("kernel_size", kernel);
            builder.setting("stride", stride);
            builder.setting("padding", padding);
            Self {
                module,
                weight: builder.param("weight", [outputs, inputs, kernel]),
                bias: builder.param("bias", [outputs]),
                op: Op::Conv1d { stride, padding },
            }
        })
    }

    /// `x [B, I, S]`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let (weight, bias) = (b.param(self.weight)?, b.param(self.bias)?);
            b.apply(self.op, &[x, &weight, &bias])
        })
    }
}
