//! `llm-perf export`: the timeline of a run for other tools.

use std::path::{Path, PathBuf};

use flow::export::{self, ExportFormat};
use flow::runs::{self, RunPurpose};
use types::Exit;

use crate::context::Context;
use crate::error::CliError;

/// Export the timeline of a run for Perfetto, speedscope and other tools
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run: its name, the start of it, `latest`, or the path of its folder
    #[arg(value_name = "RUN")]
    run: String,
    /// SQLite as Nsight Systems exports it, trace events, stacks for a flame graph, or Parquet tables
    #[arg(long, value_enum)]
    format: FormatName,
    /// The file to write [default: RUN and the format, such as RUN.perfetto.json, in the current folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf export latest --format perfetto
  llm-perf export latest --format sqlite --out report.sqlite
  llm-perf export latest --format parquet --out tables
  llm-perf export latest --format collapsed --out stacks.txt && inferno-flamegraph stacks.txt > flame.svg

Exports the kernels, copies, API calls, operators and NVTX ranges of a run that recorded them: one
made by `profile -- COMMAND` on a GPU, or an import whose files still exist. A run of the native
engine has its first input as stages, modules, operators and lost time, for Perfetto. Open perfetto
at https://ui.perfetto.dev, speedscope at https://www.speedscope.app, firefox at
https://profiler.firefox.com. speedscope, firefox and collapsed hold stacks: on a stream, a kernel
stands beneath the ranges and operators that launched it. parquet is a folder of tables, for SQL.";

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    Sqlite,
    Perfetto,
    Speedscope,
    Firefox,
    Collapsed,
    Parquet,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let format = match arguments.format {
        FormatName::Sqlite => ExportFormat::Sqlite,
        FormatName::Perfetto => ExportFormat::Perfetto,
        FormatName::Speedscope => ExportFormat::Speedscope,
        FormatName::Firefox => ExportFormat::Firefox,
        FormatName::Collapsed => ExportFormat::Collapsed,
        FormatName::Parquet => ExportFormat::Parquet,
    };
    let run = runs::find(Path::new(runs::DEFAULT_ROOT), &arguments.run, RunPurpose::Export)?;
    let path = export::export(&run, format, arguments.out.as_deref())?;
    context.messages.print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}
