//! The key-value cache: one preallocated pair of tensors a layer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::{EngineError, Tensor};

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
        let [_, _, positions, _] = keys.sizes().map_err(failed)?;
        let end = self.length + positions;
        let seen = network::seen(end as u64, positions as u64, window) as usize;
        if end > self.capacity {
            return Err(EngineError::CacheFull { wanted: end, capacity: self.capacity });
        }
        let room = |like: &Tensor| {
            let [batch, heads, _, width] = like.sizes()?;
            Tensor::new(vec![0f32; batch * heads * self.capacity * width], [batch, heads, self.capacity, width])
        };
        let held = match self.layers.entry(layer) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(slot) => slot.insert([room(keys).map_err(failed)?, room(values).map_err(failed)?]),
        };
        // In place: what was given out for the last pass has been dropped since.
        let write = |held: &mut Tensor, new: &Tensor| {
            held.write(2, self.length, new)?;
            held.slice(2, end - seen, seen)
        };
        let [held_keys, held_values] = held;
        Ok([write(held_keys, keys).map_err(failed)?, write(held_values, values).map_err(failed)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::tests::counted;

    #[test]
    fn positions_are_added_in_place_and_a_window_bounds_what_is_seen() {
        let mut cache = Cache::new(4);
        let mut append = |count: usize, window: Option<u64>| {
            let seen = cache.append(0, &counted(&[1, 2, count, 1]), &counted(&[1, 2, count, 0]), window).unwrap();
            cache.advance(count);
            let values = seen[0].in_order().unwrap().into_owned();
            (seen[0].floats().unwrap().view().data.as_ptr(), values, seen[1].dims().to_vec())
        };
        let (first, keys, values) = append(2, None);
        assert_eq!((keys, values), (vec![0., 1., 2., 3.], vec![1, 2, 2, 0]));
        let (again, keys, _) = append(1, None);
        assert_eq!((again, keys), (first, vec![0., 1., 0., 2., 3., 1.]));
        let (_, keys, _) = append(1, Some(2));
        assert_eq!(keys, [0., 0., 1., 1.]);
        let full = cache.append(0, &counted(&[1, 2, 1, 1]), &counted(&[1, 2, 1, 0]), None).unwrap_err();
        assert_eq!(full.to_string(), "5 positions do not fit the KV cache of 4");
    }
}
