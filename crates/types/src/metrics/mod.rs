//! `metrics.json`: everything a run measured, counted or derived, in one document.
//!
//! The keys here are what other tools may rely on. Times are integer nanoseconds and their names end in `_ns`; the only
//! exceptions are `stage_ms` and `time_ms`. Unknown is `null`, never zero.
//!
//! The document is made of views, each of which owns its invariants; in the file their keys stand side by side.

mod breakdown;
mod collective;
mod command;
mod device_memory;
mod device_time;
mod disturbance;
mod flop_check;
mod kernel;
mod operator;
mod peak_memory;
mod profile;
mod rank;
pub(crate) mod ranked;
mod region;
mod replay;
mod step;
mod times;
mod trace;
mod utilisation;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::from_slice;
use serde_json::value::RawValue;

pub use breakdown::*;
pub use collective::*;
pub use command::*;
pub use device_memory::*;
pub use device_time::*;
pub use disturbance::*;
pub use flop_check::*;
pub use kernel::*;
pub use operator::*;
pub use peak_memory::*;
pub use profile::*;
pub use rank::*;
pub use region::*;
pub use replay::*;
pub use step::*;
pub use times::*;
pub use trace::*;
pub use utilisation::*;

use crate::{
    Caveat, Clock, Device, DeviceId, Finding, JsonSchema, LostTime, QualityCounter, SchemaTag, Served, Trials,
};

/// What was run, and on what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    pub replay: Option<ReplaySummary>,
    /// What was lost on the way or is uncertain.
    pub quality: Vec<QualityCounter>,
}

/// What the run was made under.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// How the inputs were run; absent when the source does not say.
    pub settings: Option<ProfileSettings>,
    /// What the inputs were; empty when the source does not say.
    #[serde(default)]
    pub inputs: Vec<InputFacts>,
    /// Memory the model took; absent when not measured.
    pub memory: Option<PeakMemory>,
    /// The traces behind the run; absent where nothing was traced.
    pub trace: Option<TraceFacts>,
    /// The command that was measured; absent for a run of a model.
    pub command: Option<CommandFacts>,
    /// Commands that took turns with it, in the order given.
    #[serde(default)]
    pub commands_beside: Vec<CommandFacts>,
    /// What every inference got of the machine; empty where that was not measured.
    #[serde(default)]
    pub disturbance: Vec<InferenceDisturbance>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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

/// What stands beside the views.
#[derive(Deserialize)]
struct Head {
    schema: SchemaTag<Metrics>,
    run: RunHeader,
    #[serde(default)]
    caveats: Vec<Caveat>,
    devices: Vec<Device>,
    clocks: Vec<Clock>,
}

/// Each view is read from the text by itself and passes over the keys of the others: serde's own way of taking them apart buffers every
/// value, and cuts numbers past 64 bits.
impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::of_views(json.get().as_bytes()).map_err(D::Error::custom)
    }
}

impl Metrics {
    fn of_views(json: &[u8]) -> serde_json::Result<Self> {
        let Head { schema, run, caveats, devices, clocks } = from_slice(json)?;
        Ok(Self {
            schema,
            run,
            caveats,
            devices,
            clocks,
            times: from_slice(json)?,
            utilisation: from_slice(json)?,
            breakdown: from_slice(json)?,
            conclusions: from_slice(json)?,
            served: from_slice(json)?,
            trials: from_slice(json)?,
            conditions: from_slice(json)?,
        })
    }
}
