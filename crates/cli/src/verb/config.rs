//! `llm-perf config`: the resolved configuration, where its values came from, and what can be chosen.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use config::{Config, Group, Overrides};
use flow::printable;
use serde::Serialize;
use types::{Exit, UserError};

use crate::context::Context;
use crate::resolution;

/// Show the resolved configuration and its keys
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Overrides, applied in order: key=value, group=option, group@package=option, +new.key=value, ++key=value, ~key
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// Show each value on its own line, with the file or override that set it
    #[arg(long)]
    explain: bool,
    /// List the groups with their options and mount points
    #[arg(long, conflicts_with = "explain")]
    groups: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let config = resolution::compose(&Overrides::typed(&arguments.overrides)?, context)?;
    let (messages, json) = (&context.messages, arguments.json);
    if arguments.groups {
        let groups = resolution::composer(context)?.groups();
        messages.print_answer(json, &groups_json(&groups, &config), || groups_text(&groups, &config))?;
    } else if arguments.explain {
        messages.print_answer(json, &config.explain(), || explained_text(&config))?;
    } else {
        messages.print_answer(json, config.root(), || config.to_yaml())?;
    }
    Ok(Exit::Done)
}

/// One line per value: the setting, then where it came from, in one column.
fn explained_text(config: &Config) -> String {
    /// A longer setting pushes its own comment out and no other.
    const WIDEST: usize = 60;
    let lines: Vec<(String, String)> = config
        .explain()
        .into_iter()
        .map(|one| {
            let written = one.written.as_ref().map(|written| format!("  {written}")).unwrap_or_default();
            (one.setting(), format!("{}{written}", one.origin))
        })
        .collect();
    let width = lines.iter().map(|(setting, _)| setting.chars().count()).filter(|width| *width <= WIDEST).max();
    let width = width.unwrap_or_default();
    lines.into_iter().fold(String::new(), |mut text, (setting, origin)| {
        let _ = writeln!(text, "{:<width$}  # {}", printable(&setting), printable(&origin));
        text
    })
}

fn groups_text(groups: &[Group], config: &Config) -> String {
    let mut text = String::new();
    for group in groups {
        let mounts: Vec<_> = config.mounts().iter().filter(|mount| mount.group == group.name).collect();
        let packages: Vec<&str> = mounts.iter().map(|mount| mount.place()).collect();
        let place = if packages.is_empty() { "not mounted".into() } else { format!("at {}", packages.join(", ")) };
        let _ = writeln!(text, "{}  ({})", printable(&group.name), printable(&place));
        for (option, _) in &group.options {
            let chosen = mounts.iter().any(|mount| mount.option.as_ref() == Some(option));
            let _ = writeln!(text, "  {} {}", if chosen { '*' } else { ' ' }, printable(option));
        }
    }
    text
}

/// One group as JSON.
#[derive(Serialize)]
struct GroupRow<'a> {
    group: &'a str,
    /// By key: the option mounted there.
    mounts: BTreeMap<&'a str, Option<&'a str>>,
    options: Vec<OptionRow<'a>>,
}

#[derive(Serialize)]
struct OptionRow<'a> {
    name: &'a str,
    file: &'a str,
}

fn groups_json<'a>(groups: &'a [Group], config: &'a Config) -> Vec<GroupRow<'a>> {
    let row = |group: &'a Group| GroupRow {
        group: &group.name,
        mounts: (config.mounts().iter())
            .filter(|mount| mount.group == group.name)
            .map(|mount| (mount.package.as_str(), mount.option.as_deref()))
            .collect(),
        options: group.options.iter().map(|(name, file)| OptionRow { name, file }).collect(),
    };
    groups.iter().map(row).collect()
}
