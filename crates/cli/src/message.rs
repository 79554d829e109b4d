//! What is printed where: data on standard output, talk on standard error.
//!
//! Nothing else in this crate writes to either, apart from the progress display. A reader that closes our output early
//! (`| head -1`) has had enough; that is not an error.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::builder::styling::{AnsiColor, Style};
use flow::{EndedRun, harmless};
use serde::Serialize;
use types::{Exit, UserError};

/// How much is said on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Errors, warnings and notes.
    Normal,
    /// Also details.
    Verbose,
    /// Also what only someone debugging wants.
    Everything,
}

types::named! {
    /// When to colour.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Colour {
        /// On a terminal, unless `NO_COLOR` is set or the terminal is dumb.
        Auto = "auto",
        /// Everywhere.
        Always = "always",
        /// Nowhere.
        Never = "never",
    }
}

/// The two output streams and the manners on them.
#[derive(Debug)]
pub(crate) struct Messages {
    verbosity: Verbosity,
    colour: Colour,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
const FAINT: Style = Style::new().dimmed();

impl Messages {
    pub(crate) fn new(verbosity: Verbosity, colour: Colour) -> Self {
        Self { verbosity, colour }
    }

    /// Whether nothing but errors is said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Writes data to standard output through one buffered, locked writer. A closed pipe ends the writing and counts as
    /// written; every other failure is an error.
    pub(crate) fn data(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), UserError> {
        let mut out = BufWriter::new(io::stdout().lock());
        match write(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(UserError::failed("cannot write to standard output").because(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Writes a text to standard output as it is. Whatever is printed, a verb that does nothing more is done.
    pub(crate) fn print(&self, text: &str) -> Result<Exit, UserError> {
        self.data(|out| out.write_all(text.as_bytes())).map(|()| Exit::Done)
    }

    /// Writes a path to standard output, byte by byte, so that a script can use it whatever its name.
    pub(crate) fn print_path(&self, path: &Path) -> Result<Exit, UserError> {
        self.data(|out| out.write_all(&[path.as_os_str().as_encoded_bytes(), b"\n"].concat())).map(|()| Exit::Done)
    }

    /// Writes a value to standard output as indented JSON with a line break at the end.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result<Exit, UserError> {
        let mut text = serde_json::to_string_pretty(value)
            .map_err(|error| UserError::failed("cannot write the result as JSON").because(error.to_string()))?;
        text.push('\n');
        self.print(&text)
    }

    /// Writes the answer of a verb: the document as JSON where a machine reads it, else the text.
    pub(crate) fn print_answer(
        &self,
        json: bool,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<Exit, UserError> {
        if json { self.print_json(document) } else { self.print(&text()) }
    }

    /// Says what is missing and where the rest is; the exit code that goes with it.
    pub(crate) fn finish(&self, missing: &[String], files: &[(&str, PathBuf)]) -> Exit {
        for missing in missing {
            self.warning(format_args!("partial: {missing}"));
        }
        for (name, file) in files {
            self.note(format_args!("{name}: {}", file.display()));
        }
        if missing.is_empty() { Exit::Done } else { Exit::Partial }
    }

    /// The same of a run, with files of its folder.
    pub(crate) fn ended<T>(&self, run: &EndedRun<T>, files: &[(&'static str, &str)]) -> Exit {
        let files: Vec<_> = files.iter().map(|(name, file)| (*name, run.folder.join(file))).collect();
        self.finish(&run.missing, &files)
    }

    /// Prints a failure: the error, its causes, its hints.
    pub(crate) fn error(&self, error: &UserError) {
        let paint = self.paint(io::stderr().is_terminal());
        self.talk(Verbosity::Quiet, format_args!("{} {}", paint.with(ERROR, "error:"), harmless(&error.message)));
        for line in &error.below {
            self.talk(Verbosity::Quiet, harmless(line));
        }
        for cause in &error.causes {
            self.talk(Verbosity::Quiet, format_args!("  {} {}", paint.with(FAINT, "caused by:"), harmless(cause)));
        }
        for hint in &error.hints {
            self.talk(Verbosity::Quiet, format_args!("{} {}", paint.with(HINT, "hint:"), harmless(hint)));
        }
    }

    /// Something the user should know although the work goes on.
    pub(crate) fn warning(&self, text: impl Display) {
        let label = self.paint(io::stderr().is_terminal()).with(WARNING, "warning:");
        self.talk(Verbosity::Normal, format_args!("{label} {}", harmless(&text.to_string())));
    }

    /// What is being done.
    pub(crate) fn note(&self, text: impl Display) {
        self.talk(Verbosity::Normal, harmless(&text.to_string()));
    }

    /// What a command of the user's printed, as it is, unless only errors are wanted.
    pub(crate) fn pass_on(&self, bytes: &[u8]) {
        if !self.is_quiet() {
            // Talk that nobody can hear is no failure.
            let _ = io::stderr().lock().write_all(bytes);
        }
    }

    /// What is being done, in more detail (`-v`).
    pub(crate) fn detail(&self, text: impl Display) {
        self.talk(Verbosity::Verbose, harmless(&text.to_string()));
    }

    /// For someone looking for a fault (`-vv`).
    pub(crate) fn debug(&self, text: impl Display) {
        self.talk(Verbosity::Everything, harmless(&text.to_string()));
    }

    /// Colours for data on standard output.
    pub(crate) fn paint_stdout(&self) -> Paint {
        self.paint(io::stdout().is_terminal())
    }

    pub(crate) fn paint(&self, is_terminal: bool) -> Paint {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let wanted = match self.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                is_terminal && variable("NO_COLOR").is_none() && variable("TERM").is_some_and(|term| term != "dumb")
            }
        };
        Paint { wanted }
    }

    /// A standard error that is closed cannot be told about; the exit code still says how it went.
    pub(crate) fn talk(&self, level: Verbosity, text: impl Display) {
        if self.verbosity >= level {
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }
}

/// Puts a style around a text, or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    pub(crate) wanted: bool,
}

impl Paint {
    /// The text in the style, when colour is wanted.
    pub(crate) fn with(self, style: Style, text: impl Display) -> String {
        if self.wanted { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_levels_include_the_ones_below() {
        assert!(Verbosity::Quiet < Verbosity::Normal);
        assert!(Verbosity::Normal < Verbosity::Verbose);
        assert!(Verbosity::Verbose < Verbosity::Everything);
    }

    #[test]
    fn paint_adds_nothing_when_colour_is_not_wanted() {
        assert_eq!(Paint { wanted: false }.with(ERROR, "error:"), "error:");
        assert_eq!(Paint { wanted: true }.with(ERROR, "error:"), "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m");
    }

    #[test]
    fn colour_never_and_always_do_not_look_at_the_terminal() {
        assert!(!Messages::new(Verbosity::Normal, Colour::Never).paint(true).wanted);
        assert!(Messages::new(Verbosity::Normal, Colour::Always).paint(false).wanted);
    }
}
