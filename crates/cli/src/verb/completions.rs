//! `llm-perf completions`: a completion script for a shell.

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use types::{Exit, UserError};

use super::command_line::CommandLine;
use crate::context::Context;

/// Print a shell completion script
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Shell to complete for
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    // Into memory first: the generator panics when its writer fails, and a closed pipe is no reason to panic.
    let mut script = Vec::new();
    generate(arguments.shell, &mut CommandLine::command(), "llm-perf", &mut script);
    context.messages.data(|out| out.write_all(&script))?;
    Ok(Exit::Done)
}
