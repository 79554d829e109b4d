//! Replay: what the dependency graph of a timeline says of its time, as recorded and changed.

use serde::{Deserialize, Serialize};

use crate::{DeviceTime, JsonSchema, Nanos, Remark, SchemaTag};

/// One cause of the critical path: the chain of calls, latencies and device work that sets the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalPathPart {
    /// What it is, such as `GEMM kernels` or `host synchronisation`.
    pub cause: Remark,
    /// How long of the path.
    pub ns: Nanos,
    /// The same as a share of the path.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

/// Which run the figures of a replay are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayBasis {
    /// The plain run: host time of the traced pass is scaled until the replay takes what the plain run took.
    PlainRun,
    /// The traced pass as it is.
    TracedPass,
}

/// How well the replay gives back the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySummary {
    /// Recorded time of all stages, or of all devices where there are none; absent where the replay is refused.
    pub measured_ns: Option<Nanos>,
    /// The same in an unchanged replay.
    pub replayed_ns: Option<Nanos>,
    /// How far the replay is off, as a share of the recorded time.
    pub residual: Option<f64>,
    /// The run that savings are of.
    pub basis: Option<ReplayBasis>,
    /// Time of that run; savings are shares of it.
    pub basis_ns: Option<Nanos>,
    /// What all findings with a change would save together: one replay with all changes, never a sum.
    pub together_ns: Option<Nanos>,
    /// Why there is no replay.
    pub refused: Option<Remark>,
}

/// A change that was replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedChange {
    /// As it was asked for, such as `--cuda-graphs`.
    pub change: String,
    /// What it takes for granted.
    pub assumes: Remark,
}

/// One side of a what-if.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedTime {
    /// Time of all stages, or of all devices where there are none.
    pub time_ns: Nanos,
    /// How the time of each device divides.
    pub device_time: Vec<DeviceTime>,
    /// The critical path by cause, longest first.
    pub critical_path: Vec<CriticalPathPart>,
}

/// `whatif --json`: the time of a run under changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// `llm-perf/whatif/1`.
    pub schema: SchemaTag<Self>,
    /// The run, or the file of the trace.
    pub run: String,
    /// Changes, replayed together.
    pub changes: Vec<ReplayedChange>,
    /// How well the replay gives back the recording.
    pub replay: ReplaySummary,
    /// As it is.
    pub before: ReplayedTime,
    /// As it would be; `time_ns` lies in the middle of the interval.
    pub after: ReplayedTime,
    /// Shortest time the changes may lead to.
    pub after_low_ns: Nanos,
    /// Longest.
    pub after_high_ns: Nanos,
    /// Time saved; negative where the changes cost time.
    pub saves_ns: Nanos,
    /// The same as a share of the time before.
    pub saves_share: Option<f64>,
    /// What else has to be known to read the figures.
    pub notes: Vec<Remark>,
}
