//! `llm-perf run`: a program with the collector in it, which waits until `attach` asks for a recording.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use types::{Exit, UserError};

use crate::context::Context;

/// Start a command that `attach` can record at any time
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Command, after `--`; without one, the environment variables are printed
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let variables = flow::inject::waiting_variables()?;
    let Some((program, words)) = arguments.command.split_first() else {
        let line = |(name, value): &(OsString, OsString)| format!("{}={}\n", name.display(), value.display());
        context.messages.print(&variables.iter().map(line).collect::<String>())?;
        return Ok(Exit::Done);
    };
    // A recording that is started by these would be in the way of those that are asked for.
    let error = Command::new(program).args(words).envs(variables).env_remove("LLM_PERF_INJECT_FOLDER").exec();
    Err(UserError::failed(format!("cannot start {}", program.display())).because(error.to_string()))
}
