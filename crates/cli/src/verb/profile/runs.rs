//! Flags of how a command is run.

use std::path::PathBuf;
use std::time::Duration;

use flow::command::CommandEnd;
use types::UserError;

use crate::duration::duration;

/// How often a command is run, what is run around it, and when it is ended.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Command")]
pub(crate) struct RunArguments {
    /// Command line for the shell to run instead of a command after `--`; repeat to compare several in turns
    #[arg(long = "command", value_name = "LINE", conflicts_with = "command")]
    pub(super) lines: Vec<String>,
    /// Number of measured runs of each command [default: 1, or 10 for several commands]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) runs: Option<u32>,
    /// Number of warm-up runs of each command [default: 0]
    #[arg(long, value_name = "N")]
    pub(super) warmup: Option<u32>,
    /// Command line to run before each run, untimed
    #[arg(long, value_name = "LINE")]
    pub(super) prepare: Option<String>,
    /// Command line to run after each run, untimed
    #[arg(long, value_name = "LINE")]
    pub(super) cleanup: Option<String>,
    /// Stop the command after this time, such as 60s, 500ms or 2m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(super) after: Option<Duration>,
    /// Stop the command when its output matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    until: Option<String>,
    /// Command line that sends requests to the command, such as a server; the command is stopped when it ends
    #[arg(long, value_name = "LINE")]
    request: Option<String>,
    /// Start the request when the command's output matches this regular expression
    #[arg(long, value_name = "PATTERN", requires = "request")]
    ready: Option<String>,
    /// Also write mean, standard deviation, median, user, system, min and max, in seconds, to a CSV file
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
}

impl RunArguments {
    /// The first flag that is given; none says anything of a model.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let flags = [
            ("--runs", self.runs.is_some()),
            ("--warmup", self.warmup.is_some()),
            ("--prepare", self.prepare.is_some()),
            ("--cleanup", self.cleanup.is_some()),
            ("--for", self.after.is_some()),
            ("--until", self.until.is_some()),
            ("--request", self.request.is_some()),
            ("--csv", self.csv.is_some()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// When the command is ended.
    pub(super) fn end(&self) -> Result<CommandEnd, UserError> {
        let pattern = |flag: &'static str, text: &Option<String>| {
            text.as_deref().map(|text| flow::command::pattern(flag, text)).transpose()
        };
        Ok(CommandEnd {
            after: self.after,
            until: pattern("--until", &self.until)?,
            request: self.request.clone(),
            ready: pattern("--ready", &self.ready)?,
        })
    }
}
