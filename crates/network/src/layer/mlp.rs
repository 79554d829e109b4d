//! Feed-forward blocks, gated and plain.

use types::{ActivationKind, Op};

use super::{Linear, Norm};
use crate::config::Names;
use crate::config::decoder::{GatedConfig, NormConfig, PlainConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

/// A nonlinearity that is a module of its own in the published model.
#[derive(Clone, Debug)]
pub(crate) struct ActivationLayer {
    module: Module,
    kind: ActivationKind,
    /// Factors that are learned, where it has any.
    learned: Option<[Param; 2]>,
}

impl ActivationLayer {
    pub(crate) fn new(builder: &mut Builder, name: &str, kind: ActivationKind) -> Self {
        let class = match kind {
            ActivationKind::Gelu => "GELU",
            ActivationKind::GeluTanh => "GELUTanh",
            ActivationKind::Sigmoid => "Sigmoid",
            ActivationKind::QuickGelu => "QuickGELU",
            ActivationKind::Silu => "SiLU",
            ActivationKind::Relu => "ReLU",
            ActivationKind::SquaredRelu => "ReLUSquaredActivation",
            ActivationKind::Xielu => "XIELUActivation",
        };
        builder.module(name, class, |builder, module| {
            // As the published models construct them: every argument has its default.
            match kind {
                ActivationKind::Gelu => builder.setting("approximate", "none"),
                ActivationKind::GeluTanh => builder.setting("use_gelu_tanh_python", false),
                ActivationKind::Silu | ActivationKind::Relu => builder.setting("inplace", false),
                ActivationKind::Sigmoid
                | ActivationKind::QuickGelu
                | ActivationKind::SquaredRelu
                | ActivationKind::Xielu => {}
            }
            let learned =
                (kind == ActivationKind::Xielu).then(|| ["alpha_p", "alpha_n"].map(|name| builder.param(name, [1])));
            Self { module, kind, learned }
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| match self.learned {
            None => b.activation(self.kind, x),
            Some([p, n]) => {
                let (p, n) = (b.param(p)?, b.param(n)?);
                b.apply(Op::Activation(self.kind), &[x, &p, &n])
            }
        })
    }
}

/// `down(activation(gate(x)) * up(x))`.
#[derive(Clone, Debug)]
pub(crate) struct GatedMlp {
    module: Module,
    inputs: GateAndUp,
    down: Linear,
    /// In front of the last projection.
    norm: Option<Norm>,
    activation: ActivationLayer,
    inner: u64,
}

#[derive(Clone, Debug)]
enum GateAndUp {
    Apart { gate: Linear, up: Linear },
    Fused(Linear),
}

/// Names of a gated block and of its projections: gate, up, down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatedMlpNames<'a> {
    pub(crate) module: &'a str,
    pub(crate) class: &'static str,
    pub(crate) projections: [&'static str; 3],
    /// The projection that makes gate and up, where one does.
    pub(crate) fused: &'static str,
    /// The norm in front of the last projection, where there is one.
    pub(crate) norm: Option<(&'static str, NormConfig)>,
}

impl GatedMlp {
    pub(crate) fn new(builder: &mut Builder, names: GatedMlpNames<'_>, width: u64, config: GatedConfig) -> Self {
        let GatedConfig { inner, activation, bias, fused } = config;
        let [gate, up, down] = names.projections;
        builder.module(names.module, names.class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("intermediate_size", inner);
            let inputs = if fused {
                GateAndUp::Fused(Linear::new(builder, names.fused, width, 2 * inner, bias))
            } else {
                GateAndUp::Apart {
                    gate: Linear::new(builder, gate, width, inner, bias),
                    up: Linear::new(builder, up, width, inner, bias),
                }
            };
            let activation_name = if fused { "activation_fn" } else { "act_fn" };
            Self {
                module,
                inputs,
                down: Linear::new(builder, down, inner, width, bias),
                norm: names.norm.map(|(class, norm)| Norm::new(builder, "ffn_sub_norm", class, inner, norm)),
                activation: ActivationLayer::new(builder, activation_name, activation),
                inner,
            }
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let inner = match &self.inputs {
                GateAndUp::Apart { gate, up } => {
                    let gate = gate.forward(b, x)?;
                    let gate = self.activation.forward(b, &gate)?;
                    let up = up.forward(b, x)?;
                    b.multiply(&gate, &up)?
                }
                GateAndUp::Fused(both) => {
                    let both = both.forward(b, x)?;
                    let last = b.shape(&both).rank() as u64 - 1;
                    let gate = b.slice(&both, last, 0, self.inner)?;
                    let up = b.slice(&both, last, self.inner, self.inner)?;
                    let gate = self.activation.forward(b, &gate)?;
                    b.multiply(&gate, &up)?
                }
            };
            let inner = self.norm.as_ref().map_or_else(|| Ok(inner.clone()), |norm| norm.forward(b, &inner))?;
            self.down.forward(b, &inner)
        })
    }
}

/// `second(activation(first(x)))`.
#[derive(Clone, Debug)]
pub(crate) struct PlainMlp {
    /// Absent where the projections belong to the module around them.
    module: Option<Module>,
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
                module: Some(module),
                first: Linear::new(builder, names.first, width, inner, true),
                second: Linear::new(builder, names.second, inner, width, true),
                activation: match names.activation {
                    Some(name) => PlainActivation::Module(ActivationLayer::new(builder, name, activation)),
                    None => PlainActivation::Function(activation),
                },
            }
        })
    }

    /// The feed-forward of a decoder layer.
    pub(crate) fn of_decoder(builder: &mut Builder, names: &Names, width: u64, config: PlainConfig) -> Self {
        Self::named(builder, names, (names.mlp_module, names.mlp), width, config)
    }

    /// A part of a decoder layer under that name and of that class.
    pub(crate) fn named(
        builder: &mut Builder,
        names: &Names,
        (name, class): (&str, &'static str),
        width: u64,
        config: PlainConfig,
    ) -> Self {
        let PlainConfig { inner, activation, bias } = config;
        let [first, second] = names.plain_modules;
        let parts = |builder: &mut Builder, module: Option<Module>| Self {
            module,
            first: Linear::of_class(builder, first, names.linear, [width, inner], bias),
            second: Linear::of_class(builder, second, names.linear, [inner, width], bias),
            activation: PlainActivation::Module(ActivationLayer::new(builder, names.plain_activation, activation)),
        };
        if name.is_empty() {
            return parts(builder, None);
        }
        builder.module(name, class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("intermediate_size", inner);
            parts(builder, Some(module))
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let run = |b: &mut B| {
            let inner = self.first.forward(b, x)?;
            let inner = match &self.activation {
                PlainActivation::Module(layer) => layer.forward(b, &inner)?,
                PlainActivation::Function(kind) => b.activation(*kind, &inner)?,
            };
            self.second.forward(b, &inner)
        };
        match self.module {
            None => run(b),
            Some(module) => b.scope(module, &[x], run),
        }
    }
}
