//! Counters of what a run dropped, clipped or could not attribute.

use serde::{Deserialize, Serialize};

use crate::{Facts, JsonSchema};

crate::named! {
    /// How much a quality counter or a finding matters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Severity {
        /// Good to know; no conclusion changes.
        Info = "info",
        /// A conclusion may change.
        Warning = "warning",
        /// Numbers that depend on this cannot be trusted.
        Error = "error",
    }
}

/// One thing that was lost or is uncertain, how much of it, and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualityCounter {
    /// Stable name, such as `kernels_unattributed`.
    pub counter: String,
    /// How many.
    pub value: u64,
    /// Share of the whole that is affected, where a whole is defined.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: Option<f64>,
    /// How much it matters.
    pub severity: Severity,
    /// What else is known of it, by name.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub quantities: Facts,
    /// What it means and what to do about it; empty until `report::words` has said it.
    pub remedy: String,
}

impl QualityCounter {
    /// That many of something, still to be said.
    pub fn new(counter: &str, severity: Severity, value: u64) -> Self {
        let (counter, quantities, remedy) = (counter.to_owned(), Facts::new(), String::new());
        Self { counter, value, share: None, severity, quantities, remedy }
    }

    /// The same, where there is any.
    pub fn some(counter: &str, severity: Severity, value: u64) -> Option<Self> {
        (value > 0).then(|| Self::new(counter, severity, value))
    }

    /// The same as a share of its whole.
    #[must_use]
    pub fn share(self, share: Option<f64>) -> Self {
        Self { share, ..self }
    }

    /// The same as a share of so many, at most of all of them; without a share where there are none.
    #[must_use]
    pub fn of(self, whole: u64) -> Self {
        let share = (whole > 0).then(|| (self.value as f64 / whole as f64).min(1.0));
        Self { share, ..self }
    }

    /// The same with what else is known.
    #[must_use]
    pub fn facts(self, quantities: Facts) -> Self {
        Self { quantities, ..self }
    }
}
