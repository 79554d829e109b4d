//! Kernels of a deep run with their counters.

use crate::{Flops, KernelReport, SampledKernel};

/// Kernels and counters.
#[derive(Clone, Debug)]
pub struct CountersView<'a> {
    /// The document.
    pub report: &'a KernelReport,
    /// Sampled kernels.
    pub sampled: Vec<SampledKernelView<'a>>,
    /// The sampled kernels that take longest, longest first.
    pub bottlenecks: Vec<&'a SampledKernel>,
}

/// A sampled kernel.
#[derive(Clone, Copy, Debug)]
pub struct SampledKernelView<'a> {
    /// The kernel.
    pub kernel: &'a SampledKernel,
    /// FLOPs counted on tensor cores and vector units.
    pub flops: Option<Flops>,
    /// Whether its launches differ in time.
    pub time_varies: bool,
    /// Whether its launches differ in device memory traffic.
    pub bytes_vary: bool,
}
