//! Memory that a workload takes: weights, activations, and the cache of every sequence.

use network::Model;
use types::{Bytes, DType, Shape, Workload};

/// Memory of one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// All parameters.
    pub weights: Bytes,
    /// Most activations live at once.
    pub activations: Bytes,
    /// Cache one more position of a sequence takes; absent for networks without a cache.
    pub kv_per_token: Option<Bytes>,
    /// Cache of one sequence at its end; absent for networks without a cache.
    pub kv_per_sequence: Option<Bytes>,
    /// Sequences.
    pub batch: u64,
}

impl Footprint {
    /// Memory of `workload`, whose passes hold `activations` at most.
    pub(crate) fn new(model: &Model, workload: &Workload, activations: Bytes) -> Self {
        let bytes = |shape: Shape, dtype: Option<DType>| dtype.unwrap_or(workload.dtype).bytes_for(shape.elements());
        let positions = workload.seq_len + workload.decode_steps;
        let kv_per_token = model.cache().map(|cache| workload.dtype.bytes_for(cache.elements_per_token()));
        Self {
            weights: model.blueprint().params().map(|(_, entry)| bytes(entry.shape, entry.dtype)).sum(),
            activations,
            kv_per_token,
            kv_per_sequence: kv_per_token.map(|each| each * positions),
            batch: workload.batch,
        }
    }

    /// Cache of all sequences at their end.
    pub fn kv(&self) -> Bytes {
        self.kv_per_sequence.unwrap_or_default() * self.batch
    }

    /// All of it.
    pub fn total(&self) -> Bytes {
        self.weights + self.activations + self.kv()
    }

    /// Whether it fits a device of that much memory.
    pub fn fits(&self, memory: Bytes) -> bool {
        self.total() <= memory
    }

    /// Sequences of this length whose cache fits a device of that much memory, beside the weights and the activations of
    /// this batch; absent for networks without a cache.
    pub fn sequences(&self, memory: Bytes) -> Option<u64> {
        let each = self.kv_per_sequence.filter(|each| *each > Bytes::ZERO)?;
        let left = memory.checked_sub(self.weights + self.activations).unwrap_or_default();
        Some(left.get() / each.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_share_what_weights_and_activations_leave() {
        let footprint = Footprint {
            weights: Bytes::new(60),
            activations: Bytes::new(15),
            kv_per_token: Some(Bytes::new(1)),
            kv_per_sequence: Some(Bytes::new(10)),
            batch: 2,
        };
        assert_eq!((footprint.total(), footprint.kv()), (Bytes::new(95), Bytes::new(20)));
        assert!(footprint.fits(Bytes::new(95)) && !footprint.fits(Bytes::new(94)));
        assert_eq!(footprint.sequences(Bytes::new(104)), Some(2));
        assert_eq!(footprint.sequences(Bytes::new(105)), Some(3));
        // The weights alone do not fit: none.
        assert_eq!(footprint.sequences(Bytes::new(50)), Some(0));
        assert_eq!(Footprint { kv_per_sequence: None, ..footprint }.sequences(Bytes::new(105)), None);
    }
}
