//! What can be wrong with a file of another tool.

use types::Failure;

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

    /// Reading the source failed.
    #[error("{file}, line {line}: cannot be read: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The line that was to be read, counted from one.
        line: u64,
        /// What the system says.
        reason: String,
    },

    /// A line that no tool writes.
    #[error("{file}, line {line}: longer than {limit} bytes")]
    LineTooLong {
        /// The file.
        file: String,
        /// The line, counted from one.
        line: u64,
        /// The longest line that is read.
        limit: usize,
    },

    /// A table that is not built as its header says.
    #[error("{file}, line {line}: {reason}")]
    NotCsv {
        /// The file.
        file: String,
        /// The line, counted from one.
        line: u64,
        /// What is wrong, what was expected and what is there.
        reason: String,
    },

    /// Bytes of another format than the one that is asked for.
    #[error("{file} is not {expected}: {found}")]
    WrongFormat {
        /// The file.
        file: String,
        /// The format that is asked for.
        expected: &'static str,
        /// What tells that it is another.
        found: String,
    },

    /// The right format in a version that came after this program.
    #[error("{file}: {format} version {found} is newer than {known}, the newest supported version")]
    NewerVersion {
        /// The file.
        file: String,
        /// The format.
        format: &'static str,
        /// Its version.
        found: String,
        /// The newest version this program reads.
        known: &'static str,
    },

    /// The right format in a form that is not read.
    #[error("{file}: {reason}")]
    Unsupported {
        /// The file.
        file: String,
        /// What is not read.
        reason: String,
    },

    /// The right format with something in it that is not known.
    #[error("{file}: {place}: {reason}")]
    Refused {
        /// The file.
        file: String,
        /// Where.
        place: String,
        /// What is not known.
        reason: String,
        /// What to do.
        fix: &'static str,
    },

    /// A file that ends too early or contradicts its own format, so that nothing of it can be used.
    #[error("{file} is damaged at {place}: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// Where.
        place: String,
        /// What is wrong.
        reason: String,
    },

    /// A database in which there is nothing of a trace.
    #[error("{file} contains no trace: expected one of the tables {expected}; found {found}")]
    NoTables {
        /// The file.
        file: String,
        /// Tables of which one is needed.
        expected: String,
        /// Tables that are there.
        found: String,
    },

    /// A table without a column that every version of the format has.
    #[error("{file}: table {table} has no column {column}; found {found}")]
    MissingColumn {
        /// The file.
        file: String,
        /// The table.
        table: String,
        /// The column.
        column: &'static str,
        /// Columns that are there.
        found: String,
    },

    /// One event or value larger than is read.
    #[error("{file}: the value at byte {offset} is longer than {limit} bytes")]
    TooLarge {
        /// The file.
        file: String,
        /// Where it starts, in the uncompressed file.
        offset: u64,
        /// The bound.
        limit: u64,
    },
}

impl Failure for IngestError {
    fn hint(&self) -> Option<String> {
        let step = match self {
            Self::Empty { .. } | Self::NotJson { .. } | Self::NotCsv { .. } => "check that the file is complete",
            Self::Unreadable { .. } => "check that the whole file is readable",
            Self::LineTooLong { .. } => {
                "the file is damaged or has another format: a quote may be unclosed, or line breaks may be missing"
            }
            Self::Missing { .. } | Self::WrongKind { .. } => "check that the file has the expected format",
            Self::Inconsistent { .. } => "the file was changed after the tool wrote it; export it again",
            Self::TooLarge { .. } => "no profiler writes such a file; check the path",
            Self::WrongFormat { .. } | Self::Damaged { .. } => "check that the file is complete",
            Self::NewerVersion { .. } => "export the trace with an older version of the profiler, or update llm-perf",
            Self::Unsupported { .. } => {
                "export the trace again with the profiler that recorded it, and do not open it for writing"
            }
            Self::Refused { fix, .. } => fix,
            Self::NoTables { .. } | Self::MissingColumn { .. } => {
                "record with `--trace cuda,nvtx` and export all tables"
            }
        };
        Some(step.to_owned())
    }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { "the document".to_owned() } else { format!("`{pointer}`") }
}
