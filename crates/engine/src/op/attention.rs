//! Scaled dot-product attention.

use std::borrow::Cow;

use types::{AttentionDetail, Chosen};

use crate::compute_error::{ComputeError, Result};
use crate::kernel::attention::Attention;
use crate::kernel::detailed_attention::{DetailedAttention, Hidden};
use crate::tensor::Tensor;

/// `q [B, H, S, D]`, `k` and `v [B, G, T, D]`, optional `bias [B, H, S, T]`, `sink [H]` or chosen keys `[B, S, keep]`.
pub(super) fn attention(inputs: &[&Tensor], causal: bool, scale: f64, detail: AttentionDetail) -> Result<Tensor> {
    let [batch, heads, queries, _] = inputs[0].sizes()?;
    let [_, _, positions, _] = inputs[1].sizes()?;
    let [q, k, v] = [inputs[0].floats()?.rows(), inputs[1].floats()?.rows(), inputs[2].floats()?.rows()];
    let numbers = inputs.get(3).filter(|_| detail.chosen != Chosen::Here);
    let last: Option<Cow<'_, [f32]>> = numbers.map(|last| last.in_order()).transpose()?;
    let plain = Attention {
        queries: q.view(),
        keys: k.view(),
        values: v.view(),
        bias: last.as_deref().filter(|_| !detail.sinks && detail.chosen != Chosen::Here),
        causal,
        scale: scale as f32,
    };
    let window = detail.window.map(|window| window as usize);
    let chosen = match detail.chosen {
        Chosen::Here => Some(inputs[3].longs()?),
        Chosen::Nobody | Chosen::Elsewhere => None,
    };
    let hidden = match (chosen, detail.chunked, window) {
        (Some(chosen), _, Some(keep)) => Hidden::AllBut { chosen, keep },
        (_, Some(before), Some(chunk)) => Hidden::OtherChunks { before: before as usize, chunk },
        // The cache gives no more keys than a single query sees; only several need a window of their own each.
        (_, _, Some(window)) if window < positions => Hidden::BeforeWindow(window),
        _ => Hidden::Nothing,
    };
    let sinks = last.as_deref().filter(|_| detail.sinks);
    let softcap = detail.softcap.map(|limit| limit as f32);
    let mixed = if matches!(hidden, Hidden::Nothing) && softcap.is_none() && sinks.is_none() {
        plain.run()
    } else if plain.bias.is_some() {
        let why = "attention with a bias and a window, softcap or sinks at the same time is not supported";
        return Err(ComputeError::new(why));
    } else {
        DetailedAttention { plain, hidden, softcap, sinks }.run()
    };
    Tensor::new(mixed, [batch, heads, queries, inputs[2].width()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::worst;
    use crate::tensor::tests::random;

    /// Attention by its definition, one score at a time.
    fn by_definition(q: &Tensor, k: &Tensor, v: &Tensor, bias: &Tensor, causal: bool, scale: f64) -> Vec<f32> {
        let [batch, heads, queries, width] = q.sizes().unwrap();
        let [_, groups, keys, _] = k.sizes().unwrap();
        let [qs, ks, vs, biases] = [q, k, v, bias].map(|tensor| tensor.in_order().unwrap());
        let mut out = Vec::new();
        for b in 0..batch {
            for h in 0..heads {
                let g = h / (heads / groups);
                for s in 0..queries {
                    let row = |data: &[f32], heads: usize, h: usize, length: usize, i: usize| {
                        let at = ((b * heads + h) * length + i) * width;
                        data[at..at + width].to_vec()
                    };
                    let query = row(&qs, heads, h, queries, s);
                    let seen = if causal { keys - queries + s + 1 } else { keys };
                    let scores: Vec<f64> = (0..seen)
                        .map(|t| {
                            let key = row(&ks, groups, g, keys, t);
                            let bias = biases[((b * heads + h) * queries + s) * keys + t];
                            query.iter().zip(&key).map(|(a, b)| f64::from(a * b)).sum::<f64>() * scale + f64::from(bias)
                        })
                        .collect();
                    let total: f64 = scores.iter().map(|score| score.exp()).sum();
                    let mut sums = vec![0f64; width];
                    for (t, score) in scores.iter().enumerate() {
                        let value = row(&vs, groups, g, keys, t);
                        sums.iter_mut()
                            .zip(value)
                            .for_each(|(sum, value)| *sum += score.exp() / total * f64::from(value));
                    }
                    out.extend(sums.into_iter().map(|sum| sum as f32));
                }
            }
        }
        out
    }

    #[test]
    fn blocks_masks_biases_and_shared_heads_equal_the_definition() {
        for (heads, groups, queries, keys, causal) in [
            (4, 4, 5, 5, true),
            (4, 2, 3, 7, true),
            (6, 2, 1, 9, true),
            (2, 1, 4, 6, false),
            // More queries and keys than one block, and not whole blocks of either.
            (2, 1, 300, 700, true),
            (1, 1, 270, 1030, false),
        ] {
            // Heads behind positions in memory, as projections leave them.
            let q = random(&[2, queries, heads, 8], 1).permute(&[0, 2, 1, 3]).unwrap();
            let [k, v] = [2, 3].map(|seed| random(&[2, keys, groups, 8], seed).permute(&[0, 2, 1, 3]).unwrap());
            let bias = random(&[2, heads, queries, keys], 4);
            let none = Tensor::new(vec![0f32; 2 * heads * queries * keys], bias.dims()).unwrap();
            for (inputs, bias) in [(&[&q, &k, &v, &bias][..], &bias), (&[&q, &k, &v][..], &none)] {
                let found = attention(inputs, causal, 0.3, AttentionDetail::default()).unwrap();
                let wanted = by_definition(&q, &k, &v, bias, causal, 0.3);
                let off = worst(&found.in_order().unwrap(), &wanted);
                assert!(off < 1e-5, "{heads}/{groups} heads, {queries}/{keys}: off by {off}");
            }
        }
    }
}
