//! Sending rows to experts and adding up what comes back.

use network::Routing;
use rayon::prelude::*;

use super::layout::picked;
use crate::compute_error::{ComputeError, Result};
use crate::kernel::filled;
use crate::kernel::linear::WeightSlice;
use crate::tensor::Tensor;

/// Which rows go to which expert, and with which weight they come back.
pub(crate) struct Plan {
    /// For each dispatched row, the token it came from; rows of one expert stand together.
    tokens: Vec<usize>,
    /// For each token and each of its experts, the dispatched row.
    rows: Vec<usize>,
    /// For each of these, the weight of what comes back.
    weights: Vec<f32>,
    groups: Vec<Group>,
    per_token: usize,
    /// Whether rows are weighted on their way to the experts, instead of back.
    scores_inputs: bool,
}

/// The rows of one expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) expert: usize,
    pub(crate) start: usize,
    pub(crate) rows: usize,
}

impl Plan {
    /// From `scores [T, E]` and the chosen `indices [T, k]`.
    pub(crate) fn new(routing: Routing, scores: &Tensor, indices: &Tensor) -> Result<Self> {
        let (experts, per_token) = (routing.experts as usize, routing.per_token as usize);
        let chosen: Vec<usize> = indices.longs()?.iter().map(|expert| *expert as usize).collect();
        if let Some(expert) = chosen.iter().find(|expert| **expert >= experts) {
            return Err(ComputeError::new(format!("{expert} is not one of {experts} experts")));
        }
        let weights = weights(routing, &scores.in_order()?, &chosen);
        let mut counts = vec![0usize; experts];
        for expert in &chosen {
            counts[*expert] += 1;
        }
        let mut groups = Vec::new();
        let mut next = vec![0usize; experts];
        let mut start = 0;
        for (expert, rows) in counts.iter().copied().enumerate() {
            next[expert] = start;
            if rows > 0 {
                groups.push(Group { expert, start, rows });
            }
            start += rows;
        }
        let mut tokens = vec![0; chosen.len()];
        let mut rows = vec![0; chosen.len()];
        for (place, expert) in chosen.iter().enumerate() {
            tokens[next[*expert]] = place / per_token;
            rows[place] = next[*expert];
            next[*expert] += 1;
        }
        Ok(Self { tokens, rows, weights, groups, per_token, scores_inputs: routing.scores_inputs })
    }

    /// Experts that got rows, in order.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// `x [T, O]` to `[T * k, O]`, rows of one expert together.
    pub(crate) fn dispatch(&self, x: &Tensor) -> Result<Tensor> {
        let width = x.width();
        let mut rows = picked(WeightSlice::Single(&x.in_order()?), width, &self.tokens);
        if self.scores_inputs {
            for (row, weight) in self.rows.iter().zip(&self.weights) {
                rows[row * width..][..width].iter_mut().for_each(|value| *value *= weight);
            }
        }
        Tensor::new(rows, [self.tokens.len(), width])
    }

    /// What came back from each group, `[rows, O]`, to `[T, O]`.
    pub(crate) fn combine(&self, outputs: &[Tensor]) -> Result<Tensor> {
        let width = outputs.first().map_or(0, Tensor::width);
        let outputs = outputs.iter().map(Tensor::in_order).collect::<Result<Vec<_>>>()?;
        let outputs: Vec<&[f32]> = outputs.iter().flat_map(|rows| rows.chunks_exact(width.max(1))).collect();
        if outputs.len() != self.rows.len() {
            return Err(ComputeError::new(format!("{} rows went out, {} came back", self.rows.len(), outputs.len())));
        }
        let tokens = self.rows.len() / self.per_token;
        let combined: Vec<f32> = filled(tokens * width, width, |start, piece| {
            let first = start / width.max(1) * self.per_token;
            let places = self.rows[first..].chunks_exact(self.per_token);
            let places = places.zip(self.weights[first..].chunks_exact(self.per_token));
            for (y, (rows, weights)) in piece.chunks_exact_mut(width.max(1)).zip(places) {
                for (row, weight) in rows.iter().zip(weights) {
                    let weight = if self.scores_inputs { 1.0 } else { *weight };
                    y.iter_mut().zip(outputs[*row]).for_each(|(y, output)| *y += output * weight);
                }
            }
        });
        Tensor::new(combined, [tokens, width])
    }
}

