//! Operations that keep a state of fixed size between passes: short convolutions, state-space layers, linear attention.

use std::collections::HashMap;

use network::Module;
use rayon::prelude::*;
use types::Op;

use crate::compute_error::{ComputeError, Result};
use crate::tensor::Tensor;

/// States by the module that keeps them; none is kept before its first pass.
#[derive(Debug, Default)]
pub(crate) struct States {
    by_module: HashMap<Module, Vec<f32>>,
}

/// Whether `op` keeps a state.
pub(crate) fn keeps_state(op: &Op) -> bool {
    matches!(op, Op::CausalConv | Op::StateSpace { .. } | Op::GatedDelta { .. })
}

impl States {
    /// Does `op` for `module`, which goes on from where it ended.
    pub(crate) fn compute(&mut self, module: Module, op: &Op, inputs: &[&Tensor]) -> Result<Tensor> {
        let state = self.by_module.entry(module).or_default();
        match op {
            Op::CausalConv => causal_conv(state, inputs),
            Op::StateSpace { .. } => state_space(state, inputs),
            Op::GatedDelta { .. } => gated_delta(state, inputs),
            other => Err(ComputeError::new(format!("{} keeps no state", other.name()))),
        }
    }
}

/// `x [B, S, C]`, `weight [C, 1, k]`, optional `bias [C]`: each channel is the sum of its last k inputs, weighed. The state
/// is the last k - 1 inputs, `[B, k - 1, C]`.
fn causal_conv(state: &mut Vec<f32>, inputs: &[&Tensor]) -> Result<Tensor> {
    let [batch, length, channels] = inputs[0].sizes()?;
    let [_, _, taps] = inputs[1].sizes()?;
    let kept = taps.saturating_sub(1) * channels;
    let [x, weight] = [inputs[0].in_order()?, inputs[1].in_order()?];
    let bias = inputs.get(2).map(|bias| bias.in_order()).transpose()?;
    state.resize(batch * kept, 0.0);
    let mut y = vec![0f32; x.len()];
    for sequence in 0..batch {
        let tail = &mut state[sequence * kept..(sequence + 1) * kept];
        let own = sequence * length * channels..(sequence + 1) * length * channels;
        let all: Vec<f32> = tail.iter().chain(&x[own.clone()]).copied().collect();
        y[own].par_chunks_mut(channels.max(1)).enumerate().for_each(|(position, row)| {
            for (channel, value) in row.iter_mut().enumerate() {
                let seen =
                    (0..taps).map(|tap| weight[channel * taps + tap] * all[(position + tap) * channels + channel]);
                *value = bias.as_ref().map_or(0.0, |bias| bias[channel]) + seen.sum::<f32>();
            }
        });
        tail.copy_from_slice(&all[all.len() - kept..]);
    }
    Tensor::new(y, [batch, length, channels])
}

