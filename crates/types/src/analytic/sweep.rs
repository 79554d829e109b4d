//! `sweep.json`: what a model costs at every point of a grid of workloads and devices.
//!
//! Everything here is modelled; a point that cannot be modelled says why and has no figures.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Assumption, Bytes, BytesPerSecond, ForecastRange, JsonSchema, ModelSpec, Origin, SchemaTag};

/// One setting that takes several values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepAxis {
    /// Its key, such as `workload.batch`.
    pub key: String,
    /// Its values, in order.
    pub values: Vec<Value>,
}

/// One device of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepDevice {
    /// Catalogue name.
    pub id: String,
    /// Name people use.
    pub name: String,
    /// Memory.
    pub memory_bytes: Bytes,
    /// Memory bandwidth.
    pub bytes_per_second: BytesPerSecond,
    /// Bandwidth to other devices, both directions together; absent where the catalogue does not say.
    pub interconnect_bytes_per_second: Option<BytesPerSecond>,
    /// What forecasts on it rest on: its calibration, or assumptions.
    pub forecast_basis: Option<String>,
}

/// What is likely at one point in eager mode, with 90% intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepForecast {
    /// `modelled` where most of the time and the launches come from a calibration, else `assumed`.
    pub origin: Origin,
    /// Time to the first token, milliseconds.
    pub ttft_ms: ForecastRange,
    /// Mean time of a decode step, milliseconds; absent without decode.
    pub time_per_output_token_ms: Option<ForecastRange>,
}

/// Figures of one point. Bytes are those of the device that holds most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFigures {
    /// Devices that share the work.
    pub devices: u64,
    /// Prompt tokens of one sequence.
    pub seq_len: u64,
    /// Roofline time to the first token.
    pub ttft_ms: f64,
    /// Mean roofline time of a decode step; absent without decode.
    pub time_per_output_token_ms: Option<f64>,
    /// Tokens per second of the whole batch while decoding; absent without decode.
    pub decode_tokens_per_second: Option<f64>,
    /// Prefill and decode together.
    pub total_time_ms: f64,
    /// What most of prefill is bound by.
    pub prefill_bound: String,
    /// What most of decode is bound by; absent without decode.
    pub decode_bound: Option<String>,
    /// Weights.
    pub weights_bytes: Bytes,
    /// Most activations live at once.
    pub activations_peak_bytes: Bytes,
    /// Cache at the end, all sequences together.
    pub kv_bytes: Bytes,
    /// All of these.
    pub total_bytes: Bytes,
    /// Whether that fits the device.
    pub fits: bool,
    /// Sequences of this length whose cache fits beside weights and activations; absent without a cache.
    pub sequences_that_fit: Option<u64>,
    /// Bytes each device sends to others during prefill.
    pub prefill_sent_bytes: Bytes,
    /// Bytes each device sends to others in a decode step, on average; absent without decode.
    pub step_sent_bytes: Option<Bytes>,
    /// What is likely; absent where it cannot be told.
    pub forecast: Option<SweepForecast>,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// Its number in the grid, from zero; devices change fastest, then the last axis.
    pub point: u64,
    /// Catalogue name of the device.
    pub hardware: String,
    /// The value of every axis, by key.
    pub settings: Map<String, Value>,
    /// The figures; absent where they cannot be modelled.
    pub figures: Option<SweepFigures>,
    /// Why there are none.
    pub error: Option<String>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// `llm-perf/sweep/1`.
    pub schema: SchemaTag<Self>,
    /// Version of llm-perf.
    pub tool_version: String,
    /// How all numbers here were obtained.
    pub origin: Origin,
    /// The model.
    pub model: ModelSpec,
    /// The workload as configured; every point changes it by the values of the axes.
    pub workload: Map<String, Value>,
    /// What varies.
    pub axes: Vec<SweepAxis>,
    /// The devices.
    pub hardware: Vec<SweepDevice>,
    /// Points of the whole grid.
    pub points_planned: u64,
    /// Whether it was stopped before all of them were done.
    pub stopped: bool,
    /// The points that were done, in order.
    pub points: Vec<SweepPoint>,
    /// What is taken as given.
    pub assumptions: Vec<Assumption>,
}

impl Sweep {
    /// Points that could not be modelled.
    pub fn failures(&self) -> impl Iterator<Item = &SweepPoint> {
        self.points.iter().filter(|point| point.error.is_some())
    }
}
