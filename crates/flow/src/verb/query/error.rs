//! Why a query has no answer.

use std::path::PathBuf;
use std::time::Duration;

use collect::process::Ending;
use collect::tool::query::{QueryFailure, QueryFailureKind};
use types::{Bytes, Exit, Failure};

use super::statement::StatementError;
use crate::CollectError;
use crate::pipeline::tables::files::TableFilesError;
use crate::pipeline::tables::of_run::RunTablesError;

/// An error of `query`, by cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// Not one SELECT.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The folders.
    #[error(transparent)]
    Files(#[from] TableFilesError),
    /// A run whose tables cannot be made.
    #[error(transparent)]
    Run(#[from] RunTablesError),
    /// The interpreter, or its process.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// Something is in the way of the answer.
    #[error("{} already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// Whoever takes the answer cannot.
    #[error("cannot write the result: {0}")]
    Taker(std::io::Error),
    /// The engine said why.
    #[error("{}", in_words(failure, engine, *memory))]
    Failed {
        /// What it said.
        failure: QueryFailure,
        /// The engine.
        engine: String,
        /// What it might use.
        memory: Bytes,
        /// Its own words, line by line, where they are not the message.
        said: Vec<String>,
    },
    /// The engine ended without a word.
    #[error("{engine} {ending} before the query finished")]
    Died {
        /// The engine.
        engine: String,
        /// How.
        ending: Ending,
        /// Its last lines.
        output: Vec<String>,
    },
    /// It took too long.
    #[error("the query did not finish within {} s", limit.as_secs())]
    OutOfTime {
        /// How long it was given.
        limit: Duration,
        /// Whether a cluster had it.
        cluster: bool,
    },
    /// The user had enough.
    #[error("the query was stopped")]
    Stopped,
}

impl QueryError {
    /// What an engine said, its words apart from ours.
    pub(super) fn failed(failure: QueryFailure, engine: &str, memory: Bytes) -> Self {
        let own = matches!(failure.kind, QueryFailureKind::Table | QueryFailureKind::Engine);
        let said = if own { Vec::new() } else { failure.message.lines().map(str::to_owned).collect() };
        Self::Failed { failure, engine: engine.to_owned(), memory, said }
    }
}

fn in_words(failure: &QueryFailure, engine: &str, memory: Bytes) -> String {
    match failure.kind {
        QueryFailureKind::Table | QueryFailureKind::Engine => failure.message.clone(),
        QueryFailureKind::Statement => "a query must be a single SELECT".to_owned(),
        QueryFailureKind::Sql => format!("{engine} rejected the statement"),
        QueryFailureKind::Memory => format!("the query needs more than its memory limit of {memory}"),
        QueryFailureKind::Cluster => "the cluster did not run the query".to_owned(),
        QueryFailureKind::EngineFailed => format!("{engine} failed"),
    }
}

impl Failure for QueryError {
    fn exit(&self) -> Exit {
        match self {
            Self::Statement(error) => error.exit(),
            Self::Files(error) => error.exit(),
            Self::Run(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            Self::Exists { .. } => Exit::Usage,
            Self::Failed { failure, .. } => match failure.kind {
                QueryFailureKind::Statement | QueryFailureKind::Sql => Exit::Usage,
                _ => Exit::Failed,
            },
            Self::Io { .. } | Self::Taker(_) | Self::Died { .. } | Self::OutOfTime { .. } | Self::Stopped => {
                Exit::Failed
            }
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Statement(error) => error.hint(),
            Self::Files(error) => error.hint(),
            Self::Run(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            Self::Exists { .. } => Some("nothing was overwritten; choose another file with `--out FILE`".to_owned()),
            Self::Failed { failure, .. } => Some(
                match failure.kind {
                    QueryFailureKind::Sql | QueryFailureKind::Statement => {
                        "list the predefined questions, tables and views with `llm-perf query --list`; show the SQL of \
                         one with `--list NAME`"
                    }
                    QueryFailureKind::Table => "write it again with `llm-perf import FILE --tables DIR`",
                    QueryFailureKind::Memory => {
                        "raise the limit, for example --memory 8GB; sorting and grouping spill to TMPDIR first"
                    }
                    QueryFailureKind::Cluster => {
                        "check that the scheduler is up, has executors, and that all executors see these folders at \
                         the same path"
                    }
                    QueryFailureKind::Engine => "run `pip install --upgrade duckdb`, or use --engine datafusion",
                    QueryFailureKind::EngineFailed => return None,
                }
                .to_owned(),
            ),
            Self::Died { .. } => {
                Some("a file may be damaged, or memory ran out; set the memory limit with --memory".to_owned())
            }
            Self::OutOfTime { cluster: true, .. } => Some(
                "check that all executors are up, because tasks of a dead one never finish; allow more time with \
                 --timeout"
                    .to_owned(),
            ),
            Self::OutOfTime { .. } => Some("allow more time with --timeout".to_owned()),
            Self::Io { .. } | Self::Taker(_) | Self::Stopped => None,
        }
    }

    fn quoted(&self) -> &[String] {
        match self {
            Self::Failed { said, .. } => said,
            Self::Died { output, .. } => output,
            _ => &[],
        }
    }
}
