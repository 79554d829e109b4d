//! `capacity-sweep.json`: layouts of a server under one load, and the best of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    CapacityAssumption, ForecastRange, HighestLoad, JsonSchema, LoadFigures, ModelSpec, Objective, Origin,
    PriceForecast, SchemaTag, SimulatedLoad, SimulatedServer, SweepAxis,
};

/// What one layout makes of its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutFigures {
    /// The server.
    pub server: SimulatedServer,
    /// Its load.
    pub load: SimulatedLoad,
    /// `modelled` where most of the time comes from a calibration, else `assumed`.
    pub origin: Origin,
    /// What the load comes to.
    #[serde(flatten)]
    pub figures: LoadFigures,
    /// Output tokens a second that a user sees: the inverse of the mean time per token; absent where every output is one token.
    pub tokens_per_second_per_user: Option<ForecastRange>,
    /// Output tokens a second of each device.
    pub tokens_per_second_per_device: ForecastRange,
    /// The highest load that holds the objective; absent without one, or where no load holds it.
    pub highest: Option<HighestLoad>,
    /// Servers of this layout that hold the highest rate of the load within the objective, by the low end of the highest rate they hold.
    pub servers_needed: Option<u64>,
    /// Devices of all of them.
    pub devices_needed: Option<u64>,
    /// Price of tokens; absent where none was given.
    pub price: Option<PriceForecast>,
    /// What is taken as given.
    pub assumptions: Vec<CapacityAssumption>,
}

/// One layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutPoint {
    /// Its number, from zero; the last axis changes fastest.
    pub point: u64,
    /// The value of every axis, by key.
    pub settings: Map<String, Value>,
    /// The figures; absent where there are none.
    pub figures: Option<LayoutFigures>,
    /// Why there are none, or why no load holds the objective.
    pub error: Option<String>,
    /// Whether no other layout gives more tokens per device and more per user.
    pub on_frontier: bool,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacitySweep {
    /// `llm-perf/capacity-sweep/1`.
    pub schema: SchemaTag<Self>,
    /// Version of llm-perf.
    pub tool_version: String,
    /// The model.
    pub model: ModelSpec,
    /// What varies.
    pub axes: Vec<SweepAxis>,
    /// The latencies that are acceptable.
    pub objective: Option<Objective>,
    /// Layouts of the whole grid.
    pub points_planned: u64,
    /// Whether it was stopped before all of them were done.
    pub stopped: bool,
    /// Simulations that intervals of 90% rest on.
    pub simulations: u64,
    /// The layouts that were done, in order.
    pub points: Vec<LayoutPoint>,
    /// The layout that holds the rate of the load within the objective at the lowest price, or with the fewest devices; absent where
    /// layouts are under different loads.
    pub best: Option<u64>,
}
