//! `inputs.yaml`: the images or prompts a run was given, and which of them it used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::schema::{Document, SchemaName, SchemaTag};

/// One image; for a network that is fed random pictures, one batch of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputImage {
    /// Name, as in `samples[].input` of the metrics.
    pub name: String,
    /// Absolute path; `builtin:` and the name for images that ship with the program, `synthetic:` and the seed for
    /// random images.
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

/// One prompt without a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputPrompt {
    /// Name, as in `samples[].input` of the metrics.
    pub name: String,
    /// Absolute path; `builtin:` and the name for prompts that ship with the program, `config:` and the key for one that
    /// stands in the configuration, `synthetic:` and the seed for random tokens.
    pub path: String,
    /// Tokens, the one that starts every prompt included; absent when it was not prepared.
    pub tokens: Option<u64>,
    /// Size of the text; absent where there is none.
    pub bytes: Option<Bytes>,
    /// SHA-256 of the text; absent where there is none.
    pub sha256: Option<String>,
    /// What kind of prompt it is; absent when nobody says.
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
    /// Folder they are under, `builtin:NAME`, `config` for a prompt of the configuration, or `synthetic`.
    pub dataset_root: String,
    /// File that listed them; absent when patterns did.
    pub subset_filelist: Option<String>,
    /// How many there are, images and prompts.
    pub count: u64,
    /// The images, by name; empty for models that take none.
    pub images: Vec<InputImage>,
    /// The prompts, by name; empty for models whose prompts are pages.
    #[serde(default)]
    pub prompts: Vec<InputPrompt>,
}

impl Document for InputSet {
    const SCHEMA: SchemaName = SchemaName::new("inputs", 1);
}
