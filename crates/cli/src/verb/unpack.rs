//! `llm-perf unpack`: a packed run as a folder again.

use std::path::PathBuf;

use flow::unpack;
use types::{Exit, UserError};

use crate::bundle::describe;
use crate::context::Context;

/// Unpack a packed run
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Bundle to unpack
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Run folder to create [default: tmp/profile-output/NAME, after the name of FILE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the index of the bundle as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let unpacked = context.telling(|tell| unpack::unpack(&arguments.file, arguments.out.as_deref(), tell))?;
    describe(&unpacked.index, arguments.json, &context.messages);
    context.messages.print_answer(arguments.json, &unpacked.index, || format!("{}\n", unpacked.folder.display()))
}
