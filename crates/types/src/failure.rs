//! What an error says beyond its message: how the program should end, and the next step.

use std::error::Error;

/// How the program ends. The numbers are part of the command line's contract and never change meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
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

/// An error a user may see. Every crate's error enum implements it, so that one place prints them all.
pub trait Failure: Error {
    /// How the program ends: [`Exit::Usage`] where the request was wrong, [`Exit::Failed`] otherwise.
    fn exit(&self) -> Exit {
        Exit::Failed
    }

    /// The next step, where there is one that the message does not already give.
    fn hint(&self) -> Option<String> {
        None
    }

    /// Every next step, in order, for an error that may have several.
    fn hints(&self) -> Vec<String> {
        self.hint().into_iter().collect()
    }

    /// The place in the user's own text that is wrong, as lines to print below the message.
    fn excerpt(&self) -> Option<String> {
        None
    }

    /// The last lines of the tool that failed, in its own words.
    fn quoted(&self) -> &[String] {
        &[]
    }
}
