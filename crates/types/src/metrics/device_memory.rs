//! Memory of a device over a trace, as the framework's allocator reports it.

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, JsonSchema, Nanos};

/// The memory of one device. Absent figures are ones the trace does not record.
///
/// Holds: no peak of a step, and no point of the timeline, is above the peak of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceMemory {
    /// The device.
    pub device: DeviceId,
    /// Its name in the allocator's events, where that is no device of the recorded kernels: processes number the devices that they
    /// see, and some profilers those of the machine. The name above is then that of the kernels' device, if there is one of each, and
    /// otherwise the same.
    pub in_process: Option<DeviceId>,
    /// Rank of the process, where several were recorded.
    pub rank: Option<u32>,
    /// Allocations recorded.
    pub allocations: u64,
    /// Bytes in tensors before the first recorded event: weights and whatever else was there already.
    pub start_allocated_bytes: Option<Bytes>,
    /// Bytes in tensors, at most.
    pub peak_allocated_bytes: Option<Bytes>,
    /// When that was first reached, from the first recorded event on.
    pub peak_at_ns: Option<Nanos>,
    /// Bytes the framework held from the device, at most.
    pub peak_reserved_bytes: Option<Bytes>,
    /// Peak within each step, in order; empty without steps.
    pub by_step: Vec<StepMemory>,
    /// Peaks of equal stretches of the trace, in order; stretches without an event are left out.
    pub timeline: Vec<MemoryPoint>,
}

/// Memory in one step, on the host's clock: the allocator acts when work is launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepMemory {
    /// The step, as in `steps`.
    pub step: String,
    /// Bytes in tensors, at most.
    pub peak_allocated_bytes: Bytes,
    /// Bytes the framework held, at most; absent where the trace does not say.
    pub peak_reserved_bytes: Option<Bytes>,
    /// Bytes in tensors at its end less those at its start.
    pub growth_bytes: i64,
}

/// Memory in a stretch of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPoint {
    /// Start of the stretch, from the first recorded event on.
    pub at_ns: Nanos,
    /// Bytes in tensors, at most.
    pub allocated_bytes: Bytes,
    /// Bytes the framework held, at most; absent where the trace does not say.
    pub reserved_bytes: Option<Bytes>,
}
