//! `llm-perf fleet`: many ranks of a job, many runs over time.

use std::path::PathBuf;

use config::Overrides;
use flow::fleet::{self, FleetRequest};
use flow::import::{NamedSubject, NcuPreset, RegionChoice};
use types::Exit;

use crate::context::Context;
use crate::error::CliError;
use crate::resolution;

/// Compare the ranks of a job, or follow runs over time
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folders of tables (see `llm-perf import --tables`) or of traces, one for each rank; with `--runs`, folders of runs
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Follow every quantity of the runs over time and find where it changed
    #[arg(long)]
    runs: bool,
    /// The run folder; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf fleet traces/
  ls traces/*.json.gz | xargs -P 8 -I {} llm-perf import {} --tables tables --job monday
  llm-perf fleet tables
  llm-perf fleet --runs tmp/profile-output

Clocks of the ranks are brought together by the ends of collectives that they share, and the
uncertainty is printed. On that clock: which rank the others wait for and why, transfer time and
bandwidth of each collective, a device or a group that is slower than its equals, the critical path
over ranks, and which ranks are missing. Nothing is said of what a missing rank may have caused.

Exit codes:
  0 done, 1 a file cannot be read, 2 wrong usage or nothing to read, 3 some traces could not be read, or not whole";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let given = Overrides::default();
    let config = resolution::compose(&given, context)?;
    let regions = RegionChoice::new(&config.get::<NcuPreset>("pipeline.ncu")?)
        .map_err(|(key, error)| CliError::usage(format!("pipeline.ncu.ncu_cli.{key}: {error}")))?;
    let request = FleetRequest {
        folders: arguments.folders.clone(),
        runs: arguments.runs,
        subject: NamedSubject {
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
