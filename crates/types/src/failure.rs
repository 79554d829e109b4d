//! What an error says beyond its message: how the program should end, and the next step.

use std::error::Error;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind};
use std::path::Path;

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

/// An error as it is printed: `error: message`, the lines below it, its causes, its hints.
///
/// The crates that read and compute have enums of their own; `?` turns one into this by what its [`Failure`] says. What only passes
/// errors on, and what goes wrong in one place that nobody tells apart, is said here at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserError {
    /// What went wrong, with the values in it.
    pub message: String,
    /// What stands below the message: an excerpt of the user's text, and the words of a tool, set apart from ours.
    pub below: Vec<String>,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// What to do next, one step per entry.
    pub hints: Vec<String>,
    /// How the program ends.
    pub exit: Exit,
}

impl UserError {
    /// The work failed (exit code 1).
    pub fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, below: Vec::new(), causes: Vec::new(), hints: Vec::new(), exit: Exit::Failed }
    }

    /// The request was wrong (exit code 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::failed(message) }
    }

    /// A file that the system refuses: what was tried, and on which.
    pub fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |reason| {
            let failed = Self::failed(format!("cannot {action} {}: {reason}", path.display()));
            // Those two change nothing, so that another output folder would not help.
            let changes = !["read", "list"].contains(&action);
            match reason.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    failed.hint("free some space, or write the run to another disk with `--out DIR`")
                }
                ErrorKind::FileTooLarge if changes => {
                    failed.hint("lift the file size limit with `ulimit -f unlimited`")
                }
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem if changes => {
                    failed.hint("use a writable folder; `--out DIR` sets the run folder")
                }
                ErrorKind::NotADirectory => failed.hint("part of that path is a file; choose another folder"),
                // What a folder is made below is a file.
                ErrorKind::AlreadyExists if action == "create folder" => {
                    failed.hint("part of that path is a file; choose another folder")
                }
                _ => failed,
            }
        }
    }

    /// A file that the user named and that cannot be read.
    pub fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let failed = Self::io("read", path);
        move |reason| failed(reason).exiting(Exit::Usage)
    }

    /// The same with another end.
    pub fn exiting(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// Adds one cause.
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds one next step.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the last lines of a tool.
    pub fn quoting(mut self, lines: impl IntoIterator<Item: Display>) -> Self {
        self.below.extend(lines.into_iter().map(|line| format!("  | {line}")));
        self
    }
}

impl Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for UserError {}

/// Every error of the crates below, with everything beneath it as causes.
impl<F: Failure> From<F> for UserError {
    fn from(error: F) -> Self {
        Self::of(&error)
    }
}

impl UserError {
    fn of(error: &dyn Failure) -> Self {
        let causes = std::iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect();
        let hints = error.hints().iter().map(|hint| hint.trim_end().to_owned()).collect();
        let below = error.excerpt().into_iter().collect();
        Self { message: error.to_string(), below, causes, hints, exit: error.exit() }.quoting(error.quoted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the batch size")]
    struct Outer(#[source] std::num::ParseIntError, Vec<String>);

    impl Failure for Outer {
        fn exit(&self) -> Exit {
            Exit::Usage
        }

        fn hint(&self) -> Option<String> {
            Some("write a number\n".to_owned())
        }

        fn quoted(&self) -> &[String] {
            &self.1
        }
    }

    #[test]
    fn everything_a_failure_says_is_printed() {
        let parse = "x".parse::<i32>().expect_err("x is no number");
        let failure = UserError::from(Outer(parse, vec!["line 1".to_owned(), "line 2".to_owned()]));
        assert_eq!(failure.to_string(), "cannot read the batch size");
        assert_eq!(failure.below, ["  | line 1", "  | line 2"]);
        assert_eq!(failure.causes, ["invalid digit found in string"]);
        assert_eq!(failure.hints, ["write a number"]);
        assert_eq!(failure.exit, Exit::Usage);
    }
}
