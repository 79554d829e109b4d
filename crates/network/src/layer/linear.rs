//! `Linear`: a GEMM with an optional bias.

use types::Op;

use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct Linear {
    module: Module,
    weight: Param,
    bias: Option<Param>,
    inputs: u64,
    /// Whether the checkpoint keeps the matrix `[I, O]`.
    transposed: bool,
}

impl Linear {
    pub(crate) fn new(builder: &mut Builder, name: &str, inputs: u64, outputs: u64, bias: bool) -> Self {
        Self::of_class(builder, name, "Linear", [inputs, outputs], bias)
    }

    /// Of a class that is a `Linear` under another name; `Conv1D` keeps its matrix transposed.
    pub(crate) fn of_class(
        builder: &mut Builder,
        name: &str,
        class: &'static str,
        [inputs, outputs]: [u64; 2],
        bias: bool,
    ) -> Self {
        let transposed = class == "Conv1D";
        builder.module(name, class, |builder, module| {
            builder.setting("in_features", inputs);
            builder.setting("out_features", outputs);
            builder.setting("bias", bias);
            Self {
                module,
                weight: builder.param("weight", if transposed { [inputs, outputs] } else { [outputs, inputs] }),
                bias: bias.then(|| builder.param("bias", [outputs])),
                inputs,
                transposed,
            }
        })
    }

    /// Features it takes.
    pub(crate) fn inputs(&self) -> u64 {
        self.inputs
    }

    /// The matrix itself, for networks that use it another way.
    pub(crate) fn weight<B: Backend>(&self, b: &mut B) -> Result<B::Tensor, NetworkError> {
        b.param(self.weight)
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let mut weight = b.param(self.weight)?;
            if self.transposed {
                weight = b.permute(&weight, [1, 0])?;
            }
            match self.bias {
                None => b.apply(Op::Linear, &[x, &weight]),
                Some(bias) => {
                    let bias = b.param(bias)?;
                    b.apply(Op::Linear, &[x, &weight, &bias])
                }
            }
        })
    }
}
