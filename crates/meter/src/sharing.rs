//! How one model lies in memory and on devices: worked out once, asked for every parameter of every pass.

use network::{Model, Module, Param};
use types::{Bytes, DType, Parallel, Quantisation, Workload};

use crate::error::MeterError;
use crate::layout::Layout;
use crate::shard;
use crate::storage::{Storage, storage};

/// What of a workload decides how a model is stored and shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SharingKey {
    dtype: DType,
    quantisation: Quantisation,
    parallel: Parallel,
}

/// How a model is stored and shared.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    key: SharingKey,
    /// By parameter; empty on a single device.
    layouts: Vec<Layout>,
    /// By parameter; empty without quantisation.
    stored: Vec<Storage>,
    /// Layers that begin a pipeline stage, the first left out.
    beginnings: Vec<Module>,
    weights: Bytes,
    cache_ways: u64,
}

impl SharingKey {
    pub(crate) fn new(workload: &Workload) -> Self {
        let Workload { dtype, quantisation, parallel, .. } = *workload;
        Self { dtype, quantisation, parallel }
    }
}

impl Sharing {
    /// How `model` lies for `workload`; refuses sizes that cannot be shared.
    pub(crate) fn new(model: &Model, workload: &Workload) -> Result<Self, MeterError> {
        shard::check(model, workload)?;
        let key = SharingKey::new(workload);
        let SharingKey { dtype, quantisation, parallel } = key;
        let blueprint = model.blueprint();
        let layouts = if parallel.is_single() {
            Vec::new()
        } else {
            blueprint.params().map(|(param, _)| shard::layout(blueprint, param, &parallel)).collect()
        };
        let formatted = || blueprint.params().any(|(_, entry)| entry.format.is_some());
        let kept = if quantisation.weights.is_some() || formatted() {
            blueprint.params().map(|(param, _)| storage(blueprint, param, dtype, &quantisation)).collect()
        } else {
            Vec::new()
        };
        let beginnings = match parallel.pipeline {
            1 => Vec::new(),
            pipeline => {
                let layers = shard::layers(blueprint);
                layers.chunks((layers.len() / pipeline as usize).max(1)).skip(1).map(|stage| stage[0]).collect()
            }
        };
        Ok(Self {
            key,
            layouts,
            stored: kept,
            beginnings,
            weights: shard::weights(blueprint, dtype, &quantisation, &parallel),
            cache_ways: shard::cache_ways(blueprint, &parallel),
        })
    }

    pub(crate) fn parallel(&self) -> &Parallel {
        &self.key.parallel
    }

    pub(crate) fn quantisation(&self) -> &Quantisation {
        &self.key.quantisation
    }

    /// How `param` lies on devices, where that is not whole on each.
    pub(crate) fn layout(&self, param: Param) -> Option<Layout> {
        self.layouts.get(param.index()).copied().filter(|layout| !layout.is_whole())
    }

    /// How `param` is stored, where that is not as everything else.
    pub(crate) fn stored(&self, param: Param) -> Option<Storage> {
        self.stored.get(param.index()).copied().filter(Storage::is_quantised)
    }

    /// Whether `module` is the first layer of a pipeline stage that is not the first.
    pub(crate) fn begins_stage(&self, module: Module) -> bool {
        self.beginnings.contains(&module)
    }

    /// Pieces that the rows of all experts are dealt out into, seen from one group of the batch.
    pub(crate) fn row_ways(&self) -> u64 {
        let parallel = &self.key.parallel;
        parallel.expert / parallel.data()
    }

    /// Most bytes of parameters on one device.
    pub(crate) fn weights(&self) -> Bytes {
        self.weights
    }

    /// Bytes of a cache of so many elements on one device.
    pub(crate) fn cache_bytes(&self, elements: u64) -> Bytes {
        self.cache_dtype().bytes_for(elements.div_ceil(self.cache_ways))
    }

    /// Bytes of so many elements of states, which every device keeps whole.
    pub(crate) fn state_bytes(&self, elements: u64) -> Bytes {
        self.cache_dtype().bytes_for(elements)
    }

    /// Bits that one element of the whole cache takes on one device, in 65,536ths.
    pub(crate) fn cache_bits(&self) -> u64 {
        (self.cache_dtype().bits() << 16) / self.cache_ways
    }

    fn cache_dtype(&self) -> DType {
        self.key.quantisation.kv.unwrap_or(self.key.dtype)
    }
}
