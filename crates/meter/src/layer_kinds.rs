//! Which layers of a network are alike: same operations on same shapes with same settings.
//!
//! A pass is run in full once and its layers are compared by what they did, not by their names or classes, so that a
//! layer with a window or another rotation never stands for one without.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

use network::{Blueprint, Module, Repetition};

use crate::Pass;

/// A kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(usize);

/// The kind of every layer.
#[derive(Clone, Debug)]
pub(crate) struct LayerKinds {
    /// By module; absent for modules that are no repeated layer.
    kinds: Vec<Option<Kind>>,
    count: usize,
}

impl Kind {
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

impl LayerKinds {
    /// Compares the layers of `blueprint` by what they did in `passes`.
    pub(crate) fn new(blueprint: &Blueprint, passes: &[&Pass]) -> Self {
        let mut layer_of: Vec<Option<Module>> = Vec::with_capacity(blueprint.modules().len());
        for (module, entry) in blueprint.modules() {
            let around = entry.parent.and_then(|parent| layer_of[parent.index()]);
            let repeats = entry.parent.map(|parent| blueprint.module(parent).repetition);
            let is_layer = repeats == Some(Some(Repetition::Sequential));
            layer_of.push(around.or_else(|| is_layer.then_some(module)));
        }
        let mut hashes: HashMap<Module, DefaultHasher> = HashMap::new();
        let mut text = String::new();
        for (number, pass) in passes.iter().enumerate() {
            for op in &pass.ops {
                let Some(layer) = layer_of[op.module.index()] else { continue };
                text.clear();
                // Writing to a string cannot fail.
                let _ = write!(text, "{number} {:?} {:?} {:?} {:?}", op.op, op.inputs, op.output, op.spread);
                text.hash(hashes.entry(layer).or_default());
            }
        }
        let mut found: HashMap<(Option<Module>, u64), Kind> = HashMap::new();
        let mut kinds = vec![None; layer_of.len()];
        for (module, entry) in blueprint.modules() {
            if let Some(hash) = hashes.get(&module) {
                let next = Kind(found.len());
                kinds[module.index()] = Some(*found.entry((entry.parent, hash.finish())).or_insert(next));
            }
        }
        Self { kinds, count: found.len() }
    }

    pub(crate) fn kinds(&self) -> usize {
        self.count
    }

    pub(crate) fn kind(&self, module: Module) -> Option<Kind> {
        self.kinds[module.index()]
    }
}