/// Scores `[T, E]` of the chosen experts, as weights.
fn weights(routing: Routing, scores: &[f32], chosen: &[usize]) -> Vec<f32> {
    let (experts, per_token) = (routing.experts as usize, routing.per_token as usize);
    let score = |(place, expert): (usize, &usize)| scores[place / per_token * experts + expert];
    let mut weights: Vec<f32> = chosen.iter().enumerate().map(score).collect();
    if routing.normalise {
        for weights in weights.chunks_exact_mut(per_token) {
            let sum: f32 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
    }
    weights.iter_mut().for_each(|weight| *weight *= routing.scale as f32);
    weights
}

/// The `k` largest of every row of scores, the largest first; of equal ones, the first.
pub(super) fn top(scores: &Tensor, k: usize, dims: &[usize]) -> Result<Tensor> {
    let (values, width) = (scores.in_order()?, scores.width().max(1));
    let best = values.par_chunks_exact(width).flat_map_iter(|row| {
        let mut order: Vec<usize> = (0..width).collect();
        let better = |a: &usize, b: &usize| row[*b].total_cmp(&row[*a]).then(a.cmp(b));
        if k < width {
            order.select_nth_unstable_by(k, better);
            order.truncate(k);
        }
        order.sort_unstable_by(better);
        order.into_iter().map(|index| index as i64)
    });
    Tensor::new(best.collect::<Vec<i64>>(), dims)
}

/// Scores `[T, E]` of all but the `keep` best of `groups` groups set below every other; a group is as good as the sum of
/// its `best` best scores.
pub(super) fn limit_groups(scores: &Tensor, [groups, keep, best]: [u64; 3]) -> Result<Tensor> {
    let [tokens, experts] = scores.sizes()?;
    let size = experts / (groups as usize).max(1);
    let mut values = scores.in_order()?.into_owned();
    for row in values.chunks_exact_mut(experts.max(1)) {
        let worth = |group: &[f32]| {
            let mut sorted = group.to_vec();
            sorted.sort_by(|a, b| b.total_cmp(a));
            sorted.iter().take(best as usize).sum::<f32>()
        };
        let mut order: Vec<(usize, f32)> = row.chunks_exact(size.max(1)).map(worth).enumerate().collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (group, _) in order.into_iter().skip(keep as usize) {
            row[group * size..][..size].fill(f32::NEG_INFINITY);
        }
    }
    Tensor::new(values, [tokens, experts])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_of_the_lesser_groups_are_out_of_reach() {
        let scores = Tensor::new(vec![0.9f32, 0.1, 0.5, 0.6, 0.2, 0.3, 0.1, 0.0], [2, 4]).unwrap();
        let by = |best: u64| limit_groups(&scores, [2, 1, best]).unwrap().in_order().unwrap().into_owned();
        let out = f32::NEG_INFINITY;
        assert_eq!(by(1), [0.9, 0.1, out, out, 0.2, 0.3, out, out]);
        assert_eq!(by(2), [out, out, 0.5, 0.6, 0.2, 0.3, out, out]);
    }

    #[test]
    fn the_largest_come_first_and_of_equal_ones_the_first() {
        let scores = Tensor::new(vec![0.1f32, 0.6, 0.3, 0.6, 2., 2., 2., -1.], [2, 4]).unwrap();
        let by = |k: usize| top(&scores, k, &[2, k]).unwrap().longs().unwrap().to_vec();
        assert_eq!(by(2), [1, 3, 0, 1]);
        assert_eq!(by(4), [1, 3, 2, 0, 0, 1, 2, 3]);
    }

    #[test]
    fn rows_go_to_their_experts_and_come_back_weighted() {
        let scores = Tensor::new(vec![0.1f32, 0.6, 0.3, 0.5, 0.2, 0.3], [2, 3]).unwrap();
        let indices = Tensor::new(vec![1i64, 2, 0, 2], [2, 2]).unwrap();
        let plain = Routing { experts: 3, per_token: 2, normalise: false, scale: 1.0, scores_inputs: false };
        let x = Tensor::new(vec![1f32, 10.], [2, 1]).unwrap();
        // Experts that give back what they get: each token times the sum of its two weights.
        let back = |routing: Routing| {
            let plan = Plan::new(routing, &scores, &indices).unwrap();
            let sizes: Vec<_> = plan.groups().iter().map(|group| (group.expert, group.rows)).collect();
            assert_eq!(sizes, [(0, 1), (1, 1), (2, 2)]);
            let rows = plan.dispatch(&x).unwrap();
            let parts = plan.groups().iter().map(|group| rows.slice(0, group.start, group.rows).unwrap());
            let out = plan.combine(&parts.collect::<Vec<_>>()).unwrap().in_order().unwrap().into_owned();
            (rows.in_order().unwrap().into_owned(), out)
        };
        let (rows, out) = back(plain);
        assert_eq!(rows, [10., 1., 1., 10.]);
        assert!((out[0] - 0.9).abs() < 1e-6 && (out[1] - 8.0).abs() < 1e-5, "{out:?}");
        let (rows, again) = back(Routing { scores_inputs: true, ..plain });
        assert_eq!((rows, again), (vec![5., 0.6, 0.3, 3.], out));
        let (_, scaled) = back(Routing { normalise: true, scale: 2.0, ..plain });
        assert!((scaled[0] - 2.0).abs() < 1e-6 && (scaled[1] - 20.0).abs() < 1e-5, "{scaled:?}");
        let stray = Tensor::new(vec![3i64, 0, 1, 2], [2, 2]).unwrap();
        assert_eq!(Plan::new(plain, &scores, &stray).err().unwrap().to_string(), "3 is not one of 3 experts");
    }
}
