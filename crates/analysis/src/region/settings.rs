//! Which regions, kernels and metrics are asked for.

use types::Hardware;

use super::include::Include;
use super::kernels::KernelSelection;

/// What is asked of the captures.
#[derive(Clone, Copy, Debug)]
pub struct RegionSettings<'a> {
    /// Regions, with those inside; empty for all.
    pub include: &'a [Include],
    /// Regions left out, with those inside; wins over `include`.
    pub exclude: &'a [Include],
    /// Kernels of a region that count.
    pub kernels: &'a KernelSelection,
    /// Metrics.
    pub metrics: &'a [String],
    /// Sections; empty for all that were collected.
    pub sections: &'a [String],
    /// Whether regions have totals over all processes, devices and threads.
    pub aggregate: bool,
    /// The device, for its roofs.
    pub hardware: Option<&'a Hardware>,
}