/// Mamba-2 by its recurrence: `x [B, S, H, P]`, inputs and outputs of the state `[B, S, G, N]`, steps `[B, S, H]`, bias of the
/// steps, rate of the decay and skip `[H]`. The state is `[B, H, P, N]`.
///
/// For each position: `d = softplus(step + bias)`; `state = exp(-exp(rate) d) state + d x input`; `y = state output + skip x`
/// (Dao and Gu 2024, Transformers are SSMs, equation 1).
fn state_space(state: &mut Vec<f32>, inputs: &[&Tensor]) -> Result<Tensor> {
    let [batch, length, heads, width] = inputs[0].sizes()?;
    let [_, _, groups, size] = inputs[1].sizes()?;
    if groups == 0 || !heads.is_multiple_of(groups) {
        return Err(ComputeError::new(format!("{heads} heads cannot be split into {groups} groups")));
    }
    let [x, to, from, steps] =
        [inputs[0].in_order()?, inputs[1].in_order()?, inputs[2].in_order()?, inputs[3].in_order()?];
    let [bias, rate, skip] = [inputs[4].in_order()?, inputs[5].in_order()?, inputs[6].in_order()?];
    state.resize(batch * heads * width * size, 0.0);
    // One head of one sequence after the other, all at the same time.
    let parts = state.par_chunks_mut((width * size).max(1)).enumerate().map(|(index, state)| {
        let (sequence, head) = (index / heads, index % heads);
        let group = head / (heads / groups);
        let mut y = vec![0f32; length * width];
        for position in 0..length {
            let at = sequence * length + position;
            let step = softplus(steps[at * heads + head] + bias[head]);
            let decay = (-rate[head].exp() * step).exp();
            let shared = (at * groups + group) * size;
            let (to, from) = (&to[shared..shared + size], &from[shared..shared + size]);
            for element in 0..width {
                let value = x[(at * heads + head) * width + element];
                let row = &mut state[element * size..(element + 1) * size];
                let mut sum = 0f32;
                for ((kept, to), from) in row.iter_mut().zip(to).zip(from) {
                    *kept = decay * *kept + step * value * to;
                    sum += *kept * from;
                }
                y[position * width + element] = sum + skip[head] * value;
            }
        }
        y
    });
    let parts: Vec<Vec<f32>> = parts.collect();
    let joined = Tensor::new(parts.concat(), [batch, heads, length, width])?;
    Ok(joined.permute(&[0, 2, 1, 3])?.contiguous())
}

/// Added to the square of a query's or key's length.
const LENGTH_EPSILON: f32 = 1e-6;

/// Linear attention by the gated delta rule: `q` and `k [B, S, G, K]`, `v [B, S, H, V]`, steps and decays `[B, S, H]`, bias and
/// rate of the decay `[H]`. The state is `[B, H, K, V]`.
///
/// For each position, with `q` and `k` of length one and `q` divided by the root of its width: `state = exp(-exp(rate)
/// softplus(decay + bias)) state`; `state = state + k (sigmoid(step) (v - k state))`; `y = q state` (Yang et al. 2024, Gated
/// Delta Networks, equation 10).
fn gated_delta(state: &mut Vec<f32>, inputs: &[&Tensor]) -> Result<Tensor> {
    let [batch, length, groups, width] = inputs[0].sizes()?;
    let [_, _, heads, values] = inputs[2].sizes()?;
    if groups == 0 || !heads.is_multiple_of(groups) {
        return Err(ComputeError::new(format!("{heads} heads cannot be split into {groups} groups")));
    }
    let [q, k, v, steps] = [inputs[0].in_order()?, inputs[1].in_order()?, inputs[2].in_order()?, inputs[3].in_order()?];
    let [decays, bias, rate] = [inputs[4].in_order()?, inputs[5].in_order()?, inputs[6].in_order()?];
    state.resize(batch * heads * width * values, 0.0);
    let parts = state.par_chunks_mut((width * values).max(1)).enumerate().map(|(index, state)| {
        let (sequence, head) = (index / heads, index % heads);
        let group = head / (heads / groups);
        let mut y = vec![0f32; length * values];
        let mut missing = vec![0f32; values];
        for (position, out) in y.chunks_mut(values.max(1)).enumerate() {
            let at = sequence * length + position;
            let shared = (at * groups + group) * width;
            let key = unit(&k[shared..shared + width], 1.0);
            let query = unit(&q[shared..shared + width], 1.0 / (width as f32).sqrt());
            let value = &v[(at * heads + head) * values..][..values];
            let decay = (-rate[head].exp() * softplus(decays[at * heads + head] + bias[head])).exp();
            let step = 1.0 / (1.0 + (-steps[at * heads + head]).exp());
            missing.copy_from_slice(value);
            for (row, key) in state.chunks_mut(values.max(1)).zip(&key) {
                for (kept, missing) in row.iter_mut().zip(&mut missing) {
                    *kept *= decay;
                    *missing -= *kept * key;
                }
            }
            for ((row, key), query) in state.chunks_mut(values.max(1)).zip(&key).zip(&query) {
                for ((kept, missing), out) in row.iter_mut().zip(&missing).zip(out.iter_mut()) {
                    *kept += key * step * missing;
                    *out += *kept * query;
                }
            }
        }
        y
    });
    let parts: Vec<Vec<f32>> = parts.collect();
    let joined = Tensor::new(parts.concat(), [batch, heads, length, values])?;
    Ok(joined.permute(&[0, 2, 1, 3])?.contiguous())
}

