//! `llm-perf show`: a finished run at a glance, in the terminal, or its page served to a browser.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::Style;
use flow::page::ServedPage;
use flow::runs::{self, RunPurpose};
use flow::show::{self, Glance};
use types::{Exit, Stage, UserError};

use crate::choice::stage;
use crate::context::Context;
use crate::screen::stdout_width;

/// Columns where the output is no terminal.
const COLUMNS: usize = 100;
const STRONG: Style = Style::new().bold();

/// Show a run in the terminal
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run: its name or a prefix of it, `latest`, or its folder
    #[arg(value_name = "RUN", default_value = "latest")]
    run: OsString,
    /// Show only one stage, such as decode
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    stage: Option<Stage>,
    /// Number of causes, operators and kernels to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Serve the page of the run, with every event, to a browser on this machine until interrupted
    #[arg(long, conflicts_with_all = ["json", "stage"])]
    page: bool,
    /// Port of the page on 127.0.0.1 [default: any free one]
    #[arg(long, value_name = "N", requires = "page")]
    port: Option<u16>,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_ROOT)]
    root: PathBuf,
    /// Print the run's metrics.json
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let run = runs::find(&arguments.root, &arguments.run, RunPurpose::Compare)?;
    if arguments.page {
        let page = ServedPage::of_run(&run, arguments.port.unwrap_or(0))?;
        context.messages.print(&format!("{}\n", page.address()))?;
        page.serve();
        return Ok(Exit::Done);
    }
    let metrics = show::metrics(&run)?;
    let glance = Glance { stage: arguments.stage, top: arguments.top, width: stdout_width().unwrap_or(COLUMNS) };
    let paint = context.messages.paint_stdout();
    context
        .messages
        .print_answer(arguments.json, &metrics, || show::text(&metrics, &glance, |text| paint.with(STRONG, text)))
}
