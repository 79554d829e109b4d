//! What `llm-perf doctor` says: whether profiling works here, and what to do where it does not.

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, SchemaTag};

/// Outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Works.
    Ok,
    /// Works, but results will suffer.
    Warning,
    /// Not there.
    Missing,
    /// There, but too old.
    TooOld,
    /// There, but this user may not use it.
    NotPermitted,
    /// Not asked, because something it needs is not there.
    Skipped,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable name, such as `ncu`.
    pub id: String,
    /// What it is about, in a few words.
    pub title: String,
    /// Outcome.
    pub verdict: Verdict,
    /// Whether the default command needs it.
    pub required: bool,
    /// What was found.
    pub found: String,
    /// What to do next; absent when nothing needs doing.
    pub next_step: Option<String>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// `llm-perf/doctor/1`.
    pub schema: SchemaTag<Self>,
    /// Version of llm-perf.
    pub tool_version: String,
    /// Whether the default command can run here.
    pub ready: bool,
    /// The checks, in the order they were made.
    pub checks: Vec<Check>,
}
