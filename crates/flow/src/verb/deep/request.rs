//! What a deep run is asked for.

use std::time::Duration;

use collect::tool::{ncu, nsys};
use serde::Deserialize;
use types::{Bytes, Collector, Stage, UserError};

use crate::pipeline::recorded::provenance::FedInputs;
use crate::pipeline::subject::NamedSubject;
use crate::pipeline::target::Target;

types::named! {
    /// How much is collected.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Mode {
        /// All counters of the preset, several launches of each kernel.
        Deep = "deep",
        /// Few counters and one launch of each kernel; the timeline without calls of the operating system.
        Light = "light",
    }
}

impl Mode {
    /// What it leaves out, in words.
    pub(super) fn left_out(self) -> Vec<String> {
        match self {
            Self::Deep => Vec::new(),
            Self::Light => [
                "light: one launch of each kernel is profiled, so the spread is unknown",
                "light: L2 hits, occupancy and tensor operations are not counted",
                "light: operating system calls are not in the timeline",
            ]
            .map(str::to_owned)
            .to_vec(),
        }
    }
}

/// What to profile, and how.
#[derive(Debug)]
pub struct DeepRequest {
    /// What is launched.
    pub target: Target,
    /// What the model is fed; absent where a command is launched.
    pub inputs: Option<FedInputs>,
    /// How much is collected.
    pub mode: Mode,
    /// What records the timeline.
    pub collector: Collector,
    /// Whether there is a pass under torch.profiler, for the operators.
    pub operators: bool,
    /// Rows of each table of operators, where the user says how many.
    pub operator_rows: Option<u32>,
    /// Stages whose kernels are looked at.
    pub stages: Vec<Stage>,
    /// Kernels of each stage.
    pub top_kernels: u32,
    /// Options of Nsight Systems.
    pub nsys: nsys::Preset,
    /// Options of Nsight Compute.
    pub ncu: ncu::Preset,
    /// Most a trace may take on disk.
    pub largest_trace: Bytes,
    /// Longest a pass may take.
    pub pass_limit: Duration,
    /// Model, workload and device, as far as they are known.
    pub subject: NamedSubject,
    /// Where the weights come from, where that is known.
    pub weights: Option<String>,
    /// What was typed behind the program's name.
    pub arguments: Vec<String>,
}

/// A key of the configuration that says something wrong.
pub(super) fn wrong_key(key: &str, reason: &dyn std::fmt::Display) -> UserError {
    UserError::usage(format!("{key}: {reason}")).hint("show the resolved configuration with `llm-perf config`")
}
