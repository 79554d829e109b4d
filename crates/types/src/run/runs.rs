//! What `llm-perf runs` says: the runs beneath a folder, and one of them in detail.

use serde::{Deserialize, Serialize};

use crate::{Artifact, Bytes, JsonSchema, SchemaTag, StepRecord};

crate::named! {
    /// How a run stands, as a reader finds it. A manifest can only say `running`; whether anybody still runs it is found out
    /// when it is read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum RunState {
        /// Everything asked for is there.
        Complete = "complete",
        /// Ended, but something asked for is missing.
        Partial = "partial",
        /// Ended without a result.
        Failed = "failed",
        /// Begun, not ended, and its process is alive (or cannot be seen from here; `reasons` then says so).
        Running = "running",
        /// Begun, not ended, and its process is gone.
        Interrupted = "interrupted",
        /// Its manifest is missing or cannot be read.
        Unreadable = "unreadable",
    }
}

/// One run in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunListing {
    /// Name of its folder, which is how it is asked for.
    pub id: String,
    /// Its folder.
    pub path: String,
    /// How it stands.
    pub state: RunState,
    /// Why it is partial, failed, interrupted or unreadable.
    pub reasons: Vec<String>,
    /// Verb that made it; absent when the manifest cannot be read, as everything below.
    pub verb: Option<String>,
    /// Model it is about.
    pub model: Option<String>,
    /// Device it is about.
    pub device: Option<String>,
    /// Begun, RFC 3339.
    pub started_at: Option<String>,
    /// Ended, RFC 3339; absent also when it has not ended.
    pub ended_at: Option<String>,
    /// Number of files the manifest lists.
    pub file_count: Option<u64>,
    /// Size of those files together.
    pub bytes: Option<Bytes>,
}

/// The runs beneath a folder, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// `llm-perf/runs/1`.
    pub schema: SchemaTag<Self>,
    /// Folder that was searched.
    pub root: String,
    /// The runs.
    pub runs: Vec<RunListing>,
}

/// One run in detail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunDetail {
    /// `llm-perf/run/1`.
    pub schema: SchemaTag<Self>,
    /// What the list says of it.
    pub run: RunListing,
    /// Command line that made it.
    pub command: Vec<String>,
    /// Version of llm-perf that made it.
    pub tool_version: String,
    /// Steps that have ended, in order.
    pub steps: Vec<StepRecord>,
    /// Its files.
    pub files: Vec<Artifact>,
    /// Outcome of comparing the files with the manifest; absent when that was not asked for.
    pub verification: Option<Verification>,
}

/// How the files of a run compare with its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Number of files compared.
    pub checked: u64,
    /// Files that are not as listed.
    pub problems: Vec<FileProblem>,
    /// Files that are there but not listed; what a step that never ended left behind.
    pub unlisted: Vec<String>,
}

/// One file that is not as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileProblem {
    /// Path as listed.
    pub path: String,
    /// What is wrong.
    pub kind: FileProblemKind,
    /// What was expected and what was found.
    pub detail: String,
}

crate::named! {
    /// In which way a file is not as listed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum FileProblemKind {
        /// Not there.
        Missing = "missing",
        /// There, with another content.
        Changed = "changed",
        /// There, but cannot be read.
        Unreadable = "unreadable",
        /// Not looked at, because the listed path leaves the run folder or is no plain file.
        Refused = "refused",
    }
}

impl Verification {
    /// Whether every listed file is as listed.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}
