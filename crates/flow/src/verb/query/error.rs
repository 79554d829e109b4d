//! Why an engine gave no answer.

use std::time::Duration;

use collect::tool::query::{QueryFailure, QueryFailureKind};
use types::{Bytes, UserError};

/// What an engine said, its words apart from ours.
pub(super) fn failed(failure: &QueryFailure, engine: &str, memory: Bytes) -> UserError {
    let said = failure.message.lines();
    match failure.kind {
        QueryFailureKind::Table => {
            UserError::failed(&failure.message).hint("write it again with `llm-perf import FILE --tables DIR`")
        }
        QueryFailureKind::Engine => {
            UserError::failed(&failure.message).hint("run `pip install --upgrade duckdb`, or use --engine datafusion")
        }
        QueryFailureKind::Statement => rejected("a query must be a single SELECT").quoting(said),
        QueryFailureKind::Sql => rejected(format!("{engine} rejected the statement")).quoting(said),
        QueryFailureKind::Memory => {
            UserError::failed(format!("the query needs more than its memory limit of {memory}"))
                .quoting(said)
                .hint("raise the limit, for example --memory 8GB; sorting and grouping spill to TMPDIR first")
        }
        QueryFailureKind::Cluster => UserError::failed("the cluster did not run the query").quoting(said).hint(
            "check that the scheduler is up, has executors, and that all executors see these folders at the same path",
        ),
        QueryFailureKind::EngineFailed => UserError::failed(format!("{engine} failed")).quoting(said),
    }
}

fn rejected(message: impl Into<String>) -> UserError {
    UserError::usage(message).hint(
        "list the predefined questions, tables and views with `llm-perf query --list`; show the SQL of one with \
         `--list NAME`",
    )
}

/// It took too long, perhaps on a cluster.
pub(super) fn out_of_time(limit: Duration, cluster: bool) -> UserError {
    UserError::failed(format!("the query did not finish within {} s", limit.as_secs())).hint(if cluster {
        "check that all executors are up, because tasks of a dead one never finish; allow more time with --timeout"
    } else {
        "allow more time with --timeout"
    })
}

/// Whoever takes the answer cannot.
pub fn untaken(reason: std::io::Error) -> UserError {
    UserError::failed(format!("cannot write the result: {reason}"))
}
