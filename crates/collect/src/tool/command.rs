//! A command line: what is started, with which arguments and which changes to the environment.
//!
//! A value that can be shown, written down and compared; starting it is left to [`crate::child`].

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// A program, its arguments and what is set for it beside the environment of this process.
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
}

impl Command {
    /// `program` with `arguments`, in the environment and the folder of this process.
    pub fn new(program: impl Into<PathBuf>, arguments: Vec<OsString>) -> Self {
        Self { program: program.into(), arguments, environment: Vec::new(), folder: None }
    }

    /// The command of a list of words, the first of which is the program.
    pub fn of_words(words: &[OsString]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self::new(program, arguments.to_vec()))
    }

    /// The same, with a variable set.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The same, started in `folder`.
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }
}

/// As it would be typed into a shell. Bytes that are no text are shown as such and cannot be pasted back.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(folder) = &self.folder {
            write!(f, "cd {} && ", quoted(folder.as_os_str()))?;
        }
        for (name, value) in &self.environment {
            write!(f, "{}={} ", name.to_string_lossy(), quoted(value))?;
        }
        f.write_str(&quoted(self.program.as_os_str()))?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

/// A word as a shell takes it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-./:=,@%+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let words = ["sh", "-c", "echo 'a b'; exit", ""].map(OsString::from);
        let command = Command::of_words(&words).unwrap().with_variable("LIST", "a b").within(Path::new("/tmp"));
        assert_eq!(command.to_string(), r"cd /tmp && LIST='a b' sh -c 'echo '\''a b'\''; exit' ''");
        assert_eq!(Command::of_words(&[]), None);
    }
}
