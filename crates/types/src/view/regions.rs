//! Regions with their counters.

use crate::counter::ProfiledWork;
use crate::{Flops, Region, RegionReport};

/// A report on regions.
#[derive(Clone, Debug)]
pub struct RegionsView<'a> {
    /// The document.
    pub report: &'a RegionReport,
    /// Regions.
    pub regions: Vec<RegionView<'a>>,
    /// Whether a region lacks counters of tensor cores only.
    pub lacks_tensor_counters: bool,
}

/// A region.
#[derive(Clone, Copy, Debug)]
pub struct RegionView<'a> {
    /// The region.
    pub region: &'a Region,
    /// Share of the time of regions that lie in no other; absent where those cannot be added.
    pub top_level_share: Option<f64>,
    /// FLOPs counted on tensor cores and vector units.
    pub flops: Option<Flops>,
    /// Matrix and vector FLOPs of its module.
    pub flops_modelled: Option<Flops>,
}

/// A launch in a region, or an instance of a range.
#[derive(Clone, Debug)]
pub struct RegionLaunch<'a> {
    /// Capture it was profiled in.
    pub capture: usize,
    /// Path of the innermost region it lies in.
    pub region: &'a str,
    /// What was profiled.
    pub work: &'a ProfiledWork,
    /// Its time.
    pub time_ns: Option<f64>,
    /// The configured metrics, in their order.
    pub metrics: Vec<Option<f64>>,
}
