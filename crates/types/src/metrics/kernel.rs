//! GPU kernels: how they are launched, and all launches of one kernel in one stage.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, JsonSchema, Nanos, Stage};

/// Grid, block and resources of one launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LaunchShape {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Registers a thread uses.
    pub registers: Option<u32>,
    /// Shared memory of a block, fixed at compile time.
    pub shared_static_bytes: Option<u32>,
    /// Shared memory of a block, asked for at launch.
    pub shared_dynamic_bytes: Option<u32>,
    /// Shared memory of a block, fixed and asked for together, where the source does not tell the two apart.
    pub shared_total_bytes: Option<u32>,
}

/// All launches of one kernel in one stage on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSummary {
    /// Full demangled name.
    pub name: String,
    /// The name without template arguments and parameters.
    pub short_name: String,
    /// What kind of work it does, such as `gemm`; `other` when its name does not tell.
    pub family: String,
    /// Stage that launched it; absent when not attributed.
    pub stage: Option<Stage>,
    /// Device it ran on.
    pub device: DeviceId,
    /// Launches.
    pub calls: u64,
    /// Time of all launches.
    pub total_ns: Nanos,
    /// Shortest launch.
    pub min_ns: Nanos,
    /// Longest launch.
    pub max_ns: Nanos,
    /// What all launches would add up to, where launches of CUDA graphs were sampled: only some were recorded kernel by kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<KernelEstimate>,
}

/// A kernel's launches and time, scaled from the launches of CUDA graphs that were recorded kernel by kernel to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelEstimate {
    /// Launches.
    pub calls: u64,
    /// Time of all launches.
    pub total_ns: Nanos,
    /// Lower end of its 95% interval; absent where the recorded launches of a graph are all in one block.
    pub low_ns: Option<Nanos>,
    /// Upper end.
    pub high_ns: Option<Nanos>,
}