/// A vector of length `length` in the direction of `x`.
fn unit(x: &[f32], length: f32) -> Vec<f32> {
    let square: f32 = x.iter().map(|x| x * x).sum();
    let factor = length / (square + LENGTH_EPSILON).sqrt();
    x.iter().map(|x| x * factor).collect()
}

/// `ln(1 + exp(x))`, which is `x` where the exponential is out of range.
fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::{random, worst};

    /// One pass over all positions equals a first pass over some and one step for each of the others.
    fn goes_on(op: impl Fn(&mut Vec<f32>, usize, usize) -> Tensor) {
        let mut state = Vec::new();
        let whole = op(&mut state, 0, 9);
        let mut again = Vec::new();
        let starts = [(0, 5), (5, 1), (6, 1), (7, 1), (8, 1)];
        for (start, length) in starts {
            let part = op(&mut again, start, length);
            assert!(worst(&part, &whole.slice(1, start, length).unwrap()) < 1e-5);
        }
        assert_eq!(state.len(), again.len());
        assert!(state.iter().zip(&again).all(|(one, other)| (one - other).abs() < 1e-5));
    }

    #[test]
    fn a_convolution_goes_on_where_it_ended() {
        let (x, weight, bias) = (random(&[2, 9, 6], 1), random(&[6, 1, 4], 2), random(&[6], 3));
        goes_on(|state, start, length| {
            causal_conv(state, &[&x.slice(1, start, length).unwrap(), &weight, &bias]).unwrap()
        });
    }

    #[test]
    fn a_convolution_worked_by_hand() {
        let x = Tensor::new(vec![1f32, 2.0, 3.0], [1, 3, 1]).unwrap();
        let weight = Tensor::new(vec![10f32, 1.0], [1, 1, 2]).unwrap();
        let y = causal_conv(&mut Vec::new(), &[&x, &weight]).unwrap();
        // Each position, and ten times the one before it.
        assert_eq!(*y.in_order().unwrap(), [1.0, 12.0, 23.0]);
    }

    #[test]
    fn linear_attention_goes_on_where_it_ended() {
        let [q, k] = [1, 2].map(|seed| random(&[2, 9, 2, 5], seed));
        let v = random(&[2, 9, 4, 3], 3);
        let [steps, decays] = [4, 5].map(|seed| random(&[2, 9, 4], seed));
        let heads = [6, 7].map(|seed| random(&[4], seed));
        goes_on(|state, start, length| {
            let part = |tensor: &Tensor| tensor.slice(1, start, length).unwrap();
            let [q, k, v] = [part(&q), part(&k), part(&v)];
            gated_delta(state, &[&q, &k, &v, &part(&steps), &part(&decays), &heads[0], &heads[1]]).unwrap()
        });
    }

    #[test]
    fn a_state_goes_on_where_it_ended() {
        let (x, steps) = (random(&[2, 9, 4, 3], 3), random(&[2, 9, 4], 4));
        let [to, from] = [1, 2].map(|seed| random(&[2, 9, 2, 5], seed));
        let heads = [5, 6, 7].map(|seed| random(&[4], seed));
        goes_on(|state, start, length| {
            let part = |tensor: &Tensor| tensor.slice(1, start, length).unwrap();
            let [x, to, from, steps] = [part(&x), part(&to), part(&from), part(&steps)];
            state_space(state, &[&x, &to, &from, &steps, &heads[0], &heads[1], &heads[2]]).unwrap()
        });
    }
}
