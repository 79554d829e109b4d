//! `llm-perf workloads`: the workload profiles, and the settings of one.

use std::collections::BTreeMap;

use config::Overrides;
use flow::WorkloadSettings;
use types::{Exit, UserError};

use crate::context::Context;
use crate::resolution::{self, ModelFlags};
use crate::screen::{ScreenTable, terminal_width};

/// List the workload profiles, or show one
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Workload profile [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let messages = &context.messages;
    let composer = resolution::composer(context)?;
    let compose = |name: &str| {
        let flags = ModelFlags { workload: Some(name), ..ModelFlags::default() };
        composer.compose(&flags.overrides(&Overrides::default()))
    };
    if let Some(name) = &arguments.name {
        let config = compose(name)?;
        let settings =
            config.root().at("workload").ok_or_else(|| UserError::failed("the configuration has no workload"))?;
        return messages.print_answer(arguments.json, settings, || config::to_yaml(settings));
    }
    let mut profiles = BTreeMap::new();
    for group in composer.groups().into_iter().filter(|group| group.name == "workload") {
        for (name, _) in group.options {
            let settings: WorkloadSettings = compose(&name)?.get("workload")?;
            profiles.insert(name, settings.description);
        }
    }
    messages.print_answer(arguments.json, &profiles, || {
        let mut table = ScreenTable::new("NAME | ABOUT");
        profiles.iter().for_each(|row| table.row([row.0, row.1]));
        table.text(terminal_width())
    })
}
