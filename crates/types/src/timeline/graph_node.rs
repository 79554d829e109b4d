//! Nodes of CUDA graphs, and the ranges inside the capture that made them.

use std::num::NonZeroU64;

use super::NameId;

/// Place of a range in [`super::Timeline::captured_ranges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapturedRangeId(pub u32);

/// A range that was opened and closed while a CUDA graph was captured. It is entered again, on the device, whenever the
/// graph is launched; the ranges around the capture are not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CapturedRange {
    /// Its name.
    pub name: NameId,
    /// NVTX domain; absent for the default domain.
    pub domain: Option<NameId>,
    /// The captured range it lies in, which stands before it in the list.
    pub parent: Option<CapturedRangeId>,
}

/// A node of a CUDA graph that was made inside a captured range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Process that made it.
    pub process: Option<u32>,
    /// Its number, unique within the process; [`super::DeviceWork::graph_node`] of the work it becomes.
    pub node: NonZeroU64,
    /// The innermost captured range around it.
    pub range: CapturedRangeId,
}
