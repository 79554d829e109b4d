//! Caveats: what a reader must know before the first number.

use serde::{Deserialize, Serialize};

use crate::{Facts, JsonSchema};

/// What kind of caveat, in the order they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// Something that was asked for is missing.
    Partial,
    /// The model that was named is not the one that ran.
    ModelMisfit,
    /// The sides of a comparison did different work, or worked under different conditions.
    NotComparable,
    /// A counter says that numbers cannot be trusted.
    DataQuality,
    /// Nothing but launches of CUDA graphs was timed.
    GraphsOnly,
    /// A device shows nothing at the start although it had work.
    UnrecordedWork,
    /// Other work on the machine disturbed the measurement.
    Disturbed,
    /// Times were taken with a profiler attached.
    ProfilerAttached,
    /// The rates that utilisation is relative to were measured on a busy machine.
    UnreliableCalibration,
    /// Only a part of the model is modelled.
    PartlyModelled,
    /// The element type is assumed.
    AssumedDtype,
    /// Sizes that the file does not state were taken from the published class.
    ClassDefaults,
    /// The device has no matrix unit for the type that weights are stored in.
    WidenedWeights,
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
