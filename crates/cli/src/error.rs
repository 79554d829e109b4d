//! What a verb returns when it cannot do its work, in the form in which it is printed.
//!
//! Errors of the crates below keep their own types; `?` turns one into a [`CliError`] by what its
//! [`Failure`] says of exit code, next step and the words of a tool.

use types::{Exit, Failure};

/// One failure: printed once as `error: message`, then its causes, then its hints.
#[derive(Debug)]
pub(crate) struct CliError {
    /// What went wrong, with the values in it. May span lines (a source excerpt).
    pub(crate) message: String,
    /// Why, outermost first.
    pub(crate) causes: Vec<String>,
    /// What to do next, one step per entry.
    pub(crate) hints: Vec<String>,
    /// How the program ends.
    pub(crate) exit: Exit,
}

impl CliError {
    /// The work failed (exit code 1).
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), causes: Vec::new(), hints: Vec::new(), exit: Exit::Failed }
    }

    /// The request was wrong (exit code 2).
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::failed(message) }
    }

    /// Adds one cause.
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds one next step.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Every error of the crates below, with everything beneath it as causes. What a tool said is set apart from what we say.
impl<F: Failure> From<F> for CliError {
    fn from(error: F) -> Self {
        let quoted = error.quoted().iter().map(|line| format!("  | {line}"));
        let message =
            [error.to_string()].into_iter().chain(error.excerpt()).chain(quoted).collect::<Vec<_>>().join("\n");
        Self {
            message,
            causes: std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string).collect(),
            hints: error.hints().iter().map(|hint| hint.trim_end().to_owned()).collect(),
            exit: error.exit(),
        }
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
        let failure = CliError::from(Outer(parse, vec!["line 1".to_owned(), "line 2".to_owned()]));
        assert_eq!(failure.message, "cannot read the batch size\n  | line 1\n  | line 2");
        assert_eq!(failure.causes, ["invalid digit found in string"]);
        assert_eq!(failure.hints, ["write a number"]);
        assert_eq!(failure.exit, Exit::Usage);
    }
}
