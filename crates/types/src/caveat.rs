//! Caveats: what a reader must know before the first number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Facts;

/// What kind of caveat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// Something that was asked for is missing.
    Partial,
    /// The model that was named did not run.
    ModelMisfit,
    /// The sides of a comparison did different work, or worked under different conditions.
    NotComparable,
    /// Other work on the machine disturbed the measurement.
    Disturbed,
    /// Repeats of the same work differ too much.
    Noisy,
    /// Times were taken with a profiler attached.
    ProfilerAttached,
    /// A calibration whose points disagree was used.
    UnreliableCalibration,
    /// Only a part of the model is modelled.
    PartlyModelled,
    /// The element type is assumed.
    AssumedDtype,
    /// A part of the trace is missing or was dropped.
    IncompleteTrace,
}

/// One caveat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// Which.
    pub kind: CaveatKind,
    /// Its quantities.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub quantities: Facts,
    /// What it says; empty until `report::words` has said it.
    #[serde(default)]
    pub text: String,
}

impl Caveat {
    /// A caveat with its quantities, still to be said.
    pub fn new(kind: CaveatKind, quantities: Facts) -> Self {
        Self { kind, quantities, text: String::new() }
    }
}
