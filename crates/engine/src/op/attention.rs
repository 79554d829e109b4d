//! Scaled dot-product attention, a block of queries at a time.

use candle_core::{DType, Device, Result, Tensor};

/// Most elements of one block of scores: 4 Mi single-precision ones are 16 MiB, which stay in the cache of most
/// processors while scale, mask and softmax pass over them.
const BLOCK_ELEMENTS: usize = 4 << 20;

/// `q [B, H, S, D]`, `k` and `v [B, G, T, D]`, optional `bias [B, H, S, T]`.
pub(super) fn attention(inputs: &[&Tensor], causal: bool, scale: f64) -> Result<Tensor> {
    let (batch, heads, queries, width) = inputs[0].dims4()?;
    let (_, groups, keys, value_width) = inputs[2].dims4()?;
    let shared = heads / groups;
    // Heads that share keys become more queries of one head, so that keys are never repeated.
    let q = (inputs[0] * scale)?.contiguous()?.reshape((batch, groups, shared * queries, width))?;
    let k = inputs[1].contiguous()?.transpose(2, 3)?;
    let v = inputs[2].contiguous()?;
    let bias = inputs.get(3).map(|bias| bias.reshape((batch, groups, shared * queries, keys))).transpose()?;
    let rows = shared * queries;
    let block = (BLOCK_ELEMENTS / (batch * groups * keys).max(1)).clamp(1, rows.max(1));
    let mut outputs = Vec::with_capacity(rows.div_ceil(block));
    let mut start = 0;
    while start < rows {
        let count = block.min(rows - start);
        let mut scores = q.narrow(2, start, count)?.contiguous()?.matmul(&k)?;
        if let Some(bias) = &bias {
            scores = (scores + bias.narrow(2, start, count)?)?;
        }
        if causal && queries > 1 {
            let mask = mask(start, count, queries, keys, scores.dtype(), scores.device())?;
            scores = scores.broadcast_add(&mask)?;
        }
        let weights = candle_nn::ops::softmax_last_dim(&scores)?;
        outputs.push(weights.matmul(&v)?);
        start += count;
    }
    let output = if outputs.len() == 1 { outputs.swap_remove(0) } else { Tensor::cat(&outputs, 2)? };
    output.reshape((batch, heads, queries, value_width))
}

/// Minus infinity where a query must not see a key. Row `r` is query `r % queries`; the last query sees every key.
fn mask(start: usize, count: usize, queries: usize, keys: usize, dtype: DType, device: &Device) -> Result<Tensor> {
    let mut values = vec![0f32; count * keys];
    for (row, values) in values.chunks_exact_mut(keys).enumerate() {
        let seen = keys - queries + (start + row) % queries + 1;
        values[seen.min(keys)..].fill(f32::NEG_INFINITY);
    }
    Tensor::from_vec(values, (1, 1, count, keys), device)?.to_dtype(dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attention by its definition, one score at a time.
    fn by_definition(q: &Tensor, k: &Tensor, v: &Tensor, causal: bool, scale: f64) -> Vec<f32> {
        let (batch, heads, queries, width) = q.dims4().unwrap();
        let (_, groups, keys, _) = k.dims4().unwrap();
        let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let (qs, ks, vs) = (flat(q), flat(k), flat(v));
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
                            query.iter().zip(&key).map(|(a, b)| f64::from(a * b)).sum::<f64>() * scale
                        })
                        .collect();
                    let total: f64 = scores.iter().map(|score| score.exp()).sum();
                    for d in 0..width {
                        let sum: f64 = (0..seen)
                            .map(|t| scores[t].exp() / total * f64::from(row(&vs, groups, g, keys, t)[d]))
                            .sum();
                        out.push(sum as f32);
                    }
                }
            }
        }
        out
    }

    #[test]
    fn blocks_masks_and_shared_heads_equal_the_definition() {
        for (heads, groups, queries, keys, causal) in
            [(4, 4, 5, 5, true), (4, 2, 3, 7, true), (6, 2, 1, 9, true), (2, 1, 4, 6, false)]
        {
            let random =
                |heads: usize, length: usize| Tensor::randn(0f32, 1.0, (2, heads, length, 8), &Device::Cpu).unwrap();
            let (q, k, v) = (random(heads, queries), random(groups, keys), random(groups, keys));
            let found = attention(&[&q, &k, &v], causal, 0.3).unwrap();
            let found = found.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let wanted = by_definition(&q, &k, &v, causal, 0.3);
            let worst = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(worst < 1e-5, "{heads}/{groups} heads, {queries}/{keys}: off by {worst}");
        }
    }
}
