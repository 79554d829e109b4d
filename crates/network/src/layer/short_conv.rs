//! A convolution over a few positions, between two gates: a state of some positions takes the place of a cache.

use types::Op;

use super::Linear;
use crate::config::Names;
use crate::config::decoder::ShortConvConfig;
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct ShortConv {
    module: Module,
    conv: Module,
    weight: Param,
    bias: Option<Param>,
    input: Linear,
    output: Linear,
    width: u64,
}

impl ShortConv {
    pub(crate) fn new(builder: &mut Builder, names: &Names, width: u64, config: ShortConvConfig) -> Self {
        let ShortConvConfig { kernel, bias } = config;
        builder.module("conv", names.short_conv, |builder, module| {
            builder.setting("hidden_size", width);
            let (conv, weight, conv_bias) = builder.module("conv", "Conv1d", |builder, module| {
                builder.setting("in_channels", width);
                builder.setting("kernel_size", kernel);
                builder.setting("groups", width);
                let weight = builder.param("weight", [width, 1, kernel]);
                (module, weight, bias.then(|| builder.param("bias", [width])))
            });
            Self {
                module,
                conv,
                weight,
                bias: conv_bias,
                input: Linear::new(builder, "in_proj", width, 3 * width, bias),
                output: Linear::new(builder, "out_proj", width, width, bias),
                width,
            }
        })
    }

    /// `x [B, S, O]`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let projected = self.input.forward(b, x)?;
            let mut part = |at: u64| b.slice(&projected, 2, at * self.width, self.width);
            let [before, behind, x] = [part(0)?, part(1)?, part(2)?];
            let gated = b.multiply(&before, &x)?;
            let mixed = b.scope(self.conv, &[&gated], |b| {
                let weight = b.param(self.weight)?;
                match self.bias {
                    None => b.apply(Op::CausalConv, &[&gated, &weight]),
                    Some(bias) => {
                        let bias = b.param(bias)?;
                        b.apply(Op::CausalConv, &[&gated, &weight, &bias])
                    }
                }
            })?;
            let mixed = b.multiply(&behind, &mixed)?;
            self.output.forward(b, &mixed)
        })
    }
}
