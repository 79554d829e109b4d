//! Texts that are shared by many rows: a page names the same kernels, units and metrics again and again.

use std::collections::HashSet;
use std::sync::Arc;

/// Every text once.
#[derive(Default)]
pub(super) struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// The one copy of a text.
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&text));
        text
    }
}
