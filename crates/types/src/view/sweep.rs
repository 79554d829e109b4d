//! A sweep over workloads and devices.

use crate::{Sweep, SweepFigures, SweepPoint};

/// A sweep and the points one would choose.
#[derive(Clone, Debug)]
pub struct SweepView<'a> {
    /// The document.
    pub sweep: &'a Sweep,
    /// Whether any point fits its device.
    pub fits: bool,
    /// Among the points that fit, the one with the highest decode throughput, and that throughput.
    pub highest_throughput: Option<(&'a SweepPoint, f64)>,
    /// Among the points that fit, the one with the lowest time to first token.
    pub lowest_ttft: Option<(&'a SweepPoint, &'a SweepFigures)>,
}
