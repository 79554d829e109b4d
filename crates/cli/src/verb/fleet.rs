//! `llm-perf fleet`: many ranks of a job, many runs over time.

use std::path::PathBuf;

use config::Overrides;
use flow::fleet::{self, FleetRequest};
use types::{Exit, UserError};

use crate::context::Context;
use crate::resolution;
use crate::subject;

/// Compare the ranks of a job, or track runs over time
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folders with one trace per rank, or with tables from `llm-perf import --tables`; with --runs, folders with runs
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Track every metric of the runs over time and find where it changed
    #[arg(long)]
    runs: bool,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let given = Overrides::default();
    let config = resolution::compose(&given, context)?;
    let request = FleetRequest {
        folders: arguments.folders.clone(),
        runs: arguments.runs,
        subject: subject::named(&config, None, context)?,
        regions: subject::regions(&config)?,
    };
    let run = resolution::run_request("fleet", &config, &given, arguments.out.as_deref())?;
    let found = context.telling(|tell| fleet::fleet(&request, run, tell))?;
    context.messages.print_answer(arguments.json, &found.value, || fleet::terminal(&found.value))?;
    Ok(context.messages.ended(&found, &[("report", "report.html")]))
}
