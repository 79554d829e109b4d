//! A command of the user's as it was measured from outside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, Nanos, Statistics};

/// What was run, and every time it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandFacts {
    /// As one would type it.
    pub command: String,
    /// Every run, in order.
    pub runs: Vec<CommandRun>,
    /// Milliseconds of a run, warm-up left out; absent where no run ended well.
    pub wall_ms: Option<Statistics>,
}

/// One run of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// Whether it warmed up and is left out of the aggregates.
    pub warmup: bool,
    /// From start to end.
    pub wall_ns: Nanos,
    /// Processor time in programs, of the command and what it waited for.
    pub user_ns: Nanos,
    /// Processor time in the system.
    pub system_ns: Nanos,
    /// Most memory one of its processes had at a time; absent where the system does not say.
    pub peak_memory_bytes: Option<Bytes>,
    /// Exit code; absent when a signal ended it.
    pub exit_code: Option<i32>,
    /// Devices while it ran; empty where none could be asked.
    pub devices: Vec<DeviceUse>,
}

/// A device while a command ran, sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// The device.
    pub device: DeviceId,
    /// Samples taken.
    pub samples: u64,
    /// Mean share of time in which a kernel ran, as its driver counts it.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub utilisation_mean: Option<f64>,
    /// The largest such share.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub utilisation_max: Option<f64>,
    /// Most memory in use on the whole device, other programs included.
    pub memory_max_bytes: Option<Bytes>,
    /// Mean power.
    #[schemars(range(min = 0.0))]
    pub power_mean_watts: Option<f64>,
}
