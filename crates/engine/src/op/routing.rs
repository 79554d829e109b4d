//! Sending rows to experts and adding up what comes back.

use candle_core::{D, DType, Result, Tensor};
use network::Routing;

/// Which rows go to which expert, and with which weight they come back.
pub(crate) struct Plan {
    /// For each dispatched row, the token it came from; rows of one expert stand together.
    tokens: Tensor,
    /// For each token and each of its experts, the dispatched row.
    rows: Tensor,
    /// For each of these, the weight of what comes back.
    weights: Tensor,
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
        let chosen = indices.to_dtype(DType::I64)?.contiguous()?;
        let mut weights = scores.contiguous()?.gather(&chosen, D::Minus1)?;
        if routing.normalise {
            weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?;
        }
        if routing.scale != 1.0 {
            weights = (weights * routing.scale)?;
        }
        let chosen: Vec<usize> =
            chosen.flatten_all()?.to_vec1::<i64>()?.into_iter().map(|expert| expert as usize).collect();
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
        let mut tokens = vec![0u32; chosen.len()];
        let mut rows = vec![0u32; chosen.len()];
        for (place, expert) in chosen.iter().enumerate() {
            tokens[next[*expert]] = (place / per_token) as u32;
            rows[place] = next[*expert] as u32;
            next[*expert] += 1;
        }
        let device = scores.device();
        let (tokens, rows) = (Tensor::new(tokens, device)?, Tensor::new(rows, device)?);
        Ok(Self { tokens, rows, weights, groups, per_token, scores_inputs: routing.scores_inputs })
    }

    /// Experts that got rows, in order.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// `x [T, O]` to `[T * k, O]`, rows of one expert together.
    pub(crate) fn dispatch(&self, x: &Tensor) -> Result<Tensor> {
        let rows = x.contiguous()?.index_select(&self.tokens, 0)?;
        if !self.scores_inputs {
            return Ok(rows);
        }
        // The weight of each row, in the order of the rows.
        let places: Vec<u32> = self.rows.to_vec1()?;
        let mut order = vec![0u32; places.len()];
        for (place, row) in places.iter().enumerate() {
            order[*row as usize] = place as u32;
        }
        let weights = self.weights.to_dtype(rows.dtype())?.flatten_all()?;
        let weights = weights.index_select(&Tensor::new(order, rows.device())?, 0)?;
        rows.broadcast_mul(&weights.unsqueeze(D::Minus1)?)
    }

    /// What came back, `[T * k, O]`, to `[T, O]`.
    pub(crate) fn combine(&self, outputs: &Tensor) -> Result<Tensor> {
        let width = outputs.dim(1)?;
        let by_token = outputs.index_select(&self.rows, 0)?.reshape(((), self.per_token, width))?;
        if self.scores_inputs {
            return by_token.sum(1);
        }
        let weights = self.weights.to_dtype(outputs.dtype())?.unsqueeze(D::Minus1)?;
        by_token.broadcast_mul(&weights)?.sum(1)
    }
}

/// Scores `[T, E]` of all but the `keep` best of `groups` groups set below every other; a group is as good as the sum of
/// its `best` best scores.
pub(super) fn limit_groups(scores: &Tensor, [groups, keep, best]: [u64; 3]) -> Result<Tensor> {
    let (tokens, experts) = scores.dims2()?;
    let size = experts / (groups as usize).max(1);
    let mut values = scores.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
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
    Tensor::from_vec(values, (tokens, experts), scores.device())
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn experts_of_the_lesser_groups_are_out_of_reach() {
        let scores = Tensor::new(&[[0.9f32, 0.1, 0.5, 0.6], [0.2, 0.3, 0.1, 0.0]], &Device::Cpu).unwrap();
        let by = |best: u64| limit_groups(&scores, [2, 1, best]).unwrap().to_vec2::<f32>().unwrap();
        let out = f32::NEG_INFINITY;
        assert_eq!(by(1), [[0.9, 0.1, out, out], [0.2, 0.3, out, out]]);
        assert_eq!(by(2), [[out, out, 0.5, 0.6], [0.2, 0.3, out, out]]);
    }

    #[test]
    fn rows_go_to_their_experts_and_come_back_weighted() {
        let scores = Tensor::new(&[[0.1f32, 0.6, 0.3], [0.5, 0.2, 0.3]], &Device::Cpu).unwrap();
        let indices = Tensor::new(&[[1i64, 2], [0, 2]], &Device::Cpu).unwrap();
        let routing = Routing { experts: 3, per_token: 2, normalise: false, scale: 1.0, scores_inputs: false };
        let plan = Plan::new(routing, &scores, &indices).unwrap();
        let sizes: Vec<_> = plan.groups().iter().map(|group| (group.expert, group.rows)).collect();
        assert_eq!(sizes, [(0, 1), (1, 1), (2, 2)]);
        let x = Tensor::new(&[[1f32], [10.]], &Device::Cpu).unwrap();
        let rows = plan.dispatch(&x).unwrap();
        assert_eq!(rows.flatten_all().unwrap().to_vec1::<f32>().unwrap(), [10., 1., 1., 10.]);
        // Experts that give back what they get: each token times the sum of its two scores.
        let out = plan.combine(&rows).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!((out[0] - 0.9).abs() < 1e-6 && (out[1] - 8.0).abs() < 1e-5, "{out:?}");
    }
}
