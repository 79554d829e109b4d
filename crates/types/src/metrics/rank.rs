//! Ranks of a distributed run side by side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DeviceId, JsonSchema, Nanos, Stage, Statistics};

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

/// When ranks reach the collectives they share. Their clocks are compared by the ends of these collectives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankArrivals {
    /// Collectives that were found on every rank here.
    pub collectives: u64,
    /// How far their ends are apart at most; arrivals nearer together than this count as one.
    pub ends_within_ns: Nanos,
    /// Rank by rank.
    pub ranks: Vec<RankArrival>,
}

/// How one rank reaches the collectives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankArrival {
    /// Its number.
    pub rank: u32,
    /// Collectives that it reaches last.
    pub last: u64,
    /// Time it is in collectives that another rank here has not reached yet.
    pub waited_ns: Nanos,
    /// That as a share of the rank's device time.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub waited_share: Option<f64>,
}
