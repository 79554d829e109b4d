//! Feed-forward blocks, gated and plain.

use types::ActivationKind;

use super::Linear;
use crate::{Backend, Builder, Module, NetworkError, Ops};

/// A nonlinearity that is a module of its own in the published model.
#[derive(Clone, Debug)]
pub(crate) struct ActivationLayer {
    module: Module,
    kind: ActivationKind,
}

impl ActivationLayer {
    pub(crate) fn new(builder: &mut Builder, name: &str, kind: ActivationKind) -> Self {
        let class = match kind {
            ActivationKind::Gelu => "GELU",
            ActivationKind::QuickGelu => "QuickGELU",
            ActivationKind::Silu => "SiLU",
            ActivationKind::Relu => "ReLU",
        };
        builder.module(name, class, |_, module| Self { module, kind })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| b.activation(self.kind, x))
    }
}

/// `down(silu(gate(x)) * up(x))`.
#[derive(Clone, Debug)]
pub(crate) struct GatedMlp {
    module: Module,
    gate: Linear,
    up: Linear,
    down: Linear,
    activation: ActivationLayer,
}

impl GatedMlp {
    pub(crate) fn new(builder: &mut Builder, name: &str, class: &'static str, width: u64, inner: u64) -> Self {
        builder.module(name, class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("intermediate_size", inner);
            Self {
                module,
                gate: Linear::new(builder, "gate_proj", width, inner, false),
                up: Linear::new(builder, "up_proj", width, inner, false),
                down: Linear::new(builder, "down_proj", inner, width, false),
                activation: ActivationLayer::new(builder, "act_fn", ActivationKind::Silu),
            }
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let gate = self.gate.forward(b, x)?;
            let gate = self.activation.forward(b, &gate)?;
            let up = self.up.forward(b, x)?;
            let inner = b.multiply(&gate, &up)?;
            self.down.forward(b, &inner)
        })
    }
}

/// `second(activation(first(x)))`, with biases.
#[derive(Clone, Debug)]
pub(crate) struct PlainMlp {
    module: Module,
    first: Linear,
    second: Linear,
    activation: PlainActivation,
}

#[derive(Clone, Debug)]
enum PlainActivation {
    Module(ActivationLayer),
    Function(ActivationKind),
}

/// Names of the parts of a plain block, as its published class spells them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainMlpNames {
    pub(crate) class: &'static str,
    pub(crate) first: &'static str,
    pub(crate) second: &'static str,
    /// Where the activation is a module of its own.
    pub(crate) activation: Option<&'static str>,
}

impl PlainMlp {
    pub(crate) fn new(
        builder: &mut Builder,
        names: PlainMlpNames,
        width: u64,
        inner: u64,
        activation: ActivationKind,
    ) -> Self {
        builder.module("mlp", names.class, |builder, module| {
            builder.setting("embedding_dim", width);
            builder.setting("mlp_dim", inner);
            Self {
                module,
                first: Linear::new(builder, names.first, width, inner, true),
                second: Linear::new(builder, names.second, inner, width, true),
                activation: match names.activation {
                    Some(name) => PlainActivation::Module(ActivationLayer::new(builder, name, activation)),
                    None => PlainActivation::Function(activation),
                },
            }
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let inner = self.first.forward(b, x)?;
            let inner = match &self.activation {
                PlainActivation::Module(layer) => layer.forward(b, &inner)?,
                PlainActivation::Function(kind) => b.activation(*kind, &inner)?,
            };
            self.second.forward(b, &inner)
        })
    }
}
