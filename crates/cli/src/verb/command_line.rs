//! The whole command line: a verb and the options that every verb shares, from raw arguments to the context of a verb.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use flow::WrittenArguments;
use types::{Named, UserError};

use super::{Verb, habit, help};
use crate::choice::one_of;
use crate::context::Context;
use crate::message::{Colour, Messages, Verbosity};

/// Show where a language model's time goes, how close it is to the hardware limit, and what to change
#[derive(Debug, Parser)]
#[command(name = "llm-perf", version, max_term_width = help::WIDTH, arg_required_else_help = true)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs", after_help = include_str!("examples/command_line.txt").trim_end())]
pub(crate) struct CommandLine {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options that mean the same for every verb.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct Globals {
    /// Print only errors on stderr: no notes, warnings or progress; results still go to stdout
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print details, such as the override behind each option; -vv prints more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Folder with configuration groups that extend or replace the built-in ones
    #[arg(long, global = true, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// When to use colour; NO_COLOR is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = one_of(&Colour::ALL))]
    color: Colour,
    /// Record command lines as typed, without masking secrets
    #[arg(long, global = true)]
    keep_arguments: bool,
    /// Record the program of a command line only, none of its arguments
    #[arg(long, global = true, conflicts_with = "keep_arguments")]
    no_arguments: bool,
}

impl CommandLine {
    /// The surroundings the verb runs in.
    pub(crate) fn context(&self) -> Context {
        let verbosity = match (self.globals.quiet, self.globals.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::Everything,
        };
        match (self.globals.keep_arguments, self.globals.no_arguments) {
            (_, true) => flow::write_arguments(WrittenArguments::None),
            (true, _) => flow::write_arguments(WrittenArguments::All),
            _ => {}
        }
        Context { messages: Messages::new(verbosity, self.globals.color), config_dir: self.globals.config_dir.clone() }
    }
}

/// Why an argument list gives no command line.
pub(crate) enum Refusal {
    /// A usage error, or a request for help or the version.
    Clap(Box<clap::Error>),
    /// Something that other tools take, and how it is written here.
    Habit(UserError),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clap(error) => error.fmt(f),
            Self::Habit(error) => f.write_str(&error.message),
        }
    }
}

/// Reads the argument list.
pub(crate) fn parse(arguments: &[OsString]) -> Result<CommandLine, Refusal> {
    let mut program = CommandLine::command();
    let parsed = program
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut program)));
    let clap = |error: clap::Error| Refusal::Clap(Box::new(error));
    match parsed {
        Err(error) if error.kind() == ErrorKind::DisplayVersion => Err(clap(error)),
        Err(error) if is_help(&error) => {
            let arranged = help::arranged(CommandLine::command()).try_get_matches_from(arguments);
            Err(clap(arranged.err().unwrap_or(error)))
        }
        parsed => match (habit::explain(&program, arguments), parsed) {
            (Some(error), _) => Err(Refusal::Habit(error)),
            (None, Ok(command_line)) => Ok(command_line),
            (None, Err(mut error)) => {
                // What follows `--` is a command here, and never an option that was meant as a value.
                if error.kind() == ErrorKind::UnknownArgument {
                    error.remove(ContextKind::Suggested);
                }
                Err(clap(error))
            }
        },
    }
}

fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// `--color` as far as help and usage errors need it, which are printed before the arguments are understood.
pub(crate) fn early_colour(arguments: &[OsString]) -> Colour {
    let mut choice = Colour::Auto;
    let mut arguments =
        arguments.iter().filter_map(|argument| argument.to_str()).take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix("--color") {
            Some("") => arguments.next().unwrap_or_default(),
            Some(rest) => rest.trim_start_matches('='),
            None => continue,
        };
        choice = Colour::find(value).unwrap_or(choice);
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_definitions_are_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_verb_has_examples_and_an_about_line() {
        for verb in CommandLine::command().get_subcommands() {
            let examples = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.starts_with("Examples:\n"), "`{}` has no examples", verb.get_name());
            assert!(verb.get_about().is_some(), "`{}` has no about line", verb.get_name());
        }
    }

    #[test]
    fn colour_is_known_before_the_arguments_are_understood() {
        let early = |text: &str| early_colour(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(early("llm-perf nonsense --color never"), Colour::Never);
        assert_eq!(early("llm-perf --color=always --help"), Colour::Always);
        assert_eq!(early("llm-perf profile -- program --color never"), Colour::Auto);
        assert_eq!(early("llm-perf --color"), Colour::Auto);
    }
}
