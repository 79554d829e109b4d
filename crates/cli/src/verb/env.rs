//! `llm-perf env`: the machine and the software on it, as `env.json` of a run records them.

use types::Exit;

use crate::arguments::Context;
use crate::error::CliError;


/// Describe this machine and the software on it, as JSON
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print JSON, which is what it prints anyway
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf env > env.json
  llm-perf env | jq '.gpus[].name'

Environment variables are not shown, except a fixed list of those that change how work runs.";

pub(crate) fn run(_: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let environment =
        flow::environment::capture(context.config_dir.as_deref())?;
    context.messages.print_json(&environment)?;
    Ok(Exit::Done)
}
