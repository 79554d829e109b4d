//! A mixture of experts, with or without shared ones.

use types::{ActivationKind, DType, Op};

use super::stacked::{StackedExperts, StackedGate};
use super::{GatedMlp, GatedMlpNames, Linear, PlainMlp};
use crate::config::Names;
use crate::config::decoder::{
    Correction, ExpertStorage, GateConfig, GatedConfig, GroupLimit, MixtureConfig, PlainConfig, ScoreKind, SharedConfig,
};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param, Repetition, Routing};

#[derive(Clone, Debug)]
pub(crate) struct MixtureOfExperts {
    module: Module,
    experts: Experts,
    gate: Gate,
    shared: Option<SharedExperts>,
    /// Whether shared experts lie outside the module.
    beside: bool,
    /// Projections to the width experts work in, and back.
    latent: Option<[Linear; 2]>,
    routing: Routing,
}

#[derive(Clone, Debug)]
enum Experts {
    Listed { module: Module, experts: Vec<Expert> },
    Stacked(StackedExperts),
}

#[derive(Clone, Debug)]
enum Expert {
    Gated(GatedMlp),
    Plain(PlainMlp),
}

#[derive(Clone, Debug)]
struct SharedExperts {
    experts: Expert,
    gate: Option<Linear>,
}

#[derive(Clone, Debug)]
struct Gate {
    module: Module,
    weight: Param,
    bias: Option<Param>,
    correction: Option<Param>,
    per_token: u64,
    config: GateConfig,
}

impl MixtureOfExperts {
    pub(crate) fn new(builder: &mut Builder, names: &Names, width: u64, config: &MixtureConfig) -> Self {
        let &MixtureConfig { expert, gated, routing, .. } = config;
        let inner_width = config.latent.unwrap_or(width);
        let mut mixture = builder.module(names.mixture_module, names.mixture, |builder, module| {
            builder.setting("n_routed_experts", routing.experts);
            builder.setting("num_experts_per_tok", routing.per_token);
            if let Some(shared) = config.shared.and_then(|shared| shared.count) {
                builder.setting("n_shared_experts", shared);
            }
            builder.setting("moe_intermediate_size", expert.inner);
            let experts = match config.storage {
                ExpertStorage::Listed => {
                    let (module, experts) =
                        builder.list("experts", Repetition::Parallel, routing.experts, |builder, index| {
                            let module = index.to_string();
                            let projections = (names.expert_modules, "gate_up_proj");
                            Expert::new(builder, names, (&module, projections), inner_width, (expert, gated))
                        });
                    Experts::Listed { module, experts }
                }
                ExpertStorage::Stacked { limit, alpha } => {
                    let sizes = [routing.experts, width, expert.inner];
                    let gate = StackedGate::Alternating { limit, alpha };
                    Experts::Stacked(StackedExperts::new(builder, names.experts, sizes, gate))
                }
                ExpertStorage::Halves => {
                    let sizes = [routing.experts, width, expert.inner];
                    let gate = StackedGate::Halves(expert.activation);
                    Experts::Stacked(StackedExperts::new(builder, names.experts, sizes, gate))
                }
            };
            let gate = Gate::new(builder, names, width, (routing, config.idle), config.gate);
            let inside = config.shared.filter(|_| !names.shared_beside);
            let shared = inside.map(|shared| SharedExperts::new(builder, names, width, (expert, gated), shared));
            let latent = config.latent.map(|latent| {
                let first = Linear::new(builder, "fc1_latent_proj", width, latent, expert.bias);
                [first, Linear::new(builder, "fc2_latent_proj", latent, width, expert.bias)]
            });
            Self { module, experts, gate, shared, beside: names.shared_beside, latent, routing }
        });
        if names.shared_beside {
            let new = |shared| SharedExperts::new(builder, names, width, (expert, gated), shared);
            mixture.shared = config.shared.map(new);
        }
        mixture
    }

    /// `x [B, S, O]`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let outside = self.shared.as_ref().filter(|_| self.beside);
        let routed = self.routed(b, x)?;
        match outside {
            None => Ok(routed),
            Some(shared) => {
                let always = shared.forward(b, x)?;
                b.add(&routed, &always)
            }
        }
    }

    /// What the module that mixes experts makes.
    fn routed<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let shape = b.shape(x);
            let width = shape.last();
            let mut rows = b.reshape(x, [shape.elements() / width.max(1), width])?;
            let (scores, indices) = self.gate.forward(b, &rows)?;
            if let Some([first, _]) = &self.latent {
                rows = first.forward(b, &rows)?;
            }
            let module = match &self.experts {
                Experts::Listed { module, .. } => *module,
                Experts::Stacked(experts) => experts.module(),
            };
            let routed = b.scope(module, &[&rows], |b| {
                b.experts(self.routing, &rows, &scores, &indices, |b, expert, rows| match &self.experts {
                    Experts::Listed { experts, .. } => experts[expert].forward(b, &rows),
                    Experts::Stacked(experts) => experts.forward(b, expert as u64, &rows),
                })
            })?;
            let routed = match &self.latent {
                None => routed,
                Some([_, second]) => second.forward(b, &routed)?,
            };
            let routed = b.reshape(&routed, shape)?;
            match self.shared.as_ref().filter(|_| !self.beside) {
                None => Ok(routed),
                Some(shared) => {
                    let always = shared.forward(b, x)?;
                    b.add(&routed, &always)
                }
            }
        })
    }
}

