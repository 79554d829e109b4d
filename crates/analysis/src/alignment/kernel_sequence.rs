//! The matrix kernels of one pass, and which operations they can stand for.

use std::collections::{BTreeMap, HashMap};

use types::Facts;
use types::timeline::{LaunchShapeId, NameId};

use super::expansion::Part;
use crate::statistics::median;

/// Kernels at the start of a pass that may be no operation of the model: a small GEMM makes tables of positions.
pub(super) const LEADING: usize = 2;

/// How much longer a kernel must take for larger weights, for the two to be told apart.
const LONGER: f64 = 1.1;

/// How many times as long as usual a launch may take, and how many times shorter.
const SPREAD: f64 = 1.5;

/// A kernel with its grid and block.
pub(crate) type Key = (NameId, LaunchShapeId);

/// The matrix kernels of a pass, in order, and how long each took.
pub(super) struct KernelSequence<'a> {
    pub(super) kernels: &'a [Key],
    pub(super) times: &'a [f64],
}

impl KernelSequence<'_> {
    /// For each kernel the place of its operation, and what is left out, added to the facts: nothing, the first, or all launches of one
    /// kernel, such as one that makes a table of positions in every layer. Where several kernels may be the one that is left
    /// out, only partners that all of these ways agree on are given.
    pub(super) fn partners(&self, parts: &[Part<'_>], how: Facts) -> Option<(Vec<Option<usize>>, Facts)> {
        let all = self.kernels.len();
        let excess = all.checked_sub(parts.len()).filter(|_| !parts.is_empty())?;
        if excess <= LEADING {
            let places: Vec<usize> = (excess..all).collect();
            let how = how.with_known("leading", (excess > 0).then_some(excess));
            return self.consistent(&places, parts).then(|| (self.laid(&places), how));
        }
        let mut agreed: Option<Vec<Option<usize>>> = None;
        for leading in 0..=LEADING {
            for key in self.recurring(excess - leading) {
                let kept = |place: &usize| self.kernels[*place] != key;
                let places: Vec<usize> = (0..all).filter(kept).skip(leading).collect();
                if places.len() != parts.len() || !self.consistent(&places, parts) {
                    continue;
                }
                let laid = self.laid(&places);
                agreed = Some(match agreed {
                    None => laid,
                    Some(before) => {
                        before.into_iter().zip(laid).map(|(one, other)| one.filter(|_| one == other)).collect()
                    }
                });
            }
        }
        let agreed = agreed?;
        let left_out = agreed.iter().filter(|partner| partner.is_none()).count();
        Some((agreed, how.with("left_out", left_out).with("all", all)))
    }

    /// Kernels with as many launches; few are no habit of a layer.
    fn recurring(&self, launches: usize) -> Vec<Key> {
        let mut counts: BTreeMap<usize, (Key, usize)> = BTreeMap::new();
        let mut first: HashMap<Key, usize> = HashMap::new();
        for (place, key) in self.kernels.iter().enumerate() {
            let place = *first.entry(*key).or_insert(place);
            counts.entry(place).or_insert((*key, 0)).1 += 1;
        }
        let wanted = |(key, count): (Key, usize)| (count == launches && count > LEADING).then_some(key);
        counts.into_values().filter_map(wanted).collect()
    }

    /// The operations in order beside the kernels at these places.
    fn laid(&self, places: &[usize]) -> Vec<Option<usize>> {
        let mut partners = vec![None; self.kernels.len()];
        for (operation, place) in places.iter().enumerate() {
            partners[*place] = Some(operation);
        }
        partners
    }

    /// Whether every kernel with one grid and block stands for weights of one size, or takes longer for the larger: with a
    /// pairing that is off by one it does not.
    fn consistent(&self, places: &[usize], parts: &[Part<'_>]) -> bool {
        let mut sizes: HashMap<Key, BTreeMap<u64, Vec<f64>>> = HashMap::new();
        for (place, part) in places.iter().zip(parts) {
            let size = part.operator.weight.as_ref().map_or(0, |weight| weight.iter().product());
            sizes.entry(self.kernels[*place]).or_default().entry(size).or_default().push(self.times[*place]);
        }
        // Small GEMMs of different shapes may share a kernel and a grid; most launches must agree.
        let agreeing: usize = sizes.values().map(agreeing).sum();
        agreeing * 10 >= places.len() * 9
    }
}

/// Launches of one kernel that agree with their partners: those that take about as long as is usual for their size, where
/// each size takes clearly longer than the next smaller; where it does not, those of one size, the most there are.
fn agreeing(sizes: &BTreeMap<u64, Vec<f64>>) -> usize {
    let usual: Vec<f64> = sizes.values().filter_map(|times| median(times)).collect();
    let near = |(times, own): (&Vec<f64>, &f64)| {
        let is_usual = |time: &&f64| **time <= own * SPREAD && **time * SPREAD >= *own;
        let is_nearest = |time: &&f64| usual.iter().all(|other| (**time - own).abs() <= (**time - other).abs());
        times.iter().filter(is_usual).filter(is_nearest).count()
    };
    let each = sizes.values().zip(&usual).map(near);
    if usual.windows(2).any(|pair| pair[1] < pair[0] * LONGER) { each.max().unwrap_or_default() } else { each.sum() }
}

#[cfg(test)]
mod tests {
    use types::{Cost, Op, Stage};

    use super::super::modelled_run::ModelledOperator;
    use super::*;

    fn operator(module: &str, size: u64) -> ModelledOperator {
        ModelledOperator {
            module: module.to_owned(),
            class: "Linear".to_owned(),
            stage: Stage::Decode,
            op: Op::Linear,
            weight: Some(vec![size]),
            spread: false,
            cost: Cost::ZERO,
            roofline: None,
        }
    }

    /// Partners of kernels, each by a letter and how long it took, beside operations by the sizes of their weights.
    fn partners(kernels: &[(u32, f64)], sizes: &[u64]) -> Option<Vec<Option<usize>>> {
        let mut names = types::timeline::Timeline::new(
            types::timeline::TraceFormat::Wire,
            types::Clock {
                id: types::ClockId(0),
                kind: types::ClockKind::Trace,
                unix_ns_at_zero: None,
                uncertainty_ns: None,
            },
        );
        let shape = names.launch_shapes.place_owned(types::LaunchShape::default());
        let sequence: Vec<Key> =
            kernels.iter().map(|(kernel, _)| (names.names.place(&kernel.to_string()), shape)).collect();
        let times: Vec<f64> = kernels.iter().map(|(_, time)| *time).collect();
        let operators: Vec<_> = sizes.iter().map(|size| operator("x", *size)).collect();
        let parts: Vec<_> = operators.iter().map(|operator| Part { operator, share: 1.0 }).collect();
        Some(KernelSequence { kernels: &sequence, times: &times }.partners(&parts, Facts::new())?.0)
    }

    #[test]
    fn a_gemm_that_every_layer_adds_is_left_out() {
        // Five layers of three GEMMs and one that is none of the model's: the second or the third kernel.
        let layer = [(1, 10.0), (1, 10.0), (2, 1.0), (3, 30.0)];
        let kernels: Vec<_> = layer.into_iter().cycle().take(20).collect();
        let found = partners(&kernels, &[4, 4, 9].repeat(5)).unwrap();
        // Which of the two nothing tells, so neither gets a partner; the others are sure.
        let layers: Vec<&[Option<usize>]> = found.chunks(4).collect();
        assert_eq!(layers[..2], [[Some(0), Some(1), None, None], [Some(3), Some(4), None, None]]);
    }

    #[test]
    fn a_kernel_of_two_sizes_tells_which_other_is_left_out() {
        // The first kernel does both sizes; without the third, a small one would take as long as a large one.
        let layer = [(1, 10.0), (2, 1.0), (1, 30.0), (3, 5.0)];
        let kernels: Vec<_> = layer.into_iter().cycle().take(20).collect();
        let found = partners(&kernels, &[4, 9, 4].repeat(5)).unwrap();
        assert_eq!(found[..5], [Some(0), None, Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn more_kernels_than_can_be_told_are_not_paired() {
        assert_eq!(partners(&[(1, 1.0); 9], &[4, 9]), None);
        assert_eq!(partners(&[(1, 1.0)], &[4, 9]), None);
        assert_eq!(partners(&[(1, 1.0), (2, 1.0)], &[]), None);
    }
}
