//! How much of the device's peak rates the model's work used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, BytesPerSecond, DType, FlopCheck, Flops, FlopsPerSecond, Stage};

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

/// Exact work of one stage, each input once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Matrix operations.
    #[serde(deserialize_with = "crate::unit::buffered::flops")]
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
    /// Exact work per stage; empty when the model is not known.
    pub work_per_stage: BTreeMap<Stage, Work>,
    /// Bandwidth utilisation of the whole run.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mbu_model_level: Option<f64>,
    /// The analytic model beside a FLOP counter; empty when nobody asked.
    #[serde(default)]
    pub flop_checks: Vec<FlopCheck>,
}
