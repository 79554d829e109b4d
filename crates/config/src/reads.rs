//! Which values of a configuration were read, so that a setting without effect can be told from one with an effect.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::node::{Node, Value, join};

/// The keys of the leaves read so far; clones of a configuration share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reads(Arc<Mutex<BTreeSet<String>>>);

impl Reads {
    /// Notes all leaves of `node`, which is at `key`, but for those at or below an ignored key.
    pub(crate) fn note(&self, key: &str, node: &Node, ignored: &[String]) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for leaf in leaves(key, node) {
            if !ignored.iter().any(|ignored| is_within(&leaf, ignored)) {
                keys.insert(leaf);
            }
        }
    }

    /// Takes over what others were read.
    pub(crate) fn add(&self, others: &Self) {
        let others = others.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(others);
    }

    /// Whether a leaf at, below or above the key was read.
    pub(crate) fn touch(&self, key: &str) -> bool {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().any(|leaf| is_within(leaf, key) || is_within(key, leaf))
    }
}

/// The keys of everything that is not a map, in order. A list is one leaf.
pub(crate) fn leaves(key: &str, node: &Node) -> Vec<String> {
    match &node.value {
        Value::Map(map) => map.0.iter().flat_map(|entry| leaves(&join(key, &entry.key), &entry.node)).collect(),
        _ => vec![key.to_owned()],
    }
}

/// Whether a key is `above`, or below it.
fn is_within(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| above.is_empty() || rest.is_empty() || rest.starts_with('.'))
}
