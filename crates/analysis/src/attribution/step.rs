//! One decode step.

use types::Nanos;

use crate::time::Span;

/// One decode step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepInstance {
    /// Its number within its run of decode, from zero.
    pub number: u32,
    /// The run of decode it belongs to, in the list of stages.
    pub instance: Option<u32>,
    /// On the host.
    pub host: Span,
    /// On the device.
    pub device: Option<Span>,
    /// Kernels, copies and memsets.
    pub work: u64,
    /// Kernels among them.
    pub kernels: u64,
    /// Time of all its work, summed.
    pub work_ns: Nanos,
}

impl StepInstance {
    /// A step that no work is known of yet.
    pub(super) fn new(number: u32, instance: Option<u32>, host: Span) -> Self {
        Self { number, instance, host, device: None, work: 0, kernels: 0, work_ns: Nanos::ZERO }
    }
}
