//! What `llm-perf compare` says: whether two sides can be compared, what changed, and how sure that is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, ForecastRange, JsonSchema, Nanos, Remark, RunState, SchemaTag, Severity, Stage};

/// One run of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    /// Name of the run, as in its metrics.
    pub id: String,
    /// How the machine disturbed it; absent where it did not, or nobody looked.
    pub disturbed: Option<Remark>,
    /// Where it was read from.
    pub path: String,
    /// How it stands; absent when only its metrics were given.
    pub state: Option<RunState>,
    /// Why it is partial or failed.
    pub reasons: Vec<String>,
}

/// What was forecast of one stage on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForecastChange {
    /// The stage.
    pub stage: String,
    /// Milliseconds forecast for the first side.
    pub base: ForecastRange,
    /// Milliseconds forecast for the second side.
    pub with: ForecastRange,
    /// How much longer the second side should take, as a share of the first.
    pub change: f64,
}

/// Something the two sides, or the runs of one side, do not share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What differs, such as `model` or `driver`.
    pub aspect: String,
    /// What the runs of the first side have, each value once.
    pub base: Vec<String>,
    /// What the runs of the second side have, each value once.
    pub with: Vec<String>,
    /// `error`: the sides did different work. `warning`: the same work under other conditions. `info`: good to know.
    pub severity: Severity,
    /// What that means for the comparison.
    pub meaning: Remark,
}

/// What was repeated, and so what the uncertainty is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Replication {
    /// One run per side: the repeats of each input within it. How runs of the same thing differ is not seen.
    Repeats,
    /// Several runs on a side: the runs.
    Runs,
}

/// What can be said about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeVerdict {
    /// The second side takes less time.
    Faster,
    /// The second side takes more time.
    Slower,
    /// Neither can be said; `untested` says so where nothing could have been.
    NoEvidence,
}

/// What one side measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// The time compared; absent when the side does not have it.
    pub time_ns: Option<Nanos>,
    /// The memory compared, in the table of memory.
    pub bytes: Option<Bytes>,
    /// Timed instances it rests on.
    pub samples: u64,
    /// Calls or launches; absent for stages and modules.
    pub calls: Option<u64>,
    /// Coefficient of variation of what was repeated; absent where nothing was.
    #[schemars(range(min = 0.0))]
    pub spread: Option<f64>,
    /// Samples far from the others of their input; they are kept.
    pub outliers: u64,
    /// Samples at the beginning that look like warm-up and are not marked as such; they are kept.
    pub warm_up: u64,
}

/// A range that holds the true change in `confidence` of all comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeInterval {
    /// Lower end, as a share of the first side's time.
    pub low: f64,
    /// Upper end, as a share of the first side's time.
    pub high: f64,
    /// Such as 0.95.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
}

/// One thing both sides, or one of them, spent time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Stage, operator, kernel or module path.
    pub name: String,
    /// Short form of a kernel's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_name: Option<String>,
    /// Stage of a kernel or a module; absent where it is not known or is the thing itself.
    pub stage: Option<Stage>,
    /// Device of a kernel.
    pub device: Option<DeviceId>,
    /// The first side.
    pub base: Measured,
    /// The second side.
    pub with: Measured,
    /// How much longer the second side takes, as a share of the first; negative when it is faster.
    pub change: Option<f64>,
    /// The same for one call, where both sides count calls: more calls are not slower ones.
    pub change_per_call: Option<f64>,
    /// How sure that is; absent where it cannot be told.
    pub interval: Option<ChangeInterval>,
    /// Chance of a difference at least this large between sides that are the same.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p_value: Option<f64>,
    /// The same, corrected for the number of rows tested in this table (Holm).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p_adjusted: Option<f64>,
    /// What can be said.
    pub verdict: ChangeVerdict,
    /// Why nothing could have been said, whatever the numbers; absent when the row was tested.
    pub untested: Option<Remark>,
}

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateOutcome {
    /// No stage is slower beyond the limit, and each could have been found to be.
    Passed,
    /// A stage is.
    Failed,
    /// None was found to be, but some could not have been; `reasons` says why.
    Undecided,
}

/// What `--fail-over` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// Most that anything measured without a profiler may be slower, as a share of the first side's time; absent where
    /// limits are given by name only.
    #[schemars(range(min = 0.0))]
    pub limit: Option<f64>,
    /// Limits of single rows, by their names.
    #[serde(default)]
    pub limits: BTreeMap<String, f64>,
    /// How it ended.
    pub outcome: GateOutcome,
    /// Stages, and whatever else was asked for, that are slower, or larger, beyond their limit.
    pub failed: Vec<String>,
    /// Why it is undecided.
    pub reasons: Vec<Remark>,
    /// Largest slow-down of one beyond the limit that the noise may hide; absent where every interval excludes one.
    #[schemars(range(min = 0.0))]
    pub may_hide: Option<f64>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// `llm-perf/comparison/1`.
    pub schema: SchemaTag<Self>,
    /// Runs of the first side.
    pub base: Vec<ComparedRun>,
    /// Runs of the second side.
    pub with: Vec<ComparedRun>,
    /// What the sides do not share, the gravest first.
    pub differences: Vec<Difference>,
    /// What the uncertainty is about.
    pub replication: Replication,
    /// Chance of at least one wrong verdict in a table whose rows did not change.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub significance: f64,
    /// Inputs both sides have, over which stages are compared; absent when the runs name no inputs.
    pub common_inputs: Option<u64>,
    /// Latencies of requests to a server, such as `ttft: p99`.
    #[serde(default)]
    pub requests: Vec<Change>,
    /// Where the average request to a server spends its time, and as `load` what the whole load takes for a token of output; the largest change first.
    #[serde(default)]
    pub request_parts: Vec<Change>,
    /// Stages, parents before children.
    pub stages: Vec<Change>,
    /// Wall and processor time of commands.
    #[serde(default)]
    pub commands: Vec<Change>,
    /// Memory; `change` is a share of the first side's bytes, and `slower` means more of it.
    #[serde(default)]
    pub memory: Vec<Change>,
    /// Steps of traces, by kind.
    #[serde(default)]
    pub steps: Vec<Change>,
    /// Parts of each device's time, the largest change first.
    #[serde(default)]
    pub device_time: Vec<Change>,
    /// Operators, the largest change in time first.
    pub operators: Vec<Change>,
    /// Kernels, the largest change in time first.
    pub kernels: Vec<Change>,
    /// Modules, the largest change in time first.
    pub modules: Vec<Change>,
    /// Forecasts of stages, where both sides have them.
    #[serde(default)]
    pub forecasts: Vec<ForecastChange>,
    /// The gate; absent without `--fail-over`.
    pub gate: Option<Gate>,
    /// What a reader must know to read the numbers right.
    pub notes: Vec<Remark>,
}
