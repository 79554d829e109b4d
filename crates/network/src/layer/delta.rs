//! Gated delta-net: linear attention whose state has a fixed size, behind a short convolution.

use types::{ActivationKind, Op};

use super::{Linear, Norm};
use crate::config::Names;
use crate::config::decoder::{DeltaConfig, DeltaProjections, NormConfig, NormKind};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

/// Positions that the published code processes at a time.
const CHUNK: u64 = 64;

#[derive(Clone, Debug)]
pub(crate) struct GatedDelta {
    module: Module,
    inputs: Inputs,
    conv: (Module, Param),
    decay: [Param; 2],
    norm: Norm,
    output: Linear,
    config: DeltaConfig,
}

#[derive(Clone, Debug)]
enum Inputs {
    /// Queries, keys, values and gates; steps and decays.
    Two([Linear; 2]),
    /// Queries, keys and values; gates; steps; decays.
    Four([Linear; 4]),
    /// Queries; keys; values; steps; then gates and decays, each of one projection or of two.
    Apart(Box<([Linear; 4], [Vec<Linear>; 2])>),
}

impl GatedDelta {
    pub(crate) fn new(builder: &mut Builder, names: &Names, width: u64, config: DeltaConfig, norm: NormConfig) -> Self {
        let DeltaConfig { key_heads, value_heads, key_width, value_width, kernel, .. } = config;
        let (keys, values) = (key_heads * key_width, value_heads * value_width);
        let is_apart = !matches!(config.projections, DeltaProjections::Two | DeltaProjections::Four);
        builder.module(names.delta_module, names.delta, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_v_heads", value_heads);
            builder.setting("num_k_heads", key_heads);
            builder.setting("head_k_dim", key_width);
            builder.setting("head_v_dim", value_width);
            let decays = match config.projections {
                DeltaProjections::Channels { .. } => value_heads * key_width,
                _ => value_heads,
            };
            let rates =
                |builder: &mut Builder| [builder.param("dt_bias", [decays]), builder.param("A_log", [value_heads])];
            let (decay, decay_projections) = match config.projections {
                DeltaProjections::Channels { rank } => {
                    builder.module("forget_gate", names.forget_gate, |builder, _| {
                        let decay = rates(builder);
                        (decay, projected(builder, ["f_proj", "f_a_proj", "f_b_proj"], [width, decays], rank))
                    })
                }
                _ => (rates(builder), Vec::new()),
            };
            let channels = 2 * keys + values;
            let conv = builder.module("conv1d", "Conv1d", |builder, module| {
                builder.setting("in_channels", channels);
                builder.setting("kernel_size", kernel);
                builder.setting("groups", channels);
                (module, builder.param("weight", [channels, 1, kernel]))
            });
            let mut linear = |name, outputs| Linear::new(builder, name, width, outputs, false);
            let inputs = match config.projections {
                DeltaProjections::Two => {
                    Inputs::Two([linear("in_proj_qkvz", channels + values), linear("in_proj_ba", 2 * value_heads)])
                }
                DeltaProjections::Four => Inputs::Four([
                    linear("in_proj_qkv", channels),
                    linear("in_proj_z", values),
                    linear("in_proj_b", value_heads),
                    linear("in_proj_a", value_heads),
                ]),
                DeltaProjections::Apart => {
                    let first = ["q_proj", "k_proj"].map(|name| linear(name, keys));
                    let [query, key] = first;
                    let most = [query, key, linear("v_proj", values), linear("b_proj", value_heads)];
                    let gates = [vec![linear("g_proj", values)], vec![linear("a_proj", value_heads)]];
                    Inputs::Apart(Box::new((most, gates)))
                }
                DeltaProjections::Channels { rank } => {
                    let first = ["q_proj", "k_proj"].map(|name| linear(name, keys));
                    let [query, key] = first;
                    let most = [query, key, linear("v_proj", values), linear("b_proj", value_heads)];
                    let gates = projected(builder, ["g_proj", "g_a_proj", "g_b_proj"], [width, values], rank);
                    Inputs::Apart(Box::new((most, [gates, decay_projections])))
                }
            };
            let norm = NormConfig { kind: NormKind::Rms, ..norm };
            let [norm_name, output] = if is_apart { ["o_norm", "o_proj"] } else { ["norm", "out_proj"] };
            let norm = Norm::new(builder, norm_name, names.gated_norm, value_width, norm);
            let output = Linear::new(builder, output, values, width, false);
            Self { module, inputs, conv, decay, norm, output, config }
        })
    }

    /// `x [B, S, O]`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let DeltaConfig { key_heads, value_heads, key_width, value_width, .. } = self.config;
        let (keys, values) = (key_heads * key_width, value_heads * value_width);
        b.scope(self.module, &[x], |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let [mixed, gate, step, decay] = match &self.inputs {
                // The published code interleaves these head by head; sizes and costs are the same.
                Inputs::Two([most, rest]) => {
                    let most = most.forward(b, x)?;
                    let rest = rest.forward(b, x)?;
                    let mixed = b.slice(&most, 2, 0, 2 * keys + values)?;
                    let mixed = b.apply(Op::Copy, &[&mixed])?;
                    [
                        mixed,
                        b.slice(&most, 2, 2 * keys + values, values)?,
                        b.slice(&rest, 2, 0, value_heads)?,
                        b.slice(&rest, 2, value_heads, value_heads)?,
                    ]
                }
                Inputs::Four([mixed, gate, step, decay]) => {
                    [mixed.forward(b, x)?, gate.forward(b, x)?, step.forward(b, x)?, decay.forward(b, x)?]
                }
                Inputs::Apart(parts) => {
                    let ([query, key, value, step], [gates, decays]) = parts.as_ref();
                    let (query, key, value) = (query.forward(b, x)?, key.forward(b, x)?, value.forward(b, x)?);
                    let mixed = b.concat(2, &[&query, &key, &value])?;
                    let step = step.forward(b, x)?;
                    let mut made = [x.clone(), x.clone()];
                    for (made, projections) in made.iter_mut().zip([gates, decays]) {
                        for projection in projections {
                            *made = projection.forward(b, made)?;
                        }
                    }
                    let [gate, mut decay] = made;
                    if let DeltaProjections::Channels { .. } = self.config.projections {
                        decay = b.reshape(&decay, [batch, length, value_heads, key_width])?;
                    }
                    [mixed, gate, step, decay]
                }
            };
            let (conv, weight) = self.conv;
            let mixed = b.scope(conv, &[&mixed], |b| {
                let weight = b.param(weight)?;
                b.apply(Op::CausalConv, &[&mixed, &weight])
            })?;
            let mixed = b.activation(ActivationKind::Silu, &mixed)?;
            let mut heads = |start: u64, heads: u64, width: u64| {
                let part = b.slice(&mixed, 2, start, heads * width)?;
                b.reshape(&part, [batch, length, heads, width])
            };
            let query = heads(0, key_heads, key_width)?;
            let key = heads(keys, key_heads, key_width)?;
            let value = heads(2 * keys, value_heads, value_width)?;
            let [bias, rate] = [b.param(self.decay[0])?, b.param(self.decay[1])?];
            let op = Op::GatedDelta { chunk: CHUNK };
            let mixed = b.apply(op, &[&query, &key, &value, &step, &decay, &bias, &rate])?;
            let mixed = self.norm.forward(b, &mixed)?;
            let mixed = b.reshape(&mixed, [batch, length, values])?;
            let gate = b.activation(ActivationKind::Silu, &gate)?;
            let mixed = b.multiply(&mixed, &gate)?;
            self.output.forward(b, &mixed)
        })
    }
}

/// One projection of that name, or two through vectors of `rank` elements.
fn projected(
    builder: &mut Builder,
    [whole, first, second]: [&'static str; 3],
    [inputs, outputs]: [u64; 2],
    rank: Option<u64>,
) -> Vec<Linear> {
    match rank {
        None => vec![Linear::new(builder, whole, inputs, outputs, false)],
        Some(rank) => {
            let first = Linear::new(builder, first, inputs, rank, false);
            vec![first, Linear::new(builder, second, rank, outputs, false)]
        }
    }
}
