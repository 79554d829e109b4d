//! Why there are no tables.

use std::io;
use std::path::PathBuf;

use tables::TableError;
use types::{Exit, Failure};

/// What every engine reads as "no value" in the name of a folder.
pub(crate) const NO_RANK: &str = "__HIVE_DEFAULT_PARTITION__";

/// Why there are no tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// A name that cannot be part of a path.
    #[error("invalid job name {job:?}: use letters, digits, dots, dashes and underscores")]
    Job {
        /// The name.
        job: String,
    },
    /// Another trace has that place.
    #[error("{} already exists, from another trace ({found})", path.display())]
    Exists {
        /// The folder of the rank.
        path: PathBuf,
        /// Where its rows come from.
        found: String,
    },
    /// Nothing to write rows of.
    #[error("cannot write tables without a timeline: the files contain only sums and counters")]
    NoTimeline,
    /// A table.
    #[error("{}: {error}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: TableError,
    },
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}

impl Failure for TablesError {
    fn exit(&self) -> Exit {
        match self {
            Self::Job { .. } | Self::Exists { .. } | Self::NoTimeline => Exit::Usage,
            Self::Table { .. } | Self::Io { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Exists { .. } => {
                Some("nothing was overwritten; choose another job name with `--job NAME`".to_owned())
            }
            Self::NoTimeline => Some("import a torch profiler trace, an nsys export or a collector file".to_owned()),
            Self::Table { .. } => Some("write the tables again with `llm-perf import FILE --tables DIR`".to_owned()),
            _ => None,
        }
    }
}
