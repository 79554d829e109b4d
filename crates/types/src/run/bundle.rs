//! `bundle.json`: what stands first in a packed run, and says what follows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, JsonSchema, SchemaTag};

/// One file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleFile {
    /// Path relative to the run folder, with forward slashes.
    pub path: String,
    /// Size.
    pub bytes: Bytes,
    /// SHA-256 of the content, in lowercase hexadecimal.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
}

/// A file of the run that is not in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutFile {
    /// Its path, relative to the run folder; its name, for a file that lies elsewhere.
    pub path: String,
    /// Size; absent where it is not known.
    pub bytes: Option<Bytes>,
    /// Why it is not there.
    pub reason: String,
}

/// What was done to a run so that it can be shown to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redaction {
    /// How the hash in `redacted-KIND-HASH` is made of the value it stands for. The salt is drawn for each bundle and kept
    /// nowhere: equal values stay equal within a bundle, and nobody can find a value by trying likely ones.
    pub hash: String,
    /// Values that were replaced, by kind: how often.
    pub replaced: BTreeMap<String, u64>,
}

/// The index of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleIndex {
    /// `llm-perf/bundle/1`.
    pub schema: SchemaTag<Self>,
    /// Version of llm-perf that packed it.
    pub tool_version: String,
    /// The run, as its manifest names it.
    pub run_id: String,
    /// What was redacted; absent where nothing was.
    pub redacted: Option<Redaction>,
    /// The files of the run in the order in which they follow; the manifest is the first.
    pub files: Vec<BundleFile>,
    /// Files that the run was made from and that lay outside its folder, which follow behind those.
    pub sources: Vec<BundleFile>,
    /// What is not in the bundle.
    pub left_out: Vec<LeftOutFile>,
}

impl BundleIndex {
    /// Every file of the bundle, in order.
    pub fn members(&self) -> impl Iterator<Item = &BundleFile> {
        self.files.iter().chain(&self.sources)
    }

    /// The file at a place in that order; none behind the last.
    pub fn member(&self, place: usize) -> Option<&BundleFile> {
        match place.checked_sub(self.files.len()) {
            None => self.files.get(place),
            Some(place) => self.sources.get(place),
        }
    }

    /// Size of all files together; absent where that is more than a number can hold.
    pub fn total(&self) -> Option<Bytes> {
        self.members().try_fold(0_u64, |sum, file| sum.checked_add(file.bytes.get())).map(Bytes::new)
    }
}
