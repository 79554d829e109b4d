//! Kernels of a deep run: which take longest, and which differ from launch to launch.

use types::view::{CountersView, SampledKernelView};
use types::{KernelReport, SampledKernel, Spread};

/// Bottlenecks named.
const BOTTLENECKS: usize = 3;
/// Difference between launches, relative to their mean, from which they are said to vary.
const VARIES: f64 = 0.01;

/// The view of kernels and their counters.
pub fn counters(report: &KernelReport) -> CountersView<'_> {
    let mut bottlenecks: Vec<_> = report.sampled.iter().collect();
    bottlenecks.sort_by_key(|kernel| std::cmp::Reverse(kernel.total_ns));
    bottlenecks.truncate(BOTTLENECKS);
    CountersView { report, sampled: report.sampled.iter().map(view).collect(), bottlenecks }
}

fn view(kernel: &SampledKernel) -> SampledKernelView<'_> {
    let counted = kernel.counted.as_ref();
    let varies =
        |spread: Option<Spread>| spread.is_some_and(|Spread { mean, min, max }| max - min > mean.abs() * VARIES);
    SampledKernelView {
        kernel,
        flops: counted.and_then(|counted| match (counted.flops_tensor, counted.flops_vector) {
            (Some(tensor), Some(vector)) => Some(tensor + vector),
            (tensor, vector) => tensor.or(vector),
        }),
        time_varies: varies(counted.and_then(|counted| counted.time_ns)),
        bytes_vary: varies(counted.and_then(|counted| counted.dram_bytes)),
    }
}
