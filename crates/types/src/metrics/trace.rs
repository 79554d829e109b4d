//! What an imported run adds to its metrics: where it was read from, and how much of it could be placed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, InputDigest, JsonSchema, Nanos, Remark, RunKind, Stage, Statistics, Workload};

/// A file that was imported. It is not copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceSource {
    /// As it was given; `-` is standard input.
    pub path: String,
    /// Kind of file, such as `torch-profiler`.
    pub format: String,
    /// The tool that wrote it, as far as the file says.
    pub tool: Option<String>,
    /// Size, as stored.
    pub bytes: Bytes,
    /// BLAKE3 of the content as stored, in lowercase hexadecimal.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub blake3: Option<String>,
    /// SHA-256 of it, which runs had before they had BLAKE3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: Option<String>,
    /// Rank in a distributed run.
    pub rank: Option<u32>,
}

impl TraceSource {
    /// Its digest; absent where a document has none.
    pub fn digest(&self) -> Option<InputDigest> {
        InputDigest::of(self.blake3.as_ref(), self.sha256.as_ref())
    }
}

/// How stages were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageBasis {
    /// Whether they follow from what the trace shows; otherwise ranges in the trace mark them.
    pub inferred: bool,
    /// From what, or why there is none.
    pub basis: Remark,
}

/// How much of the device's time could be placed. Shares are of `device_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkCoverage {
    /// Time of all kernels, copies and fills, overlap counted twice; without what was set aside.
    pub device_ns: Nanos,
    /// In a stage that ranges mark.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub stage_share: Option<f64>,
    /// In a stage that was inferred.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub inferred_share: Option<f64>,
    /// In no stage.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub unattributed_share: Option<f64>,
    /// Inside a framework operator.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub operator_share: Option<f64>,
    /// Launched by CUDA graphs, whose kernels have no operator each; absent where no graph was launched.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub graph_share: Option<f64>,
}

/// What ranges around loading and warming up hold: it is in no other figure of the run but those of regions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// Time on the host.
    pub wall_ns: Nanos,
    /// Kernels, copies and fills launched.
    pub launches: u64,
    /// Their time on the device.
    pub device_ns: Nanos,
}

/// The workload a trace shows, and what of it rests on recorded shapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracedWorkload {
    /// The workload; absent when it could not be told.
    pub workload: Option<Workload>,
    /// Where each part comes from, in words.
    pub evidence: Vec<Remark>,
    /// Why it could not be told.
    pub missing: Vec<Remark>,
}

/// All copies or fills of one kind in one stage on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopySummary {
    /// Name in the trace.
    pub name: String,
    /// Stage that launched it; absent when not attributed.
    pub stage: Option<Stage>,
    /// Device it ran on.
    pub device: DeviceId,
    /// How many.
    pub calls: u64,
    /// Time of all.
    pub total_ns: Nanos,
    /// Bytes of all; absent where the trace does not say for each.
    pub bytes: Option<Bytes>,
}

/// Hardware counters of all measured launches of one kernel, or of one range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterSummary {
    /// Full demangled name of the kernel, or of the range.
    pub name: String,
    /// The name without template arguments and parameters.
    pub short_name: String,
    /// Device it ran on; absent where the source does not say.
    pub device: Option<DeviceId>,
    /// Launches measured.
    pub calls: u64,
    /// Time of all, as the counters have it: under the tool's clocks and caches, not those of a plain run.
    pub total_ns: Option<Nanos>,
    /// Bytes read from and written to device memory, all launches together.
    pub dram_bytes: Option<Bytes>,
    /// Share of the multiprocessors' peak that was used, mean over launches weighted by time.
    #[schemars(range(min = 0.0))]
    pub compute_share: Option<f64>,
    /// Share of the memory system's peak that was used, mean over launches weighted by time.
    #[schemars(range(min = 0.0))]
    pub memory_share: Option<f64>,
    /// Share of the warps a multiprocessor can hold that were active, mean over launches weighted by time.
    #[schemars(range(min = 0.0))]
    pub occupancy: Option<f64>,
}

/// How long decode steps take, how they spread, and whether they grow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepFacts {
    /// Half of the steps take no longer.
    pub p50_ns: Nanos,
    /// 95% of the steps take no longer.
    pub p95_ns: Nanos,
    /// 99% of the steps take no longer.
    pub p99_ns: Nanos,
    /// Median of the later half beyond that of the earlier half, as a share of the median; absent below four steps.
    pub drift: Option<f64>,
    /// Kernels per step.
    pub kernels_per_token: f64,
    /// Time of device work per step.
    pub work_per_token_ns: Nanos,
}

/// How much work lay waiting for the device. A device whose queue is empty waits for its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFacts {
    /// Mean over time.
    pub mean: f64,
    /// Most at one moment.
    pub max: u64,
    /// Share of time in which nothing waited.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub empty_share: f64,
}

/// The pass that was recorded, where the times of the stages come from other passes: what of the device stands beside
/// `stages` and `totals`, and what was lost, is of this pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracedPass {
    /// Input it ran on.
    pub input: Option<String>,
    /// From the first thing recorded to the last.
    pub wall_ns: Option<Nanos>,
    /// All instances of each stage.
    pub stages: BTreeMap<Stage, Nanos>,
}

/// Everything only a run with a profiled pass has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFacts {
    /// The files, in the order given.
    pub sources: Vec<TraceSource>,
    /// What kind of run it is, and what shows it; absent where the files have no timeline.
    pub kind: Option<RunKind>,
    /// How stages were found; absent where the files have no timeline.
    pub stages: Option<StageBasis>,
    /// How much of the device's time was placed; absent where the files have no timeline.
    pub coverage: Option<WorkCoverage>,
    /// Loading and warming up; absent where no range says so.
    pub set_aside: Option<SetAside>,
    /// The workload; absent where nobody asked for utilisation.
    pub workload: Option<TracedWorkload>,
    /// Host time of decode steps, in milliseconds; absent where the trace does not mark them.
    pub step_ms: Option<Statistics>,
    /// Decode step by step: percentiles, drift, launches; absent where steps are not known or several timelines have them.
    pub steps: Option<StepFacts>,
    /// Work launched and not started, from the first device work to the last; absent with several timelines or devices.
    pub queue_depth: Option<QueueFacts>,
    /// Copies and fills by time.
    pub copies: Vec<CopySummary>,
    /// Hardware counters by time; empty without a source that has them.
    pub counters: Vec<CounterSummary>,
    /// The profiled pass; absent where the times of the stages are its own.
    pub traced_pass: Option<TracedPass>,
    /// Whether this run recorded the files itself, on the machine it describes.
    #[serde(default)]
    pub recorded_here: bool,
}
