//! `llm-perf fleet`: many ranks of a job, many runs over time.

use std::path::PathBuf;

use config::Overrides;
use flow::fleet::{self, FleetRequest};
use flow::import::{NamedSubject, NcuPreset, RegionChoice};
use types::{Exit, UserError};

use crate::context::Context;
use crate::resolution;

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
    let regions = RegionChoice::new(&config.get::<NcuPreset>("pipeline.ncu")?)
        .map_err(|(key, error)| UserError::usage(format!("pipeline.ncu.ncu_cli.{key}: {error}")))?;
    let request = FleetRequest {
        folders: arguments.folders.clone(),
        runs: arguments.runs,
        subject: NamedSubject {
            name: None,
            model: None,
            workload: resolution::workload::request(&config, false)?,
            hardware: resolution::hardware(&config)?,
            config_dir: context.config_dir.clone(),
        },
        regions,
    };
    let run = resolution::run_request("fleet", &config, &given, arguments.out.as_deref())?;
    let found = context.progress(|display| fleet::fleet(&request, run, &mut |doing| display.doing(doing)))?;
    context.messages.print_answer(arguments.json, &found.fleet, || fleet::terminal(&found.fleet))?;
    Ok(context.messages.finish(&found.missing, &[("report", found.folder.join("report.html"))]))
}
