//! The whole command line: a verb and the options that every verb shares, from raw arguments to the context of a verb.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, ColorChoice, CommandFactory, FromArgMatches, Parser, ValueEnum};

use super::Verb;
use crate::context::Context;
use crate::message::{Colour, Messages, Verbosity};

/// Where a language model's time goes, how close that is to what the hardware allows, and what to do about it.
#[derive(Debug, Parser)]
#[command(name = "llm-perf", version, max_term_width = 100, arg_required_else_help = true)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs", after_help = EXAMPLES)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf analyze                       what DeepSeek-OCR costs on an H200, from its config alone
  llm-perf analyze --model config.json --hardware rtx-4090 workload.batch=4
  llm-perf doctor                        check whether this machine can profile
  llm-perf VERB --help                   help for one verb

Exit codes:
  0 success, 1 failure, 2 wrong usage, 3 finished but partial, 4 a gate failed";

/// Options that mean the same for every verb.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct Globals {
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print details, such as the overrides that flags stand for; -vv prints more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Folder with configuration groups that add to or replace the built-in ones
    #[arg(long, global = true, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// When to use colour; NO_COLOR is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorWhen,
    /// Write secrets on the command line into the run as they are; else they are masked
    #[arg(long, global = true)]
    keep_arguments: bool,
}

/// The values of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColorWhen {
    Auto,
    Always,
    Never,
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
        let colour = match self.globals.color {
            ColorWhen::Auto => Colour::Auto,
            ColorWhen::Always => Colour::Always,
            ColorWhen::Never => Colour::Never,
        };
        if self.globals.keep_arguments {
            flow::keep_arguments();
        }
        Context { messages: Messages::new(verbosity, colour), config_dir: self.globals.config_dir.clone() }
    }
}

/// Reads the argument list; the error is either a usage error or a request for help or the version.
pub(crate) fn parse(arguments: &[OsString]) -> Result<CommandLine, clap::Error> {
    let mut command = CommandLine::command().color(early_colour(arguments));
    let matches = command.try_get_matches_from_mut(arguments)?;
    CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// `--color` as far as help and usage errors need it, which clap prints before the arguments are understood.
fn early_colour(arguments: &[OsString]) -> ColorChoice {
    let mut choice = ColorChoice::Auto;
    let mut arguments =
        arguments.iter().filter_map(|argument| argument.to_str()).take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix("--color") {
            Some("") => arguments.next().unwrap_or_default(),
            Some(rest) => rest.trim_start_matches('='),
            None => continue,
        };
        match value {
            "always" => choice = ColorChoice::Always,
            "never" => choice = ColorChoice::Never,
            _ => {}
        }
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
        assert_eq!(early("llm-perf nonsense --color never"), ColorChoice::Never);
        assert_eq!(early("llm-perf --color=always --help"), ColorChoice::Always);
        assert_eq!(early("llm-perf profile -- program --color never"), ColorChoice::Auto);
        assert_eq!(early("llm-perf --color"), ColorChoice::Auto);
    }
}
