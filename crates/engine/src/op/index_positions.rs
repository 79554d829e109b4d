//! The positions that sparse attention sees.

use rayon::prelude::*;

use crate::compute_error::Result;
use crate::tensor::Tensor;

/// `q [B, H, S, D]`, `k [B, 1, T, D]`, `weights [B, S, H]` to `[B, S, keep]`: for each query the keys up to its own with the
/// largest sums over heads of weight times relu(q k), in no particular order. Factors that are the same for all keys change
/// nothing and are left out.
pub(super) fn chosen(inputs: &[&Tensor], keep: usize) -> Result<Tensor> {
    let [batch, heads, queries, width] = inputs[0].sizes()?;
    let [_, _, positions, _] = inputs[1].sizes()?;
    let [q, k, weights] = [inputs[0].in_order()?, inputs[1].in_order()?, inputs[2].in_order()?];
    let rows = (0..batch * queries).into_par_iter().flat_map_iter(|row| {
        let (sequence, query) = (row / queries, row % queries);
        let seen = positions - queries + query + 1;
        let mut scores: Vec<(usize, f32)> = (0..seen)
            .map(|key| {
                let k = &k[(sequence * positions + key) * width..][..width];
                let of_head = |head: usize| {
                    let q = &q[((sequence * heads + head) * queries + query) * width..][..width];
                    weights[row * heads + head] * q.iter().zip(k).map(|(q, k)| q * k).sum::<f32>().max(0.0)
                };
                (key, (0..heads).map(of_head).sum())
            })
            .collect();
        scores.sort_by(|one, other| other.1.total_cmp(&one.1));
        let chosen: Vec<i64> =
            scores.iter().map(|(key, _)| *key as i64).chain(std::iter::repeat(-1)).take(keep).collect();
        chosen
    });
    let rows: Vec<i64> = rows.collect();
    Tensor::new(rows, [batch, queries, keep])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_keys_up_to_the_query_are_chosen_and_missing_ones_are_marked() {
        // One head of width one: keys score what they are, unless that is below zero.
        let tensor = |values: &[f32], dims: &[usize]| Tensor::new(values.to_vec(), dims).unwrap();
        let keys = tensor(&[3.0, -1.0, 5.0, 4.0], &[1, 1, 4, 1]);
        let (queries, weights) = (tensor(&[1.0, 1.0, 1.0], &[1, 1, 3, 1]), tensor(&[1.0, 1.0, 1.0], &[1, 3, 1]));
        let found = chosen(&[&queries, &keys, &weights], 3).unwrap();
        assert_eq!(found.dims(), [1, 3, 3]);
        assert_eq!(found.longs().unwrap(), [0, 1, -1, 2, 0, 1, 2, 3, 0]);
    }
}
