//! Why a run was not packed.

use std::path::PathBuf;

use types::{Exit, Failure, FileProblem};

use crate::CollectError;

/// Why a run was not packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The run or the bundle.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// A run whose manifest is not true.
    #[error("{}/{}: {}", run.display(), problem.path, problem.detail)]
    NotAsListed {
        /// The run.
        run: PathBuf,
        /// The first file that is not as listed.
        problem: FileProblem,
    },
    /// A file that cannot be read or written on the way.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
}

impl Failure for PackError {
    fn exit(&self) -> Exit {
        match self {
            Self::Collect(error) => error.exit(),
            Self::NotAsListed { .. } | Self::Io { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Collect(error) => error.hint(),
            Self::NotAsListed { run, .. } => {
                Some(format!("list the changed files with `llm-perf runs {} --verify`", run.display()))
            }
            Self::Io { .. } => None,
        }
    }
}

impl PackError {
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::Io { action, path, reason }
    }
}
