//! `llm-perf pack`: a run as one file.

use std::path::PathBuf;

use flow::pack;
use flow::runs::{self, RunPurpose};
use types::Exit;

use crate::bundle::describe;
use crate::context::Context;
use crate::error::CliError;

/// Pack a run into one file to pass on
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run: its name, the start of it, `latest`, or the path of its folder
    #[arg(value_name = "RUN")]
    run: String,
    /// Take out paths, host, user, inputs, prompts, environment values and command lines
    #[arg(long)]
    redact: bool,
    /// The file to write [default: RUN.llmperf in the current folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_ROOT)]
    root: PathBuf,
    /// Print JSON: the index of the bundle
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf pack latest
  llm-perf pack latest --redact --out slow-decode.llmperf
  llm-perf pack results/before --json | jq .left_out

`llm-perf unpack FILE` makes the run folder again, byte for byte, on any machine. A run that was
imported is packed with the traces it was read from, so that it can be replayed and exported there.

With --redact, values that identify you are replaced by `redacted-KIND-HASH`. Equal values get equal
hashes, and the hashes are salted, so that a value cannot be found by trying likely ones. Names of
kernels, operators, modules and NVTX ranges stay, as do SHA-256 digests of inputs. Raw files of
profilers, logs and HTML pages are left out; `left_out` of the index lists them. Look at what is
left before you pass the file on.

Exit codes:
  0 packed, 1 the run is not as its manifest lists it or the file cannot be written, 2 wrong usage";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let run = runs::find(&arguments.root, &arguments.run, RunPurpose::Show)?;
    let packed = context.progress(|display| {
        pack::pack(&run, arguments.out.as_deref(), arguments.redact, &mut |doing| display.doing(doing))
    })?;
    describe(&packed.index, arguments.json, &context.messages);
    context.messages.print_answer(arguments.json, &packed.index, || format!("{}\n", packed.path.display()))?;
    Ok(Exit::Done)
}
