//! `kernels.json`: the kernels of a run, with hardware counters of those that matter and the modelled cost beside them.
//!
//! Times of the timeline are measured; what a profiler read while it replayed a kernel is counted; what the model's
//! configuration says is modelled. The three never stand in one field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::ranked;
use crate::{
    Bytes, BytesPerSecond, Device, DeviceId, Flops, FlopsPerByte, FlopsPerSecond, JsonSchema, KernelSummary, Nanos,
    Origin, QualityCounter, Remark, RunHeader, SchemaTag, Stage,
};

/// One pass of a run that starts the program several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassRecord {
    /// Its name: `baseline`, `timeline`, `counters-decode`.
    pub name: String,
    /// What ran around the program; absent for the plain program.
    pub tool: Option<String>,
    /// The process that was started; absent in older documents.
    pub process: Option<u32>,
    /// From start to end of the process, the tool's own work included.
    pub wall_ns: Nanos,
    /// Wall time of the fastest instance of each stage in this pass, where the program says.
    #[serde(default)]
    pub stage_wall_ns: BTreeMap<Stage, Nanos>,
    /// How much longer than the plain program, as a share of it; absent for the plain program itself.
    pub overhead: Option<f64>,
    /// What `overhead` compares: `stages`, or `process` where only whole processes were timed.
    pub overhead_of: Option<String>,
    /// Size of what the pass left.
    pub bytes: Bytes,
}

/// Which counters there are, and why others are not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterFacts {
    /// `counted`, or `modelled` where no counter could be read.
    pub origin: Origin,
    /// The tool that read them.
    pub tool: Option<String>,
    /// What it did with clocks: `none`, `base`.
    pub clock_control: Option<String>,
    /// What it did with caches: `all` (emptied before each pass), `none`.
    pub cache_control: Option<String>,
    /// Most launches of each kernel, grid and block that were asked for.
    pub launches_asked: Option<u64>,
    /// Metrics that were wanted and that the chip lacks.
    #[serde(default)]
    pub lacking: Vec<String>,
    /// What this mode leaves out.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Why there are none, or why some are missing.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Launches of one kernel with one grid and block in one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledKernel {
    /// Full demangled name, as the timeline has it.
    pub name: String,
    /// The name without template arguments and parameters.
    pub short_name: String,
    /// What kind of work it does.
    pub family: String,
    /// Stage it was chosen in; absent where the run has no stages.
    pub stage: Option<Stage>,
    /// Device it ran on.
    pub device: DeviceId,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Launches in the timeline.
    pub calls: u64,
    /// Time of all of them.
    pub total_ns: Nanos,
    /// Mean time.
    pub mean_ns: Nanos,
    /// Shortest.
    pub min_ns: Nanos,
    /// Longest.
    pub max_ns: Nanos,
    /// Share of the kernel time of its stage.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub stage_share: Option<f64>,
    /// What was counted; absent where no counter was read.
    pub counted: Option<CountedKernel>,
    /// What the model says of the same work; absent where the two could not be laid side by side.
    pub modelled: Option<ModelledKernel>,
}

/// Mean, least and most over the launches that were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Least.
    pub min: f64,
    /// Most.
    pub max: f64,
}

/// What a profiler counted while it replayed launches of one kernel. Shares are of the chip's peak, and means over the
/// launches weighted by time; what the chip or the preset has no counter for is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountedKernel {
    /// Launches sampled.
    pub launches: u64,
    /// Time in nanoseconds, under the tool's clocks and caches.
    pub time_ns: Option<Spread>,
    /// Bytes read from and written to device memory by one launch.
    pub dram_bytes: Option<Spread>,
    /// Bytes of device memory in a second.
    pub dram_bytes_per_second: Option<BytesPerSecond>,
    /// Share of the device memory's peak.
    pub dram_share: Option<f64>,
    /// Share of the lookups in the L2 cache that hit.
    pub l2_hit_share: Option<f64>,
    /// Share of the multiprocessors' peak.
    pub sm_share: Option<f64>,
    /// Share of the memory system's peak, caches included.
    pub memory_share: Option<f64>,
    /// Share of the time the tensor pipes worked.
    pub tensor_share: Option<f64>,
    /// Share of the warps a multiprocessor can hold that were active.
    pub occupancy_achieved: Option<f64>,
    /// The same as the launch allows.
    pub occupancy_theoretical: Option<f64>,
    /// What keeps the launch from more: `registers`, `shared memory`, `blocks`, `warps`, `barriers`.
    pub occupancy_limiter: Option<String>,
    /// Registers of a thread.
    pub registers_per_thread: Option<u32>,
    /// Shared memory of a block.
    pub shared_bytes_per_block: Option<Bytes>,
    /// How often the grid fills the device.
    pub waves: Option<f64>,
    /// Operations of the tensor pipes by one launch, a multiply-add counted as two.
    pub flops_tensor: Option<Flops>,
    /// Floating-point operations of all other pipes by one launch.
    pub flops_vector: Option<Flops>,
    /// Operations for each byte of device memory.
    pub arithmetic_intensity: Option<FlopsPerByte>,
    /// Operations in a second.
    pub flops_per_second: Option<FlopsPerSecond>,
    /// Operations in a second as a share of what the roofline allows at this intensity; absent where the device's rates
    /// are not known.
    pub roofline_share: Option<f64>,
    /// Which of the two the roofline is bound by at this intensity: `compute` or `memory`.
    pub roofline_side: Option<String>,
    /// What it comes nearest to: `compute`, `memory` (that of the device), `L2`, `L1` or `cache` where a cache is near its peak and
    /// neither of the two is, or `latency` where nothing is.
    pub bound: Option<String>,
}

/// What the model says of the work that a kernel does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelledKernel {
    /// Modules whose operations the launches were laid beside, with `*` for the number of a layer; cut after a few.
    pub operators: Vec<String>,
    /// How many modules there are in total.
    pub operator_count: u64,
    /// Matrix operations of one launch: mean over the launches that were counted, else over all.
    pub flops: Flops,
    /// Bytes one launch must move, in the same way.
    pub bytes: Bytes,
    /// Counted bytes over modelled ones; absent without counters.
    pub bytes_ratio: Option<f64>,
    /// Counted tensor operations over modelled matrix operations; absent without counters.
    pub flops_ratio: Option<f64>,
    /// How the two were laid beside each other.
    pub basis: Remark,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelReport {
    /// `llm-perf/kernels/1`.
    pub schema: SchemaTag<Self>,
    /// What was run.
    pub run: RunHeader,
    /// Devices of the run.
    pub devices: Vec<Device>,
    /// Every pass over the program, in order.
    pub passes: Vec<PassRecord>,
    /// Kernels by time; complete, one row per name, stage and device.
    #[serde(serialize_with = "ranked::serialize")]
    #[schemars(with = "Vec<ranked::Ranked<KernelSummary>>")]
    pub kernels: Vec<KernelSummary>,
    /// Which counters there are.
    pub counters: CounterFacts,
    /// Kernels that were chosen for counters, by stage and time.
    pub sampled: Vec<SampledKernel>,
    /// What was lost or is uncertain about the counters.
    pub quality: Vec<QualityCounter>,
}
