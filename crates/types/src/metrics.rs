//! `metrics.json`: everything a run measured, counted or derived, in one document.
//!
//! The keys here are what other tools may rely on. Times are integer nanoseconds and their names end in `_ns`; the only
//! exceptions are `stage_ms` and `time_ms`. Unknown is `null`, never zero.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{Document, SchemaName, SchemaTag};
use crate::{
    Bytes, BytesPerSecond, Clock, CommandFacts, CostCentre, DType, Device, DeviceId, Finding, FlopCheck, Flops,
    FlopsPerSecond, InputFacts, KernelSummary, LostTime, Nanos, OperatorGroups, OperatorSummary, Origin, PeakMemory,
    ProfileSettings, QualityCounter, RankSkew, RankSummary, RegionSummary, RoutingCounts, Stage, Statistics,
    Throughput, TraceFacts, Variance,
};

/// What was run, and on what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Whole-run figures. What the source does not record is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Wall time of the measured part.
    pub wall_ns: Option<Nanos>,
    /// Time at least one kernel or copy was on the device.
    pub gpu_busy_ns: Option<Nanos>,
    /// Sum of kernel times.
    pub kernel_ns: Option<Nanos>,
    /// Kernels.
    pub kernel_count: Option<u64>,
    /// Kernels, copies and fills per decode step.
    pub launches_per_token: Option<f64>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSummary {
    /// Which.
    pub name: Stage,
    /// The stage it is nested in; its time is part of that one's.
    pub parent: Option<Stage>,
    /// Measured instances.
    pub instances: u64,
    /// Wall time of all instances.
    pub wall_ns: Option<Nanos>,
    /// Time the device was busy with work launched here.
    pub gpu_busy_ns: Option<Nanos>,
    /// Sum of kernel times launched here.
    pub kernel_ns: Option<Nanos>,
    /// Kernels launched here.
    pub kernel_count: Option<u64>,
    /// Tokens processed: prompt tokens for prefill, generated tokens for decode.
    pub tokens: Option<u64>,
    /// Model FLOPs over time and dense peak.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mfu: Option<f64>,
    /// Bytes that must move over time and peak bandwidth.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mbu: Option<f64>,
    /// How the times were obtained.
    pub origin: Origin,
    /// Least time its work needs on this device, all instances together; absent where the work or the device is not
    /// known, and for nested stages.
    #[serde(default)]
    pub speed_of_light_ns: Option<Nanos>,
    /// What it took beyond that, as far as causes are known: the sum of its rows in `lost_time`.
    #[serde(default)]
    pub lost_ns: Option<Nanos>,
}

/// One module: measured beside modelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleSummary {
    /// Path, as in the checkpoint.
    pub path: String,
    /// Class name of the published model.
    pub class: String,
    /// Stage.
    pub stage: Stage,
    /// Measured time, submodules included.
    pub measured_ns: Option<Nanos>,
    /// Measured time, submodules left out.
    #[serde(default)]
    pub exclusive_ns: Option<Nanos>,
    /// Least time the hardware allows for this work.
    pub speed_of_light_ns: Option<Nanos>,
    /// Measured minus least.
    pub lost_ns: Option<Nanos>,
    /// What the least time is bound by: `compute`, `memory` or `launch`.
    pub bound: Option<String>,
    /// Why time is lost.
    pub cause: Option<String>,
    /// What says that its work is the module's own or a submodule's, each that holds for some of it.
    #[serde(default)]
    pub placed_by: BTreeSet<PlacedBy>,
}

/// What says which module a piece of work belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacedBy {
    /// The operator that launched it.
    Operators,
    /// A range around its launch that is named after the module.
    Ranges,
    /// Such a range around the capture of its node, for work of a CUDA graph.
    Capture,
    /// Its place among the kernels of a CUDA graph, which repeat once for each layer.
    Order,
    /// Its place among the matrix kernels, which come in the order of the model's products.
    Products,
}

impl PlacedBy {
    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operators => "operators",
            Self::Ranges => "ranges",
            Self::Capture => "capture",
            Self::Order => "order",
            Self::Products => "products",
        }
    }
}

