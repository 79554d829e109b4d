//! `plan.json` of a deep run: what was asked for, so that a run that was stopped can go on as it started.

use serde::{Deserialize, Serialize};

use crate::{Bytes, JsonSchema, SchemaTag, Stage};

/// One pass, as it is planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedPass {
    /// Its name, which is also that of the step in the manifest.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// The command line, as far as it is known before the passes before it have run.
    pub command: Option<String>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeepPlan {
    /// `llm-perf/deep-plan/1`.
    pub schema: SchemaTag<Self>,
    /// The arguments of the command line behind `deep`, by which a run goes on.
    pub arguments: Vec<String>,
    /// Folder they were typed in.
    pub folder: String,
    /// The program and its arguments.
    pub target: Vec<String>,
    /// `deep` or `light`.
    pub mode: String,
    /// What records the timeline: `nsys` or `inject`.
    pub collector: String,
    /// Stages whose kernels are looked at.
    pub stages: Vec<Stage>,
    /// Kernels of each stage.
    pub top_kernels: u32,
    /// Most a trace may take on disk.
    pub largest_trace: Bytes,
    /// The passes, in order.
    pub passes: Vec<PlannedPass>,
    /// What the mode or the machine leaves out.
    pub left_out: Vec<String>,
}