impl Expert {
    /// Under that name, with projections to gate, up and down, or to gate and up together.
    fn new(
        builder: &mut Builder,
        names: &Names,
        (module, (projections, fused)): (&str, ([&'static str; 3], &'static str)),
        width: u64,
        (config, gated): (GatedConfig, bool),
    ) -> Self {
        let class = names.expert;
        if gated {
            let named = GatedMlpNames { module, class, projections, fused, norm: None };
            return Self::Gated(GatedMlp::new(builder, named, width, config));
        }
        let GatedConfig { inner, activation, bias, .. } = config;
        Self::Plain(PlainMlp::named(builder, names, (module, class), width, PlainConfig { inner, activation, bias }))
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        match self {
            Self::Gated(mlp) => mlp.forward(b, x),
            Self::Plain(mlp) => mlp.forward(b, x),
        }
    }
}

impl SharedExperts {
    fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        (expert, gated): (GatedConfig, bool),
        config: SharedConfig,
    ) -> Self {
        let named = (names.shared_module, (names.mlp_modules, names.fused_mlp));
        let expert = GatedConfig { inner: config.inner, ..expert };
        Self {
            experts: Expert::new(builder, names, named, width, (expert, gated)),
            gate: config.gated.then(|| Linear::new(builder, "shared_expert_gate", width, 1, false)),
        }
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let always = self.experts.forward(b, x)?;
        match &self.gate {
            None => Ok(always),
            Some(gate) => {
                let weight = gate.forward(b, x)?;
                let weight = b.activation(ActivationKind::Sigmoid, &weight)?;
                b.multiply(&always, &weight)
            }
        }
    }
}

impl Gate {
    fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        (routing, idle): (Routing, u64),
        config: GateConfig,
    ) -> Self {
        let (experts, per_token) = (routing.experts + idle, routing.per_token);
        builder.module(names.gate_module, names.gate, |builder, module| {
            builder.setting("n_routed_experts", experts);
            builder.setting("top_k", per_token);
            if let Some(GroupLimit { groups, keep, .. }) = config.groups {
                builder.setting("n_group", groups);
                builder.setting("topk_group", keep);
            }
            Self {
                module,
                weight: builder.param("weight", [experts, width]),
                bias: config.bias.then(|| builder.param("bias", [experts])),
                correction: config.correction.map(|correction| match correction {
                    Correction::Buffer => builder.buffer("e_score_correction_bias", [experts]),
                    Correction::Parameter => builder.param("e_score_correction_bias", [experts]),
                }),
                per_token,
                config,
            }
        })
    }

    /// Scores of all experts and the indices of those chosen.
    fn forward<B: Backend>(&self, b: &mut B, rows: &B::Tensor) -> Result<(B::Tensor, B::Tensor), NetworkError> {
        b.enter(self.module, &[rows]);
        let mut weight = b.param(self.weight)?;
        let mut rows = rows.clone();
        if self.config.single_precision {
            weight = b.cast(&weight, DType::Fp32)?;
            rows = b.cast(&rows, DType::Fp32)?;
        }
        let logits = match self.bias {
            None => b.apply(Op::Linear, &[&rows, &weight])?,
            Some(bias) => {
                let bias = b.param(bias)?;
                b.apply(Op::Linear, &[&rows, &weight, &bias])?
            }
        };
        let scores = match self.config.scores {
            ScoreKind::Softmax => b.apply(Op::Softmax, &[&logits])?,
            // A root of a softplus costs what a sigmoid costs; no engine here computes it.
            ScoreKind::Sigmoid | ScoreKind::SqrtSoftplus => b.activation(ActivationKind::Sigmoid, &logits)?,
        };
        let mut choice = scores.clone();
        if let Some(correction) = self.correction {
            let correction = b.param(correction)?;
            choice = b.add(&choice, &correction)?;
        }
        if let Some(GroupLimit { groups, keep, best }) = self.config.groups {
            choice = b.apply(Op::LimitGroups { groups, keep, best }, &[&choice])?;
        }
        let indices = b.apply(Op::TopK { k: self.per_token }, &[&choice])?;
        b.leave(self.module, &indices);
        Ok((scores, indices))
    }
}
