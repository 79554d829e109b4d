//! Costs that grow by the same amount with every decode step.

use types::{Bytes, Cost, Flops, Traffic};

/// What one operation costs at the first decode step, and how much more at each later one.
///
/// FLOPs and bytes of every operation are affine in the number of cached positions, so two priced steps give all of
/// them exactly. Roofline time is not affine and is summed step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AffineCost {
    /// At the first step.
    pub first: Cost,
    /// Added with each step.
    pub slope: Cost,
}

impl AffineCost {
    /// From the costs of two steps that follow each other; `None` when the second is cheaper, which no operation is.
    pub fn from_steps(first: Cost, second: Cost) -> Option<Self> {
        let flops = |a: Flops, b: Flops| b.get().checked_sub(a.get()).map(Flops::new);
        let bytes = |a: Bytes, b: Bytes| b.checked_sub(a);
        let (a, b) = (first.bytes, second.bytes);
        let slope = Cost {
            flops_matrix: flops(first.flops_matrix, second.flops_matrix)?,
            flops_vector: flops(first.flops_vector, second.flops_vector)?,
            bytes: Traffic {
                weights: bytes(a.weights, b.weights)?,
                activations_in: bytes(a.activations_in, b.activations_in)?,
                activations_out: bytes(a.activations_out, b.activations_out)?,
                kv_read: bytes(a.kv_read, b.kv_read)?,
                kv_write: bytes(a.kv_write, b.kv_write)?,
            },
        };
        Some(Self { first, slope })
    }

    /// Whether every step costs the same.
    pub fn is_constant(&self) -> bool {
        self.slope == Cost::ZERO
    }

    /// Cost of step `index`, from zero.
    pub fn at(&self, index: u64) -> Cost {
        self.first + self.slope * index
    }

    /// Cost of the first `steps` steps together.
    pub fn total(&self, steps: u64) -> Cost {
        let pairs = steps * steps.saturating_sub(1) / 2;
        self.first * steps + self.slope * pairs
    }
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
            flops in 0u64..1000, kv in 0u64..1000, more in 0u64..50, steps in 0u64..40,
        ) {
            let affine = AffineCost::from_steps(cost(flops, kv), cost(flops + more, kv + 2 * more)).unwrap();
            let summed: Cost = (0..steps).map(|index| affine.at(index)).sum();
            prop_assert_eq!(affine.total(steps), summed);
        }
    }

    #[test]
    fn a_cost_that_shrinks_is_refused() {
        assert_eq!(AffineCost::from_steps(cost(5, 0), cost(4, 0)), None);
    }
}
