//! `llm-perf export`: the timeline of a run for other tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flow::export::{self, ExportFormat};
use flow::runs::{self, RunPurpose};
use types::{Exit, UserError};

use crate::choice::one_of;
use crate::context::Context;

/// Export a timeline to Perfetto and other tools
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run: its name or a prefix of it, `latest`, or its folder
    #[arg(value_name = "RUN")]
    run: OsString,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&ExportFormat::ALL))]
    format: ExportFormat,
    /// File to write, or folder for parquet [default: RUN.FORMAT in the current folder, such as RUN.perfetto.json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let run = runs::find(Path::new(runs::DEFAULT_ROOT), &arguments.run, RunPurpose::Export)?;
    let path = export::export(&run, arguments.format, arguments.out.as_deref())?;
    context.messages.print_path(&path)
}
