//! Experts kept in one tensor for all: gate and up values alternate and are clamped.

use types::Op;

use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct StackedExperts {
    module: Module,
    gate_up: [Param; 2],
    down: [Param; 2],
    limit: f64,
    alpha: f64,
}

impl StackedExperts {
    /// Experts, width and inner width; bound and factor of the gate.
    pub(crate) fn new(
        builder: &mut Builder,
        class: &'static str,
        [experts, width, inner]: [u64; 3],
        [limit, alpha]: [f64; 2],
    ) -> Self {
        builder.module("experts", class, |builder, module| {
            builder.setting("num_experts", experts);
            builder.setting("intermediate_size", inner);
            builder.setting("limit", limit);
            builder.setting("alpha", alpha);
            Self {
                module,
                gate_up: [
                    builder.param("gate_up_proj", [experts, width, 2 * inner]),
                    builder.param("gate_up_proj_bias", [experts, 2 * inner]),
                ],
                down: [
                    builder.param("down_proj", [experts, inner, width]),
                    builder.param("down_proj_bias", [experts, width]),
                ],
                limit,
                alpha,
            }
        })
    }

    pub(crate) fn module(&self) -> Module {
        self.module
    }

    /// One expert on `rows [N, O]`.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        expert: u64,
        rows: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let both = linear(b, self.gate_up, expert, rows)?;
        let inner = b.apply(Op::ClampedGate { limit: self.limit, alpha: self.alpha }, &[&both])?;
        linear(b, self.down, expert, &inner)
    }
}

/// The expert's part of weight `[E, I, O]` and bias `[E, O]`, applied.
fn linear<B: Backend>(
    b: &mut B,
    [weight, bias]: [Param; 2],
    expert: u64,
    x: &B::Tensor,
) -> Result<B::Tensor, NetworkError> {
    let weight = b.param(weight)?;
    let [inputs, outputs] = [b.shape(&weight).dims()[1], b.shape(&weight).dims()[2]];
    let weight = b.slice(&weight, 0, expert, 1)?;
    let weight = b.reshape(&weight, [inputs, outputs])?;
    let weight = b.permute(&weight, [1, 0])?;
    let bias = b.param(bias)?;
    let bias = b.slice(&bias, 0, expert, 1)?;
    let bias = b.reshape(&bias, [outputs])?;
    b.apply(Op::Linear, &[x, &weight, &bias])
}
