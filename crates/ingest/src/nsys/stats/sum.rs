//! What the tables of `nsys stats` say.

use types::Nanos;

use super::header::StatsKind;

/// A report of `nsys stats`, known by its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsTable {
    /// Which report.
    pub kind: StatsKind,
    /// Rows that could be read.
    pub rows: u64,
    /// Those rows, where the report is `cuda_gpu_kern_sum`. No other report says more than the database it was made from.
    pub kernels: Vec<KernelSum>,
}

/// All launches of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSum {
    /// The kernel.
    pub name: String,
    /// Time of all launches together.
    pub total: Nanos,
    /// How many.
    pub count: u64,
    /// Shortest.
    pub min: Option<Nanos>,
    /// Longest.
    pub max: Option<Nanos>,
}
