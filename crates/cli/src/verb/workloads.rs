//! `llm-perf workloads`: the workload profiles, and the settings of one.

use std::collections::BTreeMap;

use config::Overrides;
use flow::WorkloadSettings;
use types::Exit;

use crate::context::Context;
use crate::error::CliError;
use crate::resolution::{self, ModelFlags};
use flow::Table;

/// List the workload profiles, or show the settings of one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A workload profile
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf workloads
  llm-perf workloads dsocr-standard-v1
  llm-perf --config-dir my-conf workloads      with the profiles in my-conf/workload/*.yaml
  llm-perf analyze --workload dsocr-gundam-2x3 workload.batch=4";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let messages = &context.messages;
    let composer = resolution::composer(context)?;
    let compose = |name: &str| {
        let flags = ModelFlags { workload: Some(name), ..ModelFlags::default() };
        composer.compose(&flags.overrides(&Overrides::default()))
    };
    if let Some(name) = &arguments.name {
        let config = compose(name)?;
        let settings = config.root().at("workload").ok_or_else(|| CliError::failed("no workload is mounted"))?;
        messages.print_answer(arguments.json, settings, || config::to_yaml(settings))?;
        return Ok(Exit::Done);
    }
    let mut profiles = BTreeMap::new();
    for group in composer.groups().into_iter().filter(|group| group.name == "workload") {
        for (name, _) in group.options {
            let settings: WorkloadSettings = compose(&name)?.get("workload")?;
            profiles.insert(name, settings.description);
        }
    }
    messages.print_answer(arguments.json, &profiles, || {
        let mut table = Table::new("NAME | ABOUT");
        profiles.iter().for_each(|row| table.row([row.0, row.1]));
        table.to_string()
    })?;
    Ok(Exit::Done)
}
