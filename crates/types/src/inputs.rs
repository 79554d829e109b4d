//! `inputs.yaml`: the images a run was given, and which of them it used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::schema::{Document, SchemaName, SchemaTag};

/// One image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputImage {
    /// Name, as in `samples[].input` of the metrics.
    pub name: String,
    /// Absolute path; `builtin:` and the name for images that ship with the program.
    pub path: String,
    /// Width in pixels, turned upright; absent when it could not be read.
    pub width: Option<u64>,
    /// Height in pixels, turned upright; absent when it could not be read.
    pub height: Option<u64>,
    /// Size of the file.
    pub bytes: Option<Bytes>,
    /// SHA-256 of the file.
    pub sha256: Option<String>,
    /// What kind of page it is; absent when nobody says.
    pub category: Option<String>,
    /// Whether the run measured it.
    pub used: bool,
    /// Why it could not be used.
    pub problem: Option<String>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputSet {
    /// `llm-perf/inputs/1`.
    pub schema: SchemaTag<Self>,
    /// Folder they are under, or `builtin:NAME`.
    pub dataset_root: String,
    /// File that listed them; absent when patterns did.
    pub subset_filelist: Option<String>,
    /// How many there are.
    pub count: u64,
    /// The images, by name.
    pub images: Vec<InputImage>,
}

impl Document for InputSet {
    const SCHEMA: SchemaName = SchemaName::new("inputs", 1);
}
