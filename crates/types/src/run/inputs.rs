//! `inputs.yaml`: the images, prompts, command or files a run was given, and which of them it used.

use serde::{Deserialize, Serialize};

use crate::{Bytes, InputDigest, JsonSchema, SchemaTag};

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

/// What a file was to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputRole {
    /// The program that was run.
    Program,
    /// Named by an argument of the command.
    Argument,
    /// A trace or a page of counters that was read.
    Trace,
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputCommand {
    /// The program, as given.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder it was run in.
    pub folder: String,
}

/// A file a run was given that is neither an image nor a prompt; a folder, where a command names one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputFile {
    /// What it was to the run.
    pub role: InputRole,
    /// As it was given.
    pub name: String,
    /// Absolute path; `-` for standard input.
    pub path: String,
    /// Size; absent for a folder.
    pub bytes: Option<Bytes>,
    /// BLAKE3 of the content; absent where `problem` says why.
    pub blake3: Option<String>,
    /// SHA-256 of it, which runs had before they had BLAKE3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Why it was not hashed.
    pub problem: Option<String>,
}

impl InputFile {
    /// Its digest.
    pub fn digest(&self) -> Option<InputDigest> {
        InputDigest::of(self.blake3.as_ref(), self.sha256.as_ref())
    }
}

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputSet {
    /// `llm-perf/inputs/1`.
    pub schema: SchemaTag<Self>,
    /// Folder they are under, `builtin:NAME`, `config` for a prompt of the configuration, `synthetic`, `command` for a command and
    /// `files` for files that were read.
    pub dataset_root: String,
    /// File that listed them; absent when patterns did.
    pub subset_filelist: Option<String>,
    /// How many there are: images, prompts and files.
    pub count: u64,
    /// The images, by name; empty for models that take none.
    pub images: Vec<InputImage>,
    /// The prompts, by name; empty for models whose prompts are pages.
    #[serde(default)]
    pub prompts: Vec<InputPrompt>,
    /// The command that was run; absent where a model was, and where files were read.
    pub command: Option<InputCommand>,
    /// The command's files, or those that were read.
    #[serde(default)]
    pub files: Vec<InputFile>,
}

impl InputSet {
    /// A set of nothing but files.
    pub fn of_files(dataset_root: &str, files: Vec<InputFile>) -> Self {
        Self {
            schema: SchemaTag::new(),
            dataset_root: dataset_root.to_owned(),
            subset_filelist: None,
            count: files.len() as u64,
            images: Vec::new(),
            prompts: Vec::new(),
            command: None,
            files,
        }
    }
}
