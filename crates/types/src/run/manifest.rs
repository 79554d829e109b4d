//! `manifest.json`: what a run is, how it stands and which files it has left so far.

use serde::{Deserialize, Serialize};

use crate::{Bytes, JsonSchema, Redaction, SchemaTag};

/// How a run stands. Only what has happened is said: a run that was killed still says `running`, and readers find out
/// from `process` that nobody is running it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Begun, not ended.
    Running,
    /// Everything asked for is there.
    Complete,
    /// Ended, but a requested artifact or a part of an input is missing; `reasons` says which.
    Partial,
    /// Ended without a result; `reasons` says why.
    Failed,
}

/// Enough to tell whether the process of a run is still alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// When that process started, in the kernel's ticks since boot; tells a reused process id from the first one.
    pub start_ticks: Option<u64>,
    /// Identifier of the boot the process id belongs to.
    pub boot_id: Option<String>,
    /// The process id namespace, such as `pid:[4026531836]`; a process id says nothing outside its own container.
    pub pid_namespace: Option<String>,
}

/// One file of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Path relative to the run folder, with forward slashes.
    pub path: String,
    /// Size.
    pub bytes: Bytes,
    /// SHA-256 of the content, in lowercase hexadecimal.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// Schema of the content, for JSON documents of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
}

/// One step of a run that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepRecord {
    /// Its name.
    pub name: String,
    /// When it ended, RFC 3339.
    pub ended_at: String,
}

/// The manifest of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunManifest {
    /// `llm-perf/manifest/1`.
    pub schema: SchemaTag<Self>,
    /// Name of the run; also the name of its folder unless the user chose one.
    pub run_id: String,
    /// How it stands.
    pub status: RunStatus,
    /// Why it is partial or failed.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Verb that made it, such as `profile`.
    pub verb: String,
    /// Command line, as given.
    pub command: Vec<String>,
    /// Version of llm-perf.
    pub tool_version: String,
    /// Model it is about; absent when none is.
    pub model: Option<String>,
    /// Device it is about; absent when none is.
    pub device: Option<String>,
    /// Begun, RFC 3339.
    pub started_at: String,
    /// Ended, RFC 3339; absent while running.
    pub ended_at: Option<String>,
    /// The process that writes it.
    pub process: ProcessIdentity,
    /// Steps that have ended, in order.
    #[serde(default)]
    pub steps: Vec<StepRecord>,
    /// Files that are there, whole, sorted by path. The manifest does not list itself.
    #[serde(default)]
    pub files: Vec<Artifact>,
    /// What `pack --redact` did to the run; absent where nothing was redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redacted: Option<Redaction>,
}

impl RunManifest {
    /// What kind of run it is: its verb, or `command` for a `profile` that ran a command of the user's.
    pub fn kind(&self) -> &str {
        let is_command = |word: &String| word == "--" || word == "--command" || word.starts_with("--command=");
        if self.verb == "profile" && self.command.iter().any(is_command) { "command" } else { &self.verb }
    }
}
