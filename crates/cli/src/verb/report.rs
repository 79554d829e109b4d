//! `llm-perf report`: a run, or two runs beside each other, as one page for a browser.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use flow::compare::{self, CompareRequest};
use flow::page;
use flow::runs::{self, RunPurpose};
use types::{Exit, UserError};

use crate::context::Context;

/// Write a run, or a comparison of two runs, as one HTML page
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run: its name or a prefix of it, `latest`, or its folder
    #[arg(value_name = "RUN")]
    run: OsString,
    /// Second run to compare it with
    #[arg(value_name = "WITH", conflicts_with = "full")]
    with: Option<OsString>,
    /// File to write [default: RUN.html or RUN-WITH.html in the current folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the charts of the page to a folder, as SVG files
    #[arg(long, value_name = "DIR", conflicts_with = "with")]
    charts: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Keep all events of the timeline, even if the page becomes large
    #[arg(long)]
    full: bool,
    /// Folder that contains the runs
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_ROOT)]
    root: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let (name, html) = match &arguments.with {
        None => of_run(arguments, context)?,
        Some(with) => of_comparison(arguments, with)?,
    };
    let path = arguments.out.clone().unwrap_or_else(|| PathBuf::from(name));
    page::write(&path, &html)?;
    context.messages.print_path(&path)?;
    if arguments.open
        && let Err(error) = flow::open_file(&path)
    {
        context.messages.warning(format_args!("cannot open the page in a browser: {error}"));
    }
    Ok(Exit::Done)
}

fn of_run(arguments: &Arguments, context: &Context) -> Result<(String, String), UserError> {
    let run = runs::find(&arguments.root, &arguments.run, RunPurpose::Compare)?;
    let page = page::of_run(&run, arguments.full)?;
    if let Some(reason) = &page.no_timeline {
        context.messages.note(format_args!("the page has no timeline: {reason}"));
    }
    if let Some(folder) = &arguments.charts {
        for file in page::write_charts(&run, folder)? {
            context.messages.note(format_args!("chart: {}", file.display()));
        }
    }
    Ok((format!("{}.html", run.manifest().run_id), page.html))
}

fn of_comparison(arguments: &Arguments, with: &OsStr) -> Result<(String, String), UserError> {
    let side = |selector: &OsStr| vec![selector.to_owned()];
    let request = CompareRequest {
        root: arguments.root.clone(),
        base: side(&arguments.run),
        with: side(with),
        tried: None,
        fail_over: None,
    };
    let comparison = compare::compare(&request)?;
    let id = |runs: &[types::ComparedRun]| runs.first().map(|run| run.id.clone()).unwrap_or_default();
    let name = format!("{}-{}.html", id(&comparison.base), id(&comparison.with));
    // An imported document may call its run anything.
    let name = Path::new(&name).file_name().map_or_else(|| "comparison.html".into(), |name| name.to_string_lossy());
    Ok((name.into_owned(), page::of_comparison(&comparison)))
}
