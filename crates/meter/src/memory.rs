//! Memory that a workload takes: weights, activations, and the cache of every sequence.

use network::{CacheLayer, Model};
use types::{Bytes, DType, Workload};

use crate::sharing::Sharing;

/// Memory of one workload, on the device that holds most where several share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// All parameters.
    pub weights: Bytes,
    /// Most activations live at once.
    pub activations: Bytes,
    /// Cache one more position of a sequence takes; absent for networks without a cache.
    pub kv_per_token: Option<Bytes>,
    /// The same once every window is full.
    pub kv_per_token_later: Option<Bytes>,
    /// Cache of one sequence at its end; absent for networks without a cache.
    pub kv_per_sequence: Option<Bytes>,
    /// Bits that one element of a layer's whole cache takes on this device, in 65,536ths.
    kv_bits: u64,
    /// Sequences whose cache the device keeps.
    pub batch: u64,
}

impl Footprint {
    /// Memory of `workload` on the device that holds most, whose passes hold `activations` at most.
    pub(crate) fn new(model: &Model, workload: &Workload, sharing: &Sharing, activations: Bytes) -> Self {
        let positions = model.prefilled(workload.seq_len).and(workload.decode_steps);
        let cache = model.cache();
        // The pipeline stage whose layers keep most.
        let most = |elements: &dyn Fn(&CacheLayer) -> u64| {
            let layers = cache?.layers.as_slice();
            let stage = layers.len().div_ceil(usize::try_from(workload.parallel.pipeline).unwrap_or(1)).max(1);
            let stages = layers.chunks(stage).map(|stage| stage.iter().map(elements).fold(0, u64::saturating_add));
            Some(sharing.cache_bytes(stages.max().unwrap_or(0)))
        };
        // States are whole on the device that holds their layer; the stage that keeps most is taken to keep all of them.
        let states = |at: usize| {
            let layers = cache.map_or(&[][..], |cache| cache.layers.as_slice());
            layers.iter().map(|layer| layer.state[at]).fold(0, u64::saturating_add)
        };
        let states = sharing.state_bytes(states(0)) + DType::Fp32.bytes_for(states(1));
        Self {
            weights: sharing.weights(),
            activations,
            kv_per_token: most(&|layer| layer.elements + layer.entries),
            kv_per_token_later: most(&|layer| layer.entries + if layer.window.is_none() { layer.elements } else { 0 }),
            kv_per_sequence: most(&|layer| layer.elements_at(positions)).map(|bytes| bytes + states),
            kv_bits: sharing.cache_bits(),
            batch: workload.batch / workload.parallel.data(),
        }
    }

    /// Cache of all sequences at their end.
    pub fn kv(&self) -> Bytes {
        self.kv_per_sequence.unwrap_or_default() * self.batch
    }

    /// Cache of all sequences that one layer keeps, given the elements of one sequence.
    pub(crate) fn kv_of_layer(&self, elements: u64) -> Bytes {
        let bits = u128::from(elements) * u128::from(self.batch) * u128::from(self.kv_bits);
        Bytes::new(u64::try_from(bits / (8 << 16)).unwrap_or(u64::MAX))
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
            kv_per_token_later: Some(Bytes::new(1)),
            kv_per_sequence: Some(Bytes::new(10)),
            kv_bits: 8 << 16,
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
