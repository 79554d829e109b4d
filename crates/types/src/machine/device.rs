//! Devices of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, JsonSchema};

/// A device by its place in the run: `cpu`, `cuda:N`, or `gpu:N` where it is no CUDA device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DeviceId(String);

impl DeviceId {
    /// The host processor.
    pub fn cpu() -> Self {
        Self("cpu".to_owned())
    }

    /// The CUDA device with that ordinal.
    pub fn cuda(ordinal: u32) -> Self {
        Self(format!("cuda:{ordinal}"))
    }

    /// A GPU of another vendor, by the number its driver gives it.
    pub fn gpu(ordinal: u32) -> Self {
        Self(format!("gpu:{ordinal}"))
    }

    /// A CUDA device of a source that does not number them: `cuda`.
    pub fn unnumbered() -> Self {
        Self("cuda".to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One device of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its place in the run.
    pub id: DeviceId,
    /// The name the driver reports.
    pub name: String,
    /// The driver's permanent identifier.
    pub uuid: Option<String>,
    /// The catalogue entry its peaks come from; absent where the catalogue has none.
    pub hardware: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<Bytes>,
    /// Streaming multiprocessors, or compute units, where the source says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiprocessors: Option<u32>,
}

impl Device {
    /// One that nothing else is known of.
    pub fn new(id: DeviceId, name: String) -> Self {
        Self { id, name, uuid: None, hardware: None, memory_bytes: None, multiprocessors: None }
    }
}
