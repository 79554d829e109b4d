//! The configuration group `profiling/nsys`: every key of it becomes an option of the command line, or is refused.

use std::path::PathBuf;

use serde::Deserialize;

use super::capture::{Capture, CaptureRange, GraphTrace, Sampling};

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
    /// Whether the report becomes a database, which all that follows reads.
    pub sqlite: bool,
    /// Tables of `nsys stats`.
    pub stats: Vec<String>,
}

impl Options {
    /// A capture with these options that leaves its report at `report`.
    pub fn capture(&self, report: PathBuf) -> Capture {
        // Named one by one, so that a key added later cannot be forgotten here.
        let Self {
            trace,
            sample,
            cpuctxsw,
            capture_range,
            capture_range_end,
            nvtx_capture,
            cuda_graph_trace,
            cuda_memory_usage,
            gpu_metrics_devices,
            extra,
        } = self.clone();
        Capture {
            report,
            trace,
            sample,
            context_switches: cpuctxsw,
            capture_range,
            capture_range_end,
            nvtx_capture,
            graphs: cuda_graph_trace,
            memory_usage: cuda_memory_usage,
            metrics_devices: Some(gpu_metrics_devices).filter(|devices| devices != "none"),
            extra,
        }
    }
}
