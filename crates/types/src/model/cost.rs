//! What one operation, module or stage costs: operations and bytes, each in named parts.

use serde::{Deserialize, Serialize};

use crate::sums::{additive, fieldwise_add, fieldwise_multiply};
use crate::{Bytes, Flops, JsonSchema};

/// Bytes that must move through device memory, by what they are. The total is their sum and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Parameters read.
    pub weights: Bytes,
    /// Activations read.
    pub activations_in: Bytes,
    /// Activations written.
    pub activations_out: Bytes,
    /// Keys and values read from the cache.
    pub kv_read: Bytes,
    /// Keys and values written to the cache.
    pub kv_write: Bytes,
}

/// Operations and traffic. Matrix and vector work are counted apart, because different units of the device do them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Operations of matrix products, convolutions and attention products.
    pub flops_matrix: Flops,
    /// All other arithmetic.
    pub flops_vector: Flops,
    /// Bytes moved.
    pub bytes: Traffic,
}

impl Traffic {
    /// No bytes.
    pub const ZERO: Self = Self {
        weights: Bytes::ZERO,
        activations_in: Bytes::ZERO,
        activations_out: Bytes::ZERO,
        kv_read: Bytes::ZERO,
        kv_write: Bytes::ZERO,
    };

    /// All parts together.
    pub fn total(&self) -> Bytes {
        self.weights + self.activations_in + self.activations_out + self.kv_read + self.kv_write
    }
}

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self { flops_matrix: Flops::ZERO, flops_vector: Flops::ZERO, bytes: Traffic::ZERO };

    /// Matrix and vector operations together.
    pub fn flops(&self) -> Flops {
        self.flops_matrix + self.flops_vector
    }
}

fieldwise_add! {
    Traffic { weights, activations_in, activations_out, kv_read, kv_write }
    Cost { flops_matrix, flops_vector, bytes }
}

fieldwise_multiply! {
    Traffic { weights, activations_in, activations_out, kv_read, kv_write }
    Cost { flops_matrix, flops_vector, bytes }
}

additive!(Cost);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_cost() -> impl Strategy<Value = Cost> {
        proptest::array::uniform7(0..1u64 << 40).prop_map(|part| Cost {
            flops_matrix: Flops::new(part[0].into()),
            flops_vector: Flops::new(part[1].into()),
            bytes: Traffic {
                weights: Bytes::new(part[2]),
                activations_in: Bytes::new(part[3]),
                activations_out: Bytes::new(part[4]),
                kv_read: Bytes::new(part[5]),
                kv_write: Bytes::new(part[6]),
            },
        })
    }

    proptest! {
        #[test]
        fn repeating_a_cost_equals_summing_it(cost in any_cost(), times in 0u64..50) {
            let summed: Cost = std::iter::repeat_n(cost, times as usize).sum();
            prop_assert_eq!(summed, cost * times);
        }

        #[test]
        fn totals_of_a_sum_are_sums_of_totals(a in any_cost(), b in any_cost()) {
            prop_assert_eq!((a + b).bytes.total(), a.bytes.total() + b.bytes.total());
            prop_assert_eq!((a + b).flops(), a.flops() + b.flops());
        }
    }
}
