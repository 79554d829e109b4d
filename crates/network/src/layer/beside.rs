//! A dense feed-forward with a mixture of experts beside it, each normed on its own, as Gemma 4 has them.

use types::Op;

use super::{GatedMlp, GatedMlpNames, Linear, Norm};
use crate::config::Names;
use crate::config::decoder::{BesideConfig, NormConfig};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param, Repetition, Routing};

#[derive(Clone, Debug)]
pub(crate) struct DenseBesideExperts {
    dense: GatedMlp,
    router: Router,
    experts: Module,
    each: Vec<GatedMlp>,
    after_dense: Norm,
    before_experts: Norm,
    after_experts: Norm,
    routing: Routing,
}

#[derive(Clone, Debug)]
struct Router {
    module: Module,
    norm: Norm,
    projection: Linear,
    scale: Param,
    expert_scale: Param,
    per_token: u64,
}

impl DenseBesideExperts {
    /// Adds its parts to the layer under construction.
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: &BesideConfig,
        norm: NormConfig,
    ) -> Self {
        let (projections, fused) = (names.mlp_modules, names.fused_mlp);
        let mlp = GatedMlpNames { module: names.mlp_module, class: names.mlp, projections, fused, norm: None };
        let dense = GatedMlp::new(builder, mlp, width, config.dense);
        let routing = config.mixture.routing;
        let router = builder.module(names.gate_module, names.gate, |builder, module| {
            builder.setting("num_experts", routing.experts);
            builder.setting("top_k", routing.per_token);
            Router {
                module,
                norm: Norm::bare(builder, "norm", names.bare_norm, norm),
                projection: Linear::new(builder, "proj", width, routing.experts, false),
                scale: builder.param("scale", [width]),
                expert_scale: builder.param("per_expert_scale", [routing.experts]),
                per_token: routing.per_token,
            }
        });
        let (experts, each) = builder.list("experts", Repetition::Parallel, routing.experts, |builder, index| {
            let (module, projections) = (index.to_string(), names.expert_modules);
            let names = GatedMlpNames { module: &module, class: names.expert, projections, fused, norm: None };
            GatedMlp::new(builder, names, width, config.mixture.expert)
        });
        let mut named = |name| Norm::new(builder, name, names.norm, width, norm);
        Self {
            dense,
            router,
            experts,
            each,
            after_dense: named("post_feedforward_layernorm_1"),
            before_experts: named("pre_feedforward_layernorm_2"),
            after_experts: named("post_feedforward_layernorm_2"),
            routing,
        }
    }

    /// The dense part of `given [B, S, O]`, which is `x` normed, and the experts of `x`.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        given: &B::Tensor,
        x: &B::Tensor,
    ) -> Result<B::Tensor, NetworkError> {
        let dense = self.dense.forward(b, given)?;
        let dense = self.after_dense.forward(b, &dense)?;
        let shape = b.shape(x);
        let rows = b.reshape(x, [shape.elements() / shape.last().max(1), shape.last()])?;
        let (scores, indices) = self.router.forward(b, &rows)?;
        let rows = self.before_experts.forward(b, &rows)?;
        let routed = b.scope(self.experts, &[&rows], |b| {
            b.experts(self.routing, &rows, &scores, &indices, |b, expert, rows| self.each[expert].forward(b, &rows))
        })?;
        let routed = b.reshape(&routed, shape)?;
        let routed = self.after_experts.forward(b, &routed)?;
        b.add(&dense, &routed)
    }
}

impl Router {
    /// Scores of all experts and the indices of those chosen.
    fn forward<B: Backend>(&self, b: &mut B, rows: &B::Tensor) -> Result<(B::Tensor, B::Tensor), NetworkError> {
        b.enter(self.module, &[rows]);
        let width = b.shape(rows).last();
        let normed = self.norm.forward(b, rows)?;
        let scale = b.param(self.scale)?;
        let scaled = b.multiply(&normed, &scale)?;
        let scaled = b.apply(Op::Scale { factor: 1.0 / (width as f64).sqrt() }, &[&scaled])?;
        let logits = self.projection.forward(b, &scaled)?;
        let scores = b.apply(Op::Softmax, &[&logits])?;
        let indices = b.apply(Op::TopK { k: self.per_token }, &[&scores])?;
        let weights = b.param(self.expert_scale)?;
        let scores = b.multiply(&scores, &weights)?;
        b.leave(self.module, &indices);
        Ok((scores, indices))
    }
}
