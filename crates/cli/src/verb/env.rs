//! `llm-perf env`: the machine and the software on it, as `env.json` of a run records them.

use types::{Exit, UserError};

use crate::context::Context;

/// Print the hardware and software of this machine as JSON
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON; this is the default
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(_: &Arguments, context: &Context) -> Result<Exit, UserError> {
    context.messages.print_json(&flow::environment::capture(context.config_dir.as_deref())?)
}
