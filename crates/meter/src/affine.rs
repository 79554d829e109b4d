//! Costs that grow by the same amount with every decode step.

use types::{Bytes, Cost, Flops, Traffic};

/// What one operation costs at the first decode step, and how much more at each later one.
///
/// FLOPs and bytes of every operation are affine in the number of cached positions it reads, so two priced steps give all
/// of them exactly. An operation that reads a window of positions stops growing once the window is full. Roofline time
/// is not affine; [`crate::Times`] sums it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AffineCost {
    /// At the first step.
    pub first: Cost,
    /// Added with each step.
    pub slope: Cost,
    /// Steps after which nothing more is added.
    pub grows: u64,
}

impl AffineCost {
    /// From the costs of two steps that follow each other, and of the last of `steps`; `None` when the three lie on no
    /// such line.
    pub fn from_steps(first: Cost, second: Cost, last: Cost, steps: u64) -> Option<Self> {
        let slope = difference(first, second)?;
        let whole = Self { first, slope, grows: u64::MAX };
        let final_step = steps.saturating_sub(1);
        if final_step == 0 || whole.at(final_step) == last {
            return Some(whole);
        }
        let growth = difference(first, last)?;
        let grows = parts(&slope).zip(parts(&growth)).find(|(step, _)| *step > 0).map(|(step, all)| all / step)?;
        let line = Self { grows: u64::try_from(grows).ok()?, ..whole };
        (line.at(final_step) == last).then_some(line)
    }

    /// Whether every step costs the same.
    pub fn is_constant(&self) -> bool {
        self.slope == Cost::ZERO
    }

    /// Cost of step `index`, from zero.
    pub fn at(&self, index: u64) -> Cost {
        self.first + self.slope * index.min(self.grows)
    }

    /// The same cost seen from a later step on.
    pub(crate) fn after(&self, step: u64) -> Self {
        let slope = if step < self.grows { self.slope } else { Cost::ZERO };
        // What grows without end does so from later on as well.
        let grows = if self.grows == u64::MAX { u64::MAX } else { self.grows.saturating_sub(step) };
        Self { first: self.at(step), slope, grows }
    }

    /// Cost of the first `steps` steps together.
    pub fn total(&self, steps: u64) -> Cost {
        let growing = steps.min(self.grows.saturating_add(1));
        let pairs = growing * growing.saturating_sub(1) / 2;
        self.first * growing + self.slope * pairs + self.at(self.grows) * (steps - growing)
    }
}

/// What the second costs more than the first; `None` where it costs less, which no operation does.
pub(crate) fn difference(first: Cost, second: Cost) -> Option<Cost> {
    let flops = |a: Flops, b: Flops| b.get().checked_sub(a.get()).map(Flops::new);
    let bytes = |a: Bytes, b: Bytes| b.checked_sub(a);
    let (a, b) = (first.bytes, second.bytes);
    Some(Cost {
        flops_matrix: flops(first.flops_matrix, second.flops_matrix)?,
        flops_vector: flops(first.flops_vector, second.flops_vector)?,
        bytes: Traffic {
            weights: bytes(a.weights, b.weights)?,
            activations_in: bytes(a.activations_in, b.activations_in)?,
            activations_out: bytes(a.activations_out, b.activations_out)?,
            kv_read: bytes(a.kv_read, b.kv_read)?,
            kv_write: bytes(a.kv_write, b.kv_write)?,
        },
    })
}

fn parts(cost: &Cost) -> impl Iterator<Item = u128> {
    let Traffic { weights, activations_in, activations_out, kv_read, kv_write } = cost.bytes;
    let bytes = [weights, activations_in, activations_out, kv_read, kv_write].map(|part| u128::from(part.get()));
    [cost.flops_matrix.get(), cost.flops_vector.get()].into_iter().chain(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cost(flops: u64, kv: u64) -> Cost {
        Cost {
            flops_matrix: Flops::new(flops.into()),
            bytes: Traffic { kv_read: Bytes::new(kv), ..Traffic::ZERO },
            ..Cost::ZERO
        }
    }

    proptest! {
        #[test]
        fn many_steps_equal_the_sum_of_single_ones(
            flops in 0u64..1000, kv in 0u64..1000, more in 0u64..50, steps in 0u64..40, grows in 1u64..50,
        ) {
            let last = steps.saturating_sub(1).min(grows) * more;
            let affine = AffineCost::from_steps(
                cost(flops, kv),
                cost(flops + more, kv + 2 * more),
                cost(flops + last, kv + 2 * last),
                steps,
            ).unwrap();
            let summed: Cost = (0..steps).map(|index| affine.at(index)).sum();
            prop_assert_eq!(affine.total(steps), summed);
            let later: Cost = (steps / 2..steps).map(|index| affine.at(index)).sum();
            prop_assert_eq!(affine.after(steps / 2).total(steps - steps / 2), later);
            prop_assert!(more == 0 || affine.grows == u64::MAX || affine.grows == grows);
        }
    }

    #[test]
    fn a_cost_that_shrinks_is_refused() {
        assert_eq!(AffineCost::from_steps(cost(5, 0), cost(4, 0), cost(3, 0), 3), None);
    }

    #[test]
    fn a_window_that_fills_stops_the_growth() {
        // A window of 4 positions behind 2: two steps fill it, and the eight after them cost the same.
        let line = AffineCost::from_steps(cost(2, 20), cost(3, 30), cost(4, 40), 10).unwrap();
        assert_eq!((line.grows, line.at(1), line.at(9)), (2, cost(3, 30), cost(4, 40)));
        assert_eq!(line.total(10), cost(2 + 3 + 8 * 4, 20 + 30 + 8 * 40));
    }

    #[test]
    fn a_cost_off_the_line_is_refused() {
        assert_eq!(AffineCost::from_steps(cost(2, 20), cost(3, 30), cost(4, 45), 10), None);
        assert_eq!(AffineCost::from_steps(cost(2, 20), cost(2, 20), cost(4, 45), 10), None);
    }
}
