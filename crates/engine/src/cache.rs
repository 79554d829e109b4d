//! The key-value cache: one preallocated pair of tensors a layer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use candle_core::Tensor;

use crate::EngineError;

/// Keys and values of all positions so far.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    layers: HashMap<usize, [Tensor; 2]>,
    /// Keys and values of the source, by layer.
    sources: HashMap<usize, [Tensor; 2]>,
    capacity: usize,
    length: usize,
}

impl Cache {
    /// Room for `capacity` positions; memory is taken when a layer first writes.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { layers: HashMap::new(), sources: HashMap::new(), capacity, length: 0 }
    }

    /// Positions written.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Counts `positions` that every layer has written.
    pub(crate) fn advance(&mut self, positions: usize) {
        self.length += positions;
    }

    /// Keeps keys and values of the source for `layer`.
    pub(crate) fn keep_source(&mut self, layer: usize, kept: [Tensor; 2]) {
        self.sources.insert(layer, kept);
    }

    /// Keys and values of the source, where `layer` has kept any.
    pub(crate) fn source(&self, layer: usize) -> Option<&[Tensor; 2]> {
        self.sources.get(&layer)
    }

    /// Writes keys and values `[B, G, S, D]` behind what `layer` holds and gives back all that the new positions see. A
    /// window bounds what is read; what it has passed keeps its room.
    pub(crate) fn append(
        &mut self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
        window: Option<u64>,
    ) -> Result<[Tensor; 2], EngineError> {
        let failed = |source| EngineError::Compute { op: "cache_append", source };
        let positions = keys.dim(2).map_err(failed)?;
        let end = self.length + positions;
        let seen = network::seen(end as u64, positions as u64, window) as usize;
        if end > self.capacity {
            return Err(EngineError::CacheFull { wanted: end, capacity: self.capacity });
        }
        let room = |like: &Tensor| {
            let (batch, heads, _, width) = like.dims4()?;
            Tensor::zeros((batch, heads, self.capacity, width), like.dtype(), like.device())
        };
        let held = match self.layers.entry(layer) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(slot) => slot.insert([room(keys).map_err(failed)?, room(values).map_err(failed)?]),
        };
        let write = |held: &Tensor, new: &Tensor| {
            // An indexer keeps keys alone.
            if new.elem_count() == 0 {
                return held.narrow(2, end - seen, seen);
            }
            held.slice_set(&new.contiguous()?, 2, self.length)?;
            held.narrow(2, end - seen, seen)
        };
        Ok([write(&held[0], keys).map_err(failed)?, write(&held[1], values).map_err(failed)?])
    }
}
