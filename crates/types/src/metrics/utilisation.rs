//! How much of the device's peak rates the model's work used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, BytesPerSecond, DType, FlopCheck, Flops, FlopsPerSecond, Hardware, JsonSchema, Stage};

/// The peaks utilisation is relative to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeakUsed {
    /// Dense rate.
    pub flops: FlopsPerSecond,
    /// Memory bandwidth.
    pub bytes_per_second: BytesPerSecond,
    /// Element type of the rate.
    pub dtype: DType,
    /// Where both come from.
    pub source: String,
}

impl PeakUsed {
    /// Those of a device for matrix work in an element type, where it has a rate for it.
    pub fn of(hardware: &Hardware, dtype: DType) -> Option<Self> {
        let peak = hardware.matrix_peak(dtype)?;
        let source = hardware.sources.get(&peak.source).map_or(&peak.source, |source| &source.title).clone();
        Some(Self { flops: peak.flops, bytes_per_second: hardware.bytes_per_second, dtype, source })
    }
}

/// Exact work: of one stage, each input once, or of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Matrix operations.
    pub flops_matrix: Flops,
    /// Bytes that must move.
    pub bytes: Bytes,
}

/// Utilisation of the run and of its stages.
///
/// Holds: every share is between 0 and 1. What would break that is absent, and a finding says what must be wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Utilisation {
    /// Utilisation of the whole run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mfu_model_level: Option<f64>,
    /// Utilisation per stage; `null` where it cannot be told.
    pub mfu_per_stage: BTreeMap<Stage, Option<f64>>,
    /// Peaks used; absent when the device is not known.
    pub peak: Option<PeakUsed>,
    /// Peaks of every element type that the run's matrix operators have, and of `peak`; empty when the device is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peaks: Vec<PeakUsed>,
    /// Exact work per stage; empty when the model is not known.
    pub work_per_stage: BTreeMap<Stage, Work>,
    /// Bandwidth utilisation of the whole run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mbu_model_level: Option<f64>,
    /// The analytic model beside a FLOP counter; empty when nobody asked.
    #[serde(default)]
    pub flop_checks: Vec<FlopCheck>,
}
