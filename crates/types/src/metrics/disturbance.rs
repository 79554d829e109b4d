//! What other programs, or limits, took from something while it was measured.

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, Nanos};

/// What a measured program got of the machine, against what it wanted. What the system does not say is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// Processor time it got.
    pub cpu_ns: Option<Nanos>,
    /// Time its threads were ready to run and no processor was free. Of a command, that of its first thread.
    pub waited_ns: Option<Nanos>,
    /// Times a processor was taken from it while it wanted to go on.
    pub switches_involuntary: Option<u64>,
    /// Processor time of everything else, as a share of all processors.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub others_share: Option<f64>,
    /// Time the hypervisor gave to other machines, as a share of all processors.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub steal_share: Option<f64>,
    /// Share of the time in which something on the machine waited for a processor (`/proc/pressure/cpu`).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub stalled_share: Option<f64>,
    /// Time the processes of its control group were held back by its limit.
    pub throttled_ns: Option<Nanos>,
    /// Why it counts as disturbed, in words; empty where it does not.
    pub causes: Vec<String>,
}

impl Disturbance {
    /// Whether its times say more about the machine than about the program.
    pub fn is_disturbed(&self) -> bool {
        !self.causes.is_empty()
    }
}

/// One inference, by the names its samples have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InferenceDisturbance {
    /// As in `samples[].input`.
    pub input: Option<String>,
    /// As in `samples[].epoch`.
    pub epoch: u32,
    /// As in `samples[].repeat`.
    pub repeat: u32,
    /// As in `samples[].warmup`.
    pub warmup: bool,
    /// What it got.
    #[serde(flatten)]
    pub disturbance: Disturbance,
}
