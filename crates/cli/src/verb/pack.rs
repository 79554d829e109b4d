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
#[command(after_help = EXAMPLES)]
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

const EXAMPLES: &str = "\
Examples:
  llm-perf pack latest
  llm-perf pack latest --redact --out slow-decode.llmperf
  llm-perf pack results/before --json | jq .left_out

`llm-perf unpack FILE` restores the run folder byte for byte on any machine. The bundle of an \
imported run includes the original traces, so the run can be replayed and exported there.

With --redact, values that identify you are replaced with `redacted-KIND-HASH`. Equal values get \
equal hashes; the hashes are salted, so values cannot be guessed. Names of kernels, operators, \
modules and NVTX ranges stay, and so do SHA-256 digests of inputs. Raw profiler files, logs and HTML \
pages are omitted; `left_out` in the index lists them. Review the file before you share it.

Exit codes:
  0 packed, 1 the run does not match its manifest or the file cannot be written, 2 wrong usage";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let run = runs::find(&arguments.root, &arguments.run, RunPurpose::Show)?;
    let packed = context.progress(|display| {
        pack::pack(&run, arguments.out.as_deref(), arguments.redact, &mut |doing| display.doing(doing))
    })?;
    describe(&packed.index, arguments.json, &context.messages);
    context.messages.print_answer(arguments.json, &packed.index, || format!("{}\n", packed.path.display()))?;
    Ok(Exit::Done)
}
