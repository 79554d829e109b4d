//! What can go wrong while writing and checking documents.

use types::{Exit, Failure, SchemaName};

/// An error of this crate, by cause. The message is whole, so there is no `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A text that is not JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// What is wrong, with line and column.
        reason: serde_json::Error,
    },

    /// A text that looks like YAML and is not.
    #[error("not YAML: {reason}")]
    NotYaml {
        /// What is wrong, with line and column.
        reason: String,
    },

    /// JSON, but not an object, so it cannot have a `schema` field.
    #[error("the document is {found}, not an object with a `schema` field")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },

    /// An object without a `schema` field.
    #[error("the document has no `schema` field")]
    NoSchemaField,

    /// A `schema` field that is not text.
    #[error("the `schema` field is {found}, not text such as \"llm-perf/metrics/1\"")]
    SchemaNotText {
        /// What it is.
        found: &'static str,
    },

    /// A name no document has.
    #[error("unknown schema `{name}`")]
    UnknownSchema {
        /// The name as given.
        name: String,
        /// The most similar name there is.
        nearest: Option<SchemaName>,
    },

    /// A document of ours in a version this program does not know.
    #[error("the schema is {found}, this llm-perf knows {known}")]
    UnknownVersion {
        /// The version of the document.
        found: SchemaName,
        /// The version this program knows.
        known: SchemaName,
    },

    /// A document that a format cannot say; a fault of this program.
    #[error("cannot write {format}: {reason}")]
    NotWritable {
        /// Which format.
        format: &'static str,
        /// Why.
        reason: String,
    },
}

impl Failure for ReportError {
    fn exit(&self) -> Exit {
        match self {
            Self::UnknownSchema { .. } | Self::UnknownVersion { .. } => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotAnObject { .. } | Self::NoSchemaField => {
                Some("only documents written by llm-perf can be validated; each names its schema".to_owned())
            }
            Self::UnknownSchema { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Self::UnknownSchema { nearest: None, .. } | Self::SchemaNotText { .. } => {
                Some("`llm-perf schema` lists all schemas".to_owned())
            }
            Self::UnknownVersion { found, known } if found.version() > known.version() => {
                Some("it belongs to a newer llm-perf; update this one".to_owned())
            }
            _ => None,
        }
    }
}
