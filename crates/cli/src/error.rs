//! What a verb returns when it cannot do its work, in the form in which it is printed.
//!
//! Library errors keep their own types; a verb turns one into a [`CliError`] where it meets it, and adds what only the
//! verb knows: which exit code it deserves and which next step helps.

use std::error::Error;

use crate::config::ConfigError;
use crate::exit::Exit;

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

    /// A library error with everything beneath it as causes (exit code 1; see [`CliError::with_exit`]).
    pub(crate) fn from_error(error: &dyn Error) -> Self {
        let mut failure = Self::failed(error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure.causes.push(cause.to_string());
            source = cause.source();
        }
        failure
    }

    /// Adds one cause.
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds one next step.
    #[allow(dead_code, reason = "the first verb over a library crate uses it")]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Ends the program with another exit code.
    pub(crate) fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

/// A wrong configuration is wrong usage, shown with the place in its source.
impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let place = error.span().map(|span| format!("\n{}", span.excerpt())).unwrap_or_default();
        Self { hints: error.hints(), ..Self::usage(format!("{error}{place}")) }
    }
}

impl From<flow::CollectError> for CliError {
    fn from(error: flow::CollectError) -> Self {
        let exit = if error.is_wrong_usage() { Exit::Usage } else { Exit::Failed };
        Self { hints: error.hint().into_iter().collect(), ..Self::from_error(&error) }.with_exit(exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "cannot read the batch size")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn every_source_of_a_library_error_becomes_a_cause() {
        let parse = "x".parse::<i32>().expect_err("x is no number");
        let failure = CliError::from_error(&Outer(parse)).with_exit(Exit::Usage);
        assert_eq!(failure.message, "cannot read the batch size");
        assert_eq!(failure.causes, ["invalid digit found in string"]);
        assert_eq!(failure.exit, Exit::Usage);
    }
}
