//! What is assumed of an operation that nobody measured: a share of the peaks, within a factor of two either way.

use types::{Hardware, LaunchCost};

use crate::estimator::{Basis, Estimate};
use crate::{ForecastError, OpShape};

/// Share of the matrix peak.
const COMPUTE: f64 = 0.7;

/// Share of the bandwidth.
const MEMORY: f64 = 0.8;

/// Time of the smallest kernel on a GPU, microseconds.
const FLOOR_US: f64 = 2.5;

/// How far either way an assumed time may be off.
const FACTOR: f64 = 2.0;

/// Launches where they were not measured. On the host of an H200, decoders in eager PyTorch took 14 to 25 microseconds for
/// a kernel, most of it Python around the launch.
pub(crate) const LAUNCH: LaunchCost = LaunchCost { eager_us: 16.0, graph_us: 1.2, synchronise_us: 5.0, plan_us: None };

/// The assumed time of `shape`.
pub(crate) fn assume(shape: &OpShape, hardware: &Hardware) -> Result<Estimate, ForecastError> {
    let work = shape.work(hardware)?;
    let is_gpu = !hardware.nvml_names.is_empty() || hardware.compute_capability.is_some();
    let floor = if is_gpu { FLOOR_US } else { 0.5 };
    let time = floor + (work.compute_us / COMPUTE).max(work.memory_us / MEMORY);
    Ok(Estimate { microseconds: time, low: time / FACTOR, high: time * FACTOR, basis: Basis::Assumed })
}
