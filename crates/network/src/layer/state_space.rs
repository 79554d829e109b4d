//! State-space layers, Mamba-2 and Mamba: a state of fixed size behind a short convolution.

use types::{ActivationKind, Op};

use super::{Linear, Norm};
use crate::config::Names;
use crate::config::decoder::{NormConfig, NormKind, SelectionNorms, StateSpaceConfig, StateSpaceKind};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct StateSpace {
    module: Module,
    input: Linear,
    conv: Conv,
    scan: Scan,
    output: Linear,
    config: StateSpaceConfig,
}

#[derive(Clone, Debug)]
struct Conv {
    module: Module,
    weight: Param,
    bias: Option<Param>,
}

#[derive(Clone, Debug)]
enum Scan {
    /// Bias of the steps, rate of the decay, skip; the norm of what comes out, where there is one.
    Heads { params: [Param; 3], norm: Option<Norm> },
    /// Rate of the decay, skip; what makes steps, inputs and outputs of the state, and their norms.
    Channels { params: [Param; 2], selection: Linear, steps: Linear, norms: Option<[Norm; 3]> },
}

impl StateSpace {
    pub(crate) fn new(
        builder: &mut Builder,
        names: &Names,
        width: u64,
        config: StateSpaceConfig,
        norm: NormConfig,
    ) -> Self {
        let StateSpaceConfig { inner, state, kernel, bias, output_bias, conv_bias, kind } = config;
        builder.module(names.state_space_module, names.state_space, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("intermediate_size", inner);
            builder.setting("ssm_state_size", state);
            let channels = config.channels();
            let conv = |builder: &mut Builder| {
                builder.module("conv1d", "Conv1d", |builder, module| {
                    builder.setting("in_channels", channels);
                    builder.setting("kernel_size", kernel);
                    builder.setting("groups", channels);
                    let weight = builder.param("weight", [channels, 1, kernel]);
                    Conv { module, weight, bias: conv_bias.then(|| builder.param("bias", [channels])) }
                })
            };
            let norm = NormConfig { kind: NormKind::Rms, ..norm };
            match kind {
                StateSpaceKind::Heads { heads, normed, .. } => {
                    builder.setting("num_heads", heads);
                    let params = ["dt_bias", "A_log", "D"].map(|name| builder.param(name, [heads]));
                    let conv = conv(builder);
                    let input = Linear::new(builder, "in_proj", width, inner + channels + heads, bias);
                    let norm = normed.then(|| Norm::new(builder, "norm", names.gated_norm, inner, norm));
                    let output = Linear::new(builder, "out_proj", inner, width, output_bias);
                    Self { module, input, conv, scan: Scan::Heads { params, norm }, output, config }
                }
                StateSpaceKind::Channels { rank, norms } => {
                    builder.setting("time_step_rank", rank);
                    let params = [builder.param("A_log", [inner, state]), builder.param("D", [inner])];
                    let conv = conv(builder);
                    let input = Linear::new(builder, "in_proj", width, 2 * inner, bias);
                    let selection = Linear::new(builder, "x_proj", inner, rank + 2 * state, false);
                    let steps = Linear::new(builder, "dt_proj", rank, inner, true);
                    let output = Linear::new(builder, "out_proj", inner, width, output_bias);
                    let kind = if norms == SelectionNorms::Bare { NormKind::BareRms } else { NormKind::Rms };
                    let norm = NormConfig { kind, ..norm };
                    let mut named = |name, width| Norm::new(builder, name, names.norm, width, norm);
                    let norms = (norms != SelectionNorms::Absent).then(|| {
                        [named("dt_layernorm", rank), named("b_layernorm", state), named("c_layernorm", state)]
                    });
                    Self {
                        module,
                        input,
                        conv,
                        scan: Scan::Channels { params, selection, steps, norms },
                        output,
                        config,
                    }
                }
            }
        })
    }

    /// `x [B, S, O]`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let StateSpaceConfig { inner, state, kind, .. } = self.config;
        let channels = self.config.channels();
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let projected = self.input.forward(b, x)?;
            let mixed = match &self.scan {
                Scan::Heads { params, norm } => {
                    let StateSpaceKind::Heads { heads, groups, chunk, .. } = kind else { return Ok(projected) };
                    let gate = b.slice(&projected, 2, 0, inner)?;
                    let mixed = b.slice(&projected, 2, inner, channels)?;
                    let steps = b.slice(&projected, 2, inner + channels, heads)?;
                    let mixed = self.conv.forward(b, &mixed)?;
                    let x = b.slice(&mixed, 2, 0, inner)?;
                    let x = b.reshape(&x, [batch, length, heads, inner / heads])?;
                    let mut shared = |start: u64| {
                        let part = b.slice(&mixed, 2, start, groups * state)?;
                        b.reshape(&part, [batch, length, groups, state])
                    };
                    let [to, from] = [shared(inner)?, shared(inner + groups * state)?];
                    let [bias, rate, skip] = [b.param(params[0])?, b.param(params[1])?, b.param(params[2])?];
                    let op = Op::StateSpace { chunk };
                    let mixed = b.apply(op, &[&x, &to, &from, &steps, &bias, &rate, &skip])?;
                    let mixed = b.reshape(&mixed, [batch, length, inner])?;
                    let gate = b.activation(ActivationKind::Silu, &gate)?;
                    let mixed = b.multiply(&mixed, &gate)?;
                    // Norms of several groups, each on its own, cost what one over all of them costs.
                    norm.as_ref().map_or_else(|| Ok(mixed.clone()), |norm| norm.forward(b, &mixed))?
                }
                Scan::Channels { params, selection, steps, norms } => {
                    let StateSpaceKind::Channels { rank, .. } = kind else { return Ok(projected) };
                    let mixed = b.slice(&projected, 2, 0, inner)?;
                    let gate = b.slice(&projected, 2, inner, inner)?;
                    let mixed = self.conv.forward(b, &mixed)?;
                    let selected = selection.forward(b, &mixed)?;
                    let mut part = |at: usize, start: u64, width: u64| {
                        let part = b.slice(&selected, 2, start, width)?;
                        norms.as_ref().map_or_else(|| Ok(part.clone()), |norms| norms[at].forward(b, &part))
                    };
                    let step = part(0, 0, rank)?;
                    let [to, from] = [part(1, rank, state)?, part(2, rank + state, state)?];
                    let step = steps.forward(b, &step)?;
                    let [rate, skip] = [b.param(params[0])?, b.param(params[1])?];
                    let mixed = b.apply(Op::SelectiveScan, &[&mixed, &step, &to, &from, &rate, &skip])?;
                    let gate = b.activation(ActivationKind::Silu, &gate)?;
                    b.multiply(&mixed, &gate)?
                }
            };
            self.output.forward(b, &mixed)
        })
    }
}

impl Conv {
    /// `x [B, S, C]`.
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let mixed = b.scope(self.module, &[x], |b| {
            let weight = b.param(self.weight)?;
            match self.bias {
                None => b.apply(Op::CausalConv, &[x, &weight]),
                Some(bias) => {
                    let bias = b.param(bias)?;
                    b.apply(Op::CausalConv, &[x, &weight, &bias])
                }
            }
        })?;
        b.activation(ActivationKind::Silu, &mixed)
    }
}
