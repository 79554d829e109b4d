//! How the program ends. The numbers are part of the command line's contract and never change meaning.

use std::process::ExitCode;

/// The exit code of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done.
    Done = 0,
    /// The work failed.
    Failed = 1,
    /// The request was wrong: arguments, configuration, names.
    Usage = 2,
    /// The work finished but a requested artifact or part of an input is missing.
    Partial = 3,
    /// A gate the user set was not met.
    GateFailed = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
