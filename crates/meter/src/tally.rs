//! What a pass adds up to, without a record of every operation: layers that are alike are run once and counted.
//!
//! Which layers are alike is [`LayerKinds`]'s business. Layers inside layers are not told apart, so that counts stay simple.

use std::ops::Range;

use network::Module;
use types::{Bytes, Spec};

use crate::arena::Allocation;
use crate::layer_kinds::{Kind, LayerKinds};
use crate::pass::TallyRow;

/// Sums of a pass under way.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    kinds: &'a LayerKinds,
    rows: Vec<TallyRow>,
    /// Layers that were run, by kind.
    seen: Vec<Option<KnownLayer>>,
    open: Option<OpenLayer>,
}

/// A layer that is running.
#[derive(Debug)]
pub(crate) struct OpenLayer {
    module: Module,
    kind: Kind,
    inputs: Vec<Spec>,
    storages: Vec<Option<*const Allocation>>,
    first_row: usize,
    /// Bytes live when it began.
    pub(crate) live: Bytes,
    /// Messages sent before it.
    pub(crate) messages: usize,
}

/// What a layer leaves behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    pub(crate) output: Spec,
    /// The input whose storage the output is in, if any.
    pub(crate) shares: Option<usize>,
    /// Size of the output's own storage.
    pub(crate) stored: Option<Bytes>,
    /// Most bytes live while it ran, beyond those live before.
    pub(crate) scratch: Bytes,
    /// From which message to which it sent.
    pub(crate) messages: (usize, usize),
}

#[derive(Debug)]
struct KnownLayer {
    inputs: Vec<Spec>,
    rows: Range<usize>,
    layer: Layer,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(kinds: &'a LayerKinds) -> Self {
        let seen = (0..kinds.kinds()).map(|_| None).collect();
        Self { kinds, rows: Vec::with_capacity(256), seen, open: None }
    }

    pub(crate) fn finish(self) -> Vec<TallyRow> {
        self.rows
    }

    pub(crate) fn add(&mut self, row: TallyRow) {
        self.rows.push(row);
    }

    /// Counts `module` once more where one like it already ran on such inputs.
    pub(crate) fn again(&mut self, module: Module, inputs: impl Iterator<Item = Spec>) -> Option<Layer> {
        if self.open.is_some() {
            return None;
        }
        let seen = self.seen[self.kinds.kind(module)?.index()].as_ref()?;
        if !inputs.eq(seen.inputs.iter().copied()) {
            return None;
        }
        for row in &mut self.rows[seen.rows.clone()] {
            row.count += 1;
        }
        Some(seen.layer)
    }

    pub(crate) fn enter(
        &mut self,
        module: Module,
        inputs: impl Iterator<Item = Spec>,
        storages: Vec<Option<*const Allocation>>,
        live: Bytes,
        messages: usize,
    ) {
        if let (None, Some(kind)) = (&self.open, self.kinds.kind(module)) {
            let first_row = self.rows.len();
            self.open = Some(OpenLayer { module, kind, inputs: inputs.collect(), storages, first_row, live, messages });
        }
    }

    /// Ends `module`; only one whose output is whole on every device can stand for others.
    pub(crate) fn leave(&mut self, module: Module, whole: bool, layer: impl FnOnce(&OpenLayer) -> Layer) {
        if let Some(open) = self.open.take_if(|open| open.module == module).filter(|_| whole) {
            let layer = layer(&open);
            let rows = open.first_row..self.rows.len();
            self.seen[open.kind.index()] = Some(KnownLayer { inputs: open.inputs, rows, layer });
        }
    }
}

impl OpenLayer {
    /// The input that lives in `storage`.
    pub(crate) fn shared(&self, storage: *const Allocation) -> Option<usize> {
        self.storages.iter().position(|input| *input == Some(storage))
    }
}
