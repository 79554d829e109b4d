//! `llm-perf workloads`: the workload profiles, and the settings of one.

use flow::WorkloadSettings;
use types::Exit;

use crate::arguments::Context;
use crate::config::Composer;
use crate::error::CliError;
use crate::table::Table;

/// List the workload profiles, or show the settings of one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A profile
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
    let composer = Composer::new(context.config_dir.as_deref())?;
    let messages = &context.messages;
    if let Some(name) = &arguments.name {
        let config = composer.compose(&[format!("workload={name}")])?;
        let settings = config.root().at("workload").ok_or_else(|| CliError::failed("no workload is mounted"))?;
        if arguments.json {
            messages.print_json(settings)?;
        } else {
            messages.print(&crate::config::to_yaml(settings))?;
        }
        return Ok(Exit::Done);
    }
    let groups = composer.groups();
    let group = groups.iter().find(|group| group.name == "workload");
    let names: Vec<&str> = group.iter().flat_map(|group| group.options.iter().map(|(name, _)| name.as_str())).collect();
    let mut rows = Vec::new();
    for name in names {
        let config = composer.compose(&[format!("workload={name}")])?;
        rows.push((name, config.get::<WorkloadSettings>("workload")?));
    }
    if arguments.json {
        let listed: Vec<_> = rows.iter().map(|(name, settings)| (name, &settings.description)).collect();
        messages.print_json(&listed.into_iter().collect::<std::collections::BTreeMap<_, _>>())?;
        return Ok(Exit::Done);
    }
    let mut table = Table::with_heads(["NAME", "ABOUT"]);
    for (name, settings) in &rows {
        table.row([*name, &settings.description]);
    }
    messages.print(&table.to_string())?;
    Ok(Exit::Done)
}
