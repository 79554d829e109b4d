//! What a page is made of beside the metrics of its run.

use types::{AnalyticReport, KernelReport, RegionReport};

/// Documents of a run beside its metrics, each where there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Documents<'a> {
    /// The analytic model of its first input.
    pub modelled: Option<&'a AnalyticReport>,
    /// Kernels with their counters.
    pub kernels: Option<&'a KernelReport>,
    /// Regions with their counters.
    pub regions: Option<&'a RegionReport>,
}
