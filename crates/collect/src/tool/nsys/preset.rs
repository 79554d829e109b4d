//! The configuration group `profiling/nsys`: every key of it becomes an option of the command line, or is refused.

use serde::{Deserialize, Serialize};

/// `pipeline.nsys`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Whether the tool is used: always, never, or where our own collector sees no kernel.
    pub enabled: Option<bool>,
    /// What is typed.
    pub nsys_cli: Options,
    /// What is made of the report.
    pub export: Export,
}

/// `pipeline.nsys.nsys_cli`. The comments beside the keys in `conf/profiling/nsys` say what each means.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `--trace`.
    pub trace: Vec<String>,
    /// `--sample`.
    pub sample: Sampling,
    /// `--cpuctxsw`.
    pub cpuctxsw: Sampling,
    /// `--capture-range`.
    pub capture_range: CaptureRange,
    /// `--capture-range-end`.
    pub capture_range_end: String,
    /// `--nvtx-capture`.
    pub nvtx_capture: Option<String>,
    /// `--cuda-graph-trace`.
    pub cuda_graph_trace: GraphTrace,
    /// `--cuda-memory-usage`.
    pub cuda_memory_usage: bool,
    /// `--gpu-metrics-devices`.
    pub gpu_metrics_devices: String,
    /// Passed on as they are.
    pub extra: Vec<String>,
}

/// `pipeline.nsys.export`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// Tables of `nsys stats`.
    pub stats: Vec<String>,
}

/// Whose processors are sampled, or whose context switches are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Nobody's.
    #[default]
    None,
    /// Those of the program and what it starts.
    ProcessTree,
    /// Everybody's.
    SystemWide,
}

/// What starts the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CaptureRange {
    /// The start of the program.
    #[default]
    #[serde(rename = "none")]
    None,
    /// An NVTX range; only its first instance is recorded.
    #[serde(rename = "nvtx")]
    Nvtx,
    /// `cudaProfilerStart`.
    #[serde(rename = "cudaProfilerApi")]
    CudaProfilerApi,
}

/// How work inside CUDA graphs is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphTrace {
    /// A graph as a whole.
    #[default]
    Graph,
    /// Each kernel of it, which costs more.
    Node,
}
