//! What can be wrong with a file of another tool.

/// An error of this crate, by cause. The message is whole, so there is no `source`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// A file with nothing in it.
    #[error("{file} is empty, expected {expected}")]
    Empty {
        /// The file.
        file: String,
        /// What should be in it.
        expected: &'static str,
    },

    /// A text that is not JSON, or ends too early.
    #[error("{file}: not JSON: {reason}")]
    NotJson {
        /// The file.
        file: String,
        /// What is wrong, with line and column.
        reason: String,
    },

    /// A field that is not there.
    #[error("{file}: `{pointer}` is missing ({expected})")]
    Missing {
        /// The file.
        file: String,
        /// JSON pointer of the field.
        pointer: String,
        /// What should be there.
        expected: &'static str,
    },

    /// A value of another kind than the format has there.
    #[error("{file}: {place} is {found}, expected {expected}", place = place(pointer))]
    WrongKind {
        /// The file.
        file: String,
        /// JSON pointer of the value; empty for the whole document.
        pointer: String,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },

    /// The right form with contents that contradict themselves.
    #[error("{file}: {place}: {reason}", place = place(pointer))]
    Inconsistent {
        /// The file.
        file: String,
        /// JSON pointer of the value.
        pointer: String,
        /// What does not fit what.
        reason: String,
    },
}

impl IngestError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty { .. } | Self::NotJson { .. } => "check that the file was written and copied whole",
            Self::Missing { .. } | Self::WrongKind { .. } => "check that this is the kind of file that is asked for",
            Self::Inconsistent { .. } => "the file was changed after the tool wrote it; make it again",
        }
    }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { "the document".to_owned() } else { format!("`{pointer}`") }
}
