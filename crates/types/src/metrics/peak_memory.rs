//! Memory a model took, at most.

use serde::{Deserialize, Serialize};

use crate::{Bytes, JsonSchema};

/// What is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeakMemory {
    /// Parameters.
    pub parameter_bytes: Option<Bytes>,
    /// Tensors on the device, at most, over the measured passes.
    pub allocated_bytes: Option<Bytes>,
    /// What the framework took from the device for them, at most.
    pub reserved_bytes: Option<Bytes>,
}
