//! Experts kept in one tensor for all.

use types::{ActivationKind, Op};

use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct StackedExperts {
    module: Module,
    gate_up: Stacked,
    down: Stacked,
    gate: StackedGate,
    inner: u64,
}

/// How gate and up values lie, and what the gate does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StackedGate {
    /// Gate values in front of up values, without biases.
    Halves(ActivationKind),
    /// One after the other and clamped, with biases.
    Alternating { limit: f64, alpha: f64 },
}

/// Weights `[E, I, O]` and biases `[E, O]` of all experts.
#[derive(Clone, Copy, Debug)]
struct Stacked {
    weight: Param,
    bias: Option<Param>,
}

impl StackedExperts {
    /// Experts, width and inner width.
    pub(crate) fn new(
        builder: &mut Builder,
        class: &'static str,
        [experts, width, inner]: [u64; 3],
        gate: StackedGate,
    ) -> Self {
        builder.module("experts", class, |builder, module| {
            builder.setting("num_experts", experts);
            builder.setting("intermediate_size", inner);
            if let StackedGate::Alternating { limit, alpha } = gate {
                builder.setting("limit", limit);
                builder.setting("alpha", alpha);
            }
            let biased = matches!(gate, StackedGate::Alternating { .. });
            let mut stacked = |name: &str, inputs: u64, outputs: u64| Stacked {
                weight: builder.param(name, [experts, inputs, outputs]),
                bias: biased.then(|| builder.param(&format!("{name}_bias"), [experts, outputs])),
            };
            let gate_up = stacked("gate_up_proj", width, 2 * inner);
            Self { module, gate_up, down: stacked("down_proj", inner, width), gate, inner }
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
        let both = self.gate_up.forward(b, expert, rows)?;
        let inner = match self.gate {
            StackedGate::Alternating { limit, alpha } => b.apply(Op::ClampedGate { limit, alpha }, &[&both])?,
            StackedGate::Halves(activation) => {
                let gate = b.slice(&both, 1, 0, self.inner)?;
                let up = b.slice(&both, 1, self.inner, self.inner)?;
                let gate = b.activation(activation, &gate)?;
                b.multiply(&gate, &up)?
            }
        };
        self.down.forward(b, expert, &inner)
    }
}

impl Stacked {
    /// The expert's part, applied.
    fn forward<B: Backend>(&self, b: &mut B, expert: u64, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let weight = b.param(self.weight)?;
        let [inputs, outputs] = [b.shape(&weight).dims()[1], b.shape(&weight).dims()[2]];
        let weight = b.slice(&weight, 0, expert, 1)?;
        let weight = b.reshape(&weight, [inputs, outputs])?;
        let weight = b.permute(&weight, [1, 0])?;
        let Some(bias) = self.bias else { return b.apply(Op::Linear, &[x, &weight]) };
        let bias = b.param(bias)?;
        let bias = b.slice(&bias, 0, expert, 1)?;
        let bias = b.reshape(&bias, [outputs])?;
        b.apply(Op::Linear, &[x, &weight, &bias])
    }
}
