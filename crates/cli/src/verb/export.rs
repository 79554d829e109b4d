//! `llm-perf export`: the timeline of a run for other tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flow::export::{self, ExportFormat};
use flow::runs::{self, RunPurpose};
use types::{Exit, UserError};

use crate::context::Context;

/// Export a timeline to Perfetto and other tools
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run: its name or a prefix of it, `latest`, or its folder
    #[arg(value_name = "RUN")]
    run: OsString,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: FormatName,
    /// File to write, or folder for parquet [default: RUN.FORMAT in the current folder, such as RUN.perfetto.json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    Perfetto,
    Collapsed,
    Parquet,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let format = match arguments.format {
        FormatName::Perfetto => ExportFormat::Perfetto,
        FormatName::Collapsed => ExportFormat::Collapsed,
        FormatName::Parquet => ExportFormat::Parquet,
    };
    let run = runs::find(Path::new(runs::DEFAULT_ROOT), &arguments.run, RunPurpose::Export)?;
    let path = export::export(&run, format, arguments.out.as_deref())?;
    context.messages.print_path(&path)?;
    Ok(Exit::Done)
}
