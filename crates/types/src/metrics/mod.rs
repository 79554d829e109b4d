//! `metrics.json`: everything a run measured, counted or derived, in one document.
//!
//! The keys here are what other tools may rely on. Times are integer nanoseconds and their names end in `_ns`; the only
//! exceptions are `stage_ms` and `time_ms`. Unknown is `null`, never zero.
//!
//! The document is made of views, each of which owns its invariants; in the file their keys stand side by side.

pub(crate) mod collective;
pub(crate) mod command;
pub(crate) mod device_memory;
pub(crate) mod device_time;
pub(crate) mod disturbance;
pub(crate) mod flop_check;
pub(crate) mod kernel;
pub(crate) mod operator;
pub(crate) mod peak_memory;
pub(crate) mod profile;
pub(crate) mod rank;
pub(crate) mod region;
pub(crate) mod replay;
pub(crate) mod step;
pub(crate) mod trace;

mod breakdown;
pub(crate) mod ranked;
mod times;
mod utilisation;

use serde::{Deserialize, Serialize};

pub use breakdown::{Breakdown, ModuleSummary, PlacedBy};
pub use times::{Aggregates, Overhead, Sample, StageSummary, Times, Totals};
pub use utilisation::{PeakUsed, Utilisation, Work};

use crate::schema::{Document, SchemaName, SchemaTag};
use crate::{
    Caveat, Clock, CommandFacts, CriticalPathPart, Device, DeviceId, Finding, InferenceDisturbance, InputFacts,
    LostTime, PeakMemory, ProfileSettings, QualityCounter, ReplaySummary, Served, TraceFacts, Trials,
};

/// What was run, and on what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunHeader {
    /// Name of the run.
    pub id: String,
    /// What did the work: `native`, `torch`, `command`, or the format of an imported trace.
    pub engine: String,
    /// Model; absent when the source does not say.
    pub model: Option<String>,
    /// Device; absent when the source does not say.
    pub device: Option<DeviceId>,
    /// Where the weights came from; absent when the source does not say.
    pub weights: Option<String>,
}

/// What follows from the run.
///
/// Holds: findings together claim at most what is lost, each nanosecond once (the ledger of `analysis::loss`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conclusions {
    /// Findings, what matters most first.
    pub findings: Vec<Finding>,
    /// Time lost, by stage and cause, most first.
    #[serde(default)]
    pub lost_time: Vec<LostTime>,
    /// The critical path of the traced pass by cause, longest first; empty where nothing was traced or the replay is refused.
    #[serde(default)]
    pub critical_path: Vec<CriticalPathPart>,
    /// How well a replay of the dependency graph gives back the recording; absent where nothing was traced.
    #[serde(default)]
    pub replay: Option<ReplaySummary>,
    /// What was lost on the way or is uncertain.
    pub quality: Vec<QualityCounter>,
}

/// What the run was made under.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// How the inputs were run; absent when the source does not say.
    #[serde(default)]
    pub settings: Option<ProfileSettings>,
    /// What the inputs were; empty when the source does not say.
    #[serde(default)]
    pub inputs: Vec<InputFacts>,
    /// Memory the model took; absent when not measured.
    #[serde(default)]
    pub memory: Option<PeakMemory>,
    /// The traces behind the run; absent where nothing was traced.
    #[serde(default)]
    pub trace: Option<TraceFacts>,
    /// The command that was measured; absent for a run of a model.
    #[serde(default)]
    pub command: Option<CommandFacts>,
    /// Commands that took turns with it, in the order given.
    #[serde(default)]
    pub commands_beside: Vec<CommandFacts>,
    /// What every inference got of the machine; empty where that was not measured.
    #[serde(default)]
    pub disturbance: Vec<InferenceDisturbance>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metrics {
    /// `llm-perf/metrics/1`.
    pub schema: SchemaTag<Self>,
    /// What was run.
    pub run: RunHeader,
    /// What a reader must know before the first number.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// Devices of the run.
    pub devices: Vec<Device>,
    /// Clocks of its timestamps.
    pub clocks: Vec<Clock>,
    /// Everything that was timed.
    #[serde(flatten)]
    pub times: Times,
    /// How much of the device's peak rates the work used.
    #[serde(flatten)]
    pub utilisation: Utilisation,
    /// Where the time went.
    #[serde(flatten)]
    pub breakdown: Breakdown,
    /// What follows.
    #[serde(flatten)]
    pub conclusions: Conclusions,
    /// A load on a server.
    #[serde(flatten)]
    pub served: Served,
    /// What was tried.
    #[serde(flatten)]
    pub trials: Trials,
    /// What it was made under.
    #[serde(flatten)]
    pub conditions: Conditions,
}

impl Document for Metrics {
    const SCHEMA: SchemaName = SchemaName::new("metrics", 1);
}
