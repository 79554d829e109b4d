//! What `llm-perf schema` and `llm-perf validate` say.

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, SchemaTag};

/// One kind of document the tool writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaListing {
    /// Name and version, as in the `schema` field of such a document.
    pub name: String,
    /// What it holds, in one line.
    pub about: String,
}

/// Every kind of document the tool writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchemaList {
    /// `llm-perf/schemas/1`.
    pub schema: SchemaTag<Self>,
    /// The documents.
    pub documents: Vec<SchemaListing>,
}

/// Whether a file is what its `schema` field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationVerdict {
    /// It is.
    Valid,
    /// It is not, or it is not JSON at all.
    Invalid,
    /// Nothing can be said: the file cannot be read, or this version does not know its schema.
    Undecided,
}

/// One place where a document does not follow its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// JSON pointer (RFC 6901) of the offending value; empty for the document itself.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

/// What was found about one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileValidation {
    /// The file, as it was named; `-` is standard input.
    pub file: String,
    /// Whether it is valid.
    pub verdict: ValidationVerdict,
    /// Schema it was checked against; absent when none was found.
    pub document: Option<String>,
    /// Every violation, in document order.
    pub violations: Vec<Violation>,
    /// Why it could not be checked against a schema; absent when it was.
    pub error: Option<String>,
    /// What to do about that error, where something is known to help.
    pub hint: Option<String>,
}

/// What was found about all files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationReport {
    /// `llm-perf/validation/1`.
    pub schema: SchemaTag<Self>,
    /// One entry per file, in the order given.
    pub files: Vec<FileValidation>,
}