/// One timed instance of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Stage.
    pub stage: Stage,
    /// Input it ran on; absent when there is only one.
    pub input: Option<String>,
    /// Pass over the inputs.
    pub epoch: u32,
    /// Repeat of one input within an epoch.
    pub repeat: u32,
    /// Rank in a distributed run.
    pub rank: Option<u32>,
    /// Whether it warmed up and is left out of the aggregates.
    pub warmup: bool,
    /// Its time.
    pub wall_ns: Nanos,
}

/// Statistics over samples, warm-up left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Aggregates {
    /// Milliseconds per stage instance.
    #[serde(default)]
    pub stage_ms: BTreeMap<Stage, Statistics>,
}

/// What measuring cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Time without instruments.
    pub baseline_ns: Option<Nanos>,
    /// Time with them.
    pub profiled_ns: Option<Nanos>,
    /// How much longer, as a share of the baseline; negative when noise made the profiled run faster.
    pub share: Option<f64>,
    /// How much longer the slower of two runs without instruments took, as a share of the faster; absent with one.
    #[serde(default)]
    pub baseline_spread: Option<f64>,
}

/// The peaks utilisation is held against.
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
    pub flops_matrix: Flops,
    /// Bytes that must move.
    pub bytes: Bytes,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// `llm-perf/metrics/1`.
    pub schema: SchemaTag<Self>,
    /// What was run.
    pub run: RunHeader,
    /// Devices of the run.
    pub devices: Vec<Device>,
    /// Clocks of its timestamps.
    pub clocks: Vec<Clock>,
    /// Whole-run figures.
    pub totals: Totals,
    /// Stages, parents before children.
    pub stages: Vec<StageSummary>,
    /// Operators by time.
    pub operators: Vec<OperatorSummary>,
    /// Kernels by time; complete, one row per name, stage and device.
    pub kernels: Vec<KernelSummary>,
    /// NVTX regions.
    pub regions: Vec<RegionSummary>,
    /// Modules, measured beside modelled.
    pub modules: Vec<ModuleSummary>,
    /// Modules of a traced run that differ by the number of a layer or an expert alone, summed, with `*` for the number.
    #[serde(default)]
    pub module_kinds: Vec<ModuleSummary>,
    /// Conclusions.
    pub findings: Vec<Finding>,
    /// Time lost, by stage and cause, most first.
    #[serde(default)]
    pub lost_time: Vec<LostTime>,
    /// Raw samples.
    pub samples: Vec<Sample>,
    /// Statistics over them.
    pub aggregates: Aggregates,
    /// What measuring cost.
    pub overhead: Overhead,
    /// What was lost or is uncertain.
    pub quality: Vec<QualityCounter>,
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
    /// How the inputs were run; absent when the source does not say.
    #[serde(default)]
    pub settings: Option<ProfileSettings>,
    /// What the inputs were; empty when the source does not say.
    #[serde(default)]
    pub inputs: Vec<InputFacts>,
    /// Time loading the model took, before anything else here; absent when the source does not say.
    #[serde(default)]
    pub load_ns: Option<Nanos>,
    /// Rates a user of the model sees.
    #[serde(default)]
    pub throughput: Throughput,
    /// Spread of repeats and of inputs, apart.
    #[serde(default)]
    pub variance: Variance,
    /// Operators by module class and by shape.
    #[serde(default)]
    pub operator_groups: OperatorGroups,
    /// Parts of the network by time, without overlap.
    #[serde(default)]
    pub cost_centres: Vec<CostCentre>,
    /// Where mixtures of experts sent their tokens; empty for models without experts and when not recorded.
    #[serde(default)]
    pub routing: Vec<RoutingCounts>,
    /// Where an imported run was read from; absent for a run of our own.
    #[serde(default)]
    pub trace: Option<TraceFacts>,
    /// Memory the model took; absent when not measured.
    #[serde(default)]
    pub memory: Option<PeakMemory>,
    /// The analytic model held against a counter; empty when nobody asked.
    #[serde(default)]
    pub flop_checks: Vec<FlopCheck>,
    /// Ranks side by side; empty for a run of one.
    #[serde(default)]
    pub ranks: Vec<RankSummary>,
    /// How far ranks are apart, stage by stage; empty for a run of one.
    #[serde(default)]
    pub rank_skew: Vec<RankSkew>,
    /// The command that was measured; absent for a run of a model.
    #[serde(default)]
    pub command: Option<CommandFacts>,
}

impl Document for Metrics {
    const SCHEMA: SchemaName = SchemaName::new("metrics", 1);
}
