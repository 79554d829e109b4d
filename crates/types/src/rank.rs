//! Ranks of a distributed run side by side.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeviceId, Stage, Statistics};

/// One rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSummary {
    /// Its number.
    pub rank: u32,
    /// Device it ran on; absent where it did not say.
    pub device: Option<DeviceId>,
    /// Milliseconds per stage instance, warm-up left out.
    pub stage_ms: BTreeMap<Stage, Statistics>,
}

/// How far ranks are apart in one stage, by their medians.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSkew {
    /// The stage.
    pub stage: Stage,
    /// The rank that took longest.
    pub slowest: u32,
    /// The rank that took least.
    pub fastest: u32,
    /// How much longer the slowest took, as a share of the fastest.
    #[schemars(range(min = 0.0))]
    pub share: f64,
}
