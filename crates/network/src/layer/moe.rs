//! A mixture of experts with optional shared experts, as DeepSeek-V2 has it.

use types::{DType, Op};

use super::GatedMlp;
use crate::{Backend, Builder, Module, NetworkError, Ops, Param, Repetition, Routing};

#[derive(Clone, Copy, Debug)]
pub(crate) struct MixtureSettings {
    pub(crate) width: u64,
    pub(crate) inner: u64,
    pub(crate) routing: Routing,
    /// Experts every token goes through; they are one block of that many times the inner width.
    pub(crate) shared: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct MixtureOfExperts {
    module: Module,
    experts_module: Module,
    experts: Vec<GatedMlp>,
    gate: Gate,
    shared: Option<GatedMlp>,
    routing: Routing,
}

#[derive(Clone, Debug)]
struct Gate {
    module: Module,
    weight: Param,
    per_token: u64,
}

impl MixtureOfExperts {
    pub(crate) fn new(builder: &mut Builder, settings: MixtureSettings) -> Self {
        let MixtureSettings { width, inner, routing, shared } = settings;
        builder.module("mlp", "DeepseekV2MoE", |builder, module| {
            builder.setting("n_routed_experts", routing.experts);
            builder.setting("num_experts_per_tok", routing.per_token);
            builder.setting("n_shared_experts", shared);
            builder.setting("moe_intermediate_size", inner);
            let (experts_module, experts) =
                builder.list("experts", Repetition::Parallel, routing.experts, |builder, index| {
                    GatedMlp::new(builder, &index.to_string(), "DeepseekV2MLP", width, inner)
                });
            let gate = builder.module("gate", "MoEGate", |builder, module| {
                builder.setting("n_routed_experts", routing.experts);
                builder.setting("top_k", routing.per_token);
                Gate { module, weight: builder.param("weight", [routing.experts, width]), per_token: routing.per_token }
            });
            let shared =
                (shared > 0).then(|| GatedMlp::new(builder, "shared_experts", "DeepseekV2MLP", width, inner * shared));
            Self { module, experts_module, experts, gate, shared, routing }
        })
    }

    /// `x [B, S, O]`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let shape = b.shape(x);
            let width = shape.last();
            let rows = b.reshape(x, [shape.elements() / width.max(1), width])?;
            let (scores, indices) = self.gate.forward(b, &rows)?;
            let routed = b.scope(self.experts_module, &[&rows], |b| {
                b.experts(self.routing, &rows, &scores, &indices, |b, expert, rows| {
                    self.experts[expert].forward(b, &rows)
                })
            })?;
            let routed = b.reshape(&routed, shape)?;
            match &self.shared {
                None => Ok(routed),
                Some(shared) => {
                    let always = shared.forward(b, x)?;
                    b.add(&routed, &always)
                }
            }
        })
    }
}

impl Gate {
    /// Scores of all experts and the indices of the best, computed in single precision as published.
    fn forward<B: Backend>(&self, b: &mut B, rows: &B::Tensor) -> Result<(B::Tensor, B::Tensor), NetworkError> {
        b.enter(self.module, &[rows]);
        let weight = b.param(self.weight)?;
        let weight = b.cast(&weight, DType::Fp32)?;
        let single = b.cast(rows, DType::Fp32)?;
        let logits = b.apply(Op::Linear, &[&single, &weight])?;
        let scores = b.apply(Op::Softmax, &[&logits])?;
        let indices = b.apply(Op::TopK { k: self.per_token }, &[&scores])?;
        b.leave(self.module, &indices);
        Ok((scores, indices))
    }
}
