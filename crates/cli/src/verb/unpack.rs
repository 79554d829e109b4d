//! `llm-perf unpack`: a packed run as a folder again.

use std::path::PathBuf;

use flow::unpack;
use types::Exit;

use crate::bundle::describe;
use crate::context::Context;
use crate::error::CliError;

/// Unpack a run that was packed
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The run folder to create [default: tmp/profile-output and the name of the file]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON: the index of the bundle
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf unpack slow-decode.llmperf
  llm-perf unpack before.llmperf --out before && llm-perf show ./before

Everything that reads a run reads the folder: show, report, compare, whatif, export, validate. A
bundle that was cut off or altered is refused, and nothing of it is left behind.

Exit codes:
  0 unpacked, 1 the file is no bundle, was altered or needs a newer llm-perf, 2 wrong usage, or the
  folder is in use";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let unpacked = context.progress(|display| {
        unpack::unpack(&arguments.file, arguments.out.as_deref(), &mut |doing| display.doing(doing))
    })?;
    describe(&unpacked.index, arguments.json, &context.messages);
    context.messages.print_answer(arguments.json, &unpacked.index, || format!("{}\n", unpacked.folder.display()))?;
    Ok(Exit::Done)
}
