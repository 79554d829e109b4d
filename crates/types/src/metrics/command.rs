//! A command of the user's as it was measured from outside.

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, Disturbance, JsonSchema, Nanos, Statistics};

/// What was run, and every time it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandFacts {
    /// As one would type it.
    pub command: String,
    /// Every run, in order.
    pub runs: Vec<CommandRun>,
    /// Milliseconds of a run, warm-up left out; absent where no run ended well.
    pub wall_ms: Option<Statistics>,
    /// What starting it took, the median of its runs, which is in every time; absent where it was not measured.
    pub start_cost_ns: Option<Nanos>,
}

/// One run of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// Whether it warmed up and is left out of the aggregates.
    pub warmup: bool,
    /// From the moment it was asked for to its end.
    pub wall_ns: Nanos,
    /// Of that, until the new process was the command; absent where it was not measured.
    pub start_ns: Option<Nanos>,
    /// Processor time in programs, of the command and what it waited for.
    pub user_ns: Nanos,
    /// Processor time in the system.
    pub system_ns: Nanos,
    /// Most memory one of its processes had at a time; absent where the system does not say, or only what is below.
    pub peak_memory_bytes: Option<Bytes>,
    /// It had no more than this, which is what llm-perf had when it started it; absent where the figure above is known.
    pub peak_memory_at_most_bytes: Option<Bytes>,
    /// Exit code; absent when a signal ended it.
    pub exit_code: Option<i32>,
    /// Why llm-perf ended it as the user had asked, such as `--for 60s`; absent where it ended by itself or was stopped.
    pub ended_for: Option<String>,
    /// Processes that it left running and that were ended after it.
    #[serde(default)]
    pub left_running: u32,
    /// Whether its time is far from those of the other runs; it is kept.
    #[serde(default)]
    pub outlier: bool,
    /// What it got of the machine; absent where that was not measured.
    pub disturbance: Option<Disturbance>,
    /// Devices while it ran; empty where none could be asked.
    pub devices: Vec<DeviceUse>,
}

impl CommandRun {
    /// Whether it was measured and ended well: by itself, or when the user wanted it to.
    pub fn counts(&self) -> bool {
        !self.warmup && (self.exit_code == Some(0) || self.ended_for.is_some())
    }
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
    /// Lowest clock of the multiprocessors while a kernel ran.
    pub sm_clock_min_mhz: Option<u32>,
    /// Highest such clock.
    pub sm_clock_max_mhz: Option<u32>,
    /// Why clocks were held down while it ran, each reason once; idling is none.
    #[serde(default)]
    pub throttle_reasons: Vec<String>,
    /// Processes of others on a device that this run used; absent where the driver or the system does not say.
    pub other_processes: Option<u32>,
}
