//! `llm-perf pack`: a run as one file.

use std::ffi::OsString;
use std::path::PathBuf;

use flow::pack;
use flow::runs::{self, RunPurpose};
use types::{Exit, UserError};

use crate::bundle::describe;
use crate::context::Context;

/// Pack a run into one file to share
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run: its name or a prefix of it, `latest`, or its folder
    #[arg(value_name = "RUN")]
    run: OsString,
    /// Redact paths, host, user, inputs, prompts, environment values and command lines
    #[arg(long)]
    redact: bool,
    /// File to write [default: RUN.llmperf in the current folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_ROOT)]
    root: PathBuf,
    /// Print the index of the bundle as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let run = runs::find(&arguments.root, &arguments.run, RunPurpose::Show)?;
    let packed = context.telling(|tell| pack::pack(&run, arguments.out.as_deref(), arguments.redact, tell))?;
    describe(&packed.index, arguments.json, &context.messages);
    context.messages.print_answer(arguments.json, &packed.index, || format!("{}\n", packed.path.display()))
}
