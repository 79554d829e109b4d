//! `env.json`: the machine and the software of a run. Unknown is `null`; no secrets, no environment variables but a few.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, JsonSchema, SchemaTag};

/// One GPU as the driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuInfo {
    /// Ordinal in the driver's order.
    pub index: u32,
    /// Name the driver reports.
    pub name: Option<String>,
    /// Permanent identifier.
    pub uuid: Option<String>,
    /// Catalogue entry with its peaks; absent when the catalogue has none.
    pub hardware: Option<String>,
    /// Such as `9.0`.
    pub compute_capability: Option<String>,
    /// Chip generation as the driver names it.
    pub architecture: Option<String>,
    /// All memory.
    pub memory_bytes: Option<Bytes>,
    /// Memory in use when asked.
    pub memory_used_bytes: Option<Bytes>,
    /// Multiprocessor clock when asked, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Highest multiprocessor clock, MHz.
    pub sm_clock_max_mhz: Option<u32>,
    /// Memory clock when asked, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Highest memory clock, MHz.
    pub memory_clock_max_mhz: Option<u32>,
    /// Power limit in force, watts.
    pub power_limit_watts: Option<f64>,
    /// Power drawn when asked, watts.
    pub power_draw_watts: Option<f64>,
    /// Temperature when asked, degrees Celsius.
    pub temperature_celsius: Option<u32>,
    /// Reasons the clock was held down when asked; empty when none.
    pub throttle_reasons: Option<Vec<String>>,
    /// Whether the device is split into instances.
    pub mig_enabled: Option<bool>,
    /// Whether memory errors are corrected.
    pub ecc_enabled: Option<bool>,
    /// Whether the driver stays loaded with no client.
    pub persistence_mode: Option<bool>,
    /// Compute mode, such as `default` or `exclusive_process`.
    pub compute_mode: Option<String>,
    /// PCI bus address.
    pub pci_bus_id: Option<String>,
    /// PCI Express generation of the link now.
    pub pcie_generation: Option<u32>,
    /// PCI Express lanes of the link now.
    pub pcie_width: Option<u32>,
    /// CUDA cores, all multiprocessors together.
    pub cuda_cores: Option<u32>,
    /// Firmware version.
    pub vbios: Option<String>,
}

/// A program or library that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolVersion {
    /// Its version; absent when it is there but would not say.
    pub version: Option<String>,
    /// Where it was found.
    pub path: Option<String>,
}

/// NVIDIA software. `null` means not found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolVersions {
    /// Kernel driver.
    pub driver: Option<String>,
    /// Newest CUDA version the driver supports.
    pub cuda_driver: Option<String>,
    /// NVML library.
    pub nvml: Option<String>,
    /// CUDA toolkit.
    pub cuda_toolkit: Option<ToolVersion>,
    /// CUPTI library.
    pub cupti: Option<ToolVersion>,
    /// Nsight Systems.
    pub nsys: Option<ToolVersion>,
    /// Nsight Compute.
    pub ncu: Option<ToolVersion>,
}

/// Python and the frameworks it can import. `null` means not found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrameworkVersions {
    /// The interpreter.
    pub python: Option<ToolVersion>,
    /// PyTorch.
    pub torch: Option<String>,
    /// CUDA version PyTorch was built for.
    pub torch_cuda: Option<String>,
    /// Hugging Face transformers.
    pub transformers: Option<String>,
}

/// The host processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuInfo {
    /// Model name.
    pub model: Option<String>,
    /// Instruction set, such as `x86_64`.
    pub architecture: String,
    /// Cores without hyper-threads.
    pub cores_physical: Option<u32>,
    /// Hardware threads.
    pub threads: Option<u32>,
    /// Threads this process may use, by affinity and control group.
    pub threads_available: Option<u32>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Clock when asked, MHz.
    pub clock_mhz: Option<u32>,
    /// Highest clock, MHz.
    pub clock_max_mhz: Option<u32>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Vector extensions that matter for matrix products.
    pub features: Vec<String>,
}

/// Host memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryInfo {
    /// All of it.
    pub total_bytes: Option<Bytes>,
    /// What could be had when asked.
    pub available_bytes: Option<Bytes>,
    /// Limit of the control group or of the address space (`ulimit -v`), the smaller one; absent when there is none.
    pub limit_bytes: Option<Bytes>,
}

/// The operating system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperatingSystem {
    /// Distribution and version.
    pub name: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// C library and version.
    pub libc: Option<String>,
    /// Container runtime the process is in; absent when none was recognised.
    pub container: Option<String>,
    /// Hypervisor the machine runs under; absent when none was recognised.
    pub virtualisation: Option<String>,
}

/// The source tree the command was started in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitInfo {
    /// Commit.
    pub revision: String,
    /// Whether tracked files differ from it.
    pub dirty: Option<bool>,
}

/// What most readers look for, each also found in its place below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedVersions {
    /// Name of the first GPU.
    pub gpu: Option<String>,
    /// CUDA version of PyTorch; absent without PyTorch.
    pub cuda: Option<String>,
    /// Newest CUDA version that the driver supports.
    pub cuda_driver: Option<String>,
    /// Version of PyTorch.
    pub torch: Option<String>,
    /// Version of transformers.
    pub transformers: Option<String>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// `llm-perf/environment/1`.
    pub schema: SchemaTag<Self>,
    /// When it was captured, RFC 3339.
    pub captured_at: String,
    /// Version of llm-perf.
    pub tool_version: String,
    /// Features this build of llm-perf has.
    pub tool_features: Vec<String>,
    /// What most readers look for, at the top.
    #[serde(flatten)]
    pub named: NamedVersions,
    /// GPUs; empty when none is visible.
    pub gpus: Vec<GpuInfo>,
    /// NVIDIA software.
    pub tools: ToolVersions,
    /// Python and frameworks.
    pub frameworks: FrameworkVersions,
    /// The processor.
    pub cpu: CpuInfo,
    /// Host memory.
    pub memory: MemoryInfo,
    /// The operating system.
    pub operating_system: OperatingSystem,
    /// The source tree; absent outside one.
    pub git: Option<GitInfo>,
    /// Environment variables that change how work runs, from a fixed list; unset ones are left out.
    pub variables: BTreeMap<String, String>,
    /// What could not be found out, and why.
    pub notes: Vec<String>,
}

impl Environment {
    /// The same with what most readers look for at the top.
    #[must_use]
    pub fn with_names(self) -> Self {
        let named = NamedVersions {
            gpu: self.gpus.first().and_then(|gpu| gpu.name.clone()),
            cuda: self.frameworks.torch_cuda.clone(),
            cuda_driver: self.tools.cuda_driver.clone(),
            torch: self.frameworks.torch.clone(),
            transformers: self.frameworks.transformers.clone(),
        };
        Self { named, ..self }
    }
}
