//! A command line: what is started, with which arguments and variables, and where its output goes.
//!
//! A value that can be shown, written down and compared; [`crate::process`] starts it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::secret::{masked, masked_variable};

/// A program, its arguments and what is set for it beside the environment of this process. Its standard input is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// Folder it starts in; that of this process where absent.
    pub folder: Option<PathBuf>,
    /// Where its standard output goes.
    pub stdout: Output,
    /// Where its standard error goes.
    pub stderr: Output,
}

/// Where a stream of a process goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Where that of this process goes.
    #[default]
    Inherited,
    /// Into a file, which is replaced.
    File(PathBuf),
    /// Into memory: the first bytes, this many at most.
    Kept(usize),
}

impl Command {
    /// `program` with `arguments`, in the environment and the folder of this process, with its output.
    pub fn new<A: Into<OsString>>(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            folder: None,
            stdout: Output::Inherited,
            stderr: Output::Inherited,
        }
    }

    /// The command of a list of words, the first of which is the program.
    pub fn of_words(words: &[OsString]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self::new(program, arguments))
    }

    /// The same, with a variable set.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The same, with these variables set.
    pub fn with_variables(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// The same, started in `folder`.
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// The same, with its output in these places.
    pub fn with_output(self, stdout: Output, stderr: Output) -> Self {
        Self { stdout, stderr, ..self }
    }

    /// The program and its arguments.
    pub fn words(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(self.program.as_os_str()).chain(self.arguments.iter().map(OsString::as_os_str))
    }
}

/// As it would be typed into a shell, with secrets masked. Bytes that are no text are shown as such and cannot be pasted back.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(folder) = &self.folder {
            write!(f, "cd {} && ", quoted(folder.as_os_str()))?;
        }
        for (name, value) in &self.environment {
            write!(f, "{}={} ", name.to_string_lossy(), quoted(&masked_variable(name, value)))?;
        }
        f.write_str(&command_line(self.words()))
    }
}

/// Words as they would be typed into a shell, with secrets masked.
pub fn command_line(words: impl IntoIterator<Item: AsRef<OsStr>>) -> String {
    masked(words).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back. `shlex` would also quote `=` and `,`, which overrides such as
/// `infer.max_new_tokens=16` are full of, and writes a regular expression in three styles of quotes; it checks the tests.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./:=,@%+".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let words = ["sh", "-c", "echo 'a b'; exit", "key=1,2", ""].map(OsString::from);
        let command = Command::of_words(&words).unwrap().with_variable("LIST", "a b").within(Path::new("/tmp"));
        assert_eq!(command.to_string(), r"cd /tmp && LIST='a b' sh -c 'echo '\''a b'\''; exit' key=1,2 ''");
        assert_eq!(Command::of_words(&[]), None);
    }

    proptest! {
        #[test]
        fn a_shell_reads_back_the_words_that_were_given(words in prop::collection::vec("[^\0]{0,12}", 0..5)) {
            prop_assert_eq!(shlex::split(&command_line(&words)), Some(words));
        }
    }
}
