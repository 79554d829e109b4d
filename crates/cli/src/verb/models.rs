//! `llm-perf models`: the built-in models, and what one is made of.

use std::fmt::Write as _;

use flow::model::{self, ConfigSource, LoadedModel, ModelSettings};
use serde::Serialize;

use super::analyze::model_error;
use crate::arguments::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::table::Table;

/// List the built-in models, or show one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A built-in model
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf models
  llm-perf models deepseek-ocr
  llm-perf models --json

Any config.json of a supported architecture works as well: llm-perf analyze --model FILE";

/// One model as JSON.
#[derive(Serialize)]
struct ModelRow {
    name: String,
    about: String,
    architecture: &'static str,
    parameters: u64,
    parameters_by_module: Vec<(String, u64)>,
    dtype: types::DType,
    layers: u64,
    hidden_size: u64,
    vision: Option<&'static str>,
    mixes_experts: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let rows = match &arguments.name {
        None => model::presets().iter().map(|preset| row(preset.name)).collect::<Result<Vec<_>, _>>()?,
        Some(name) => vec![row(name)?],
    };
    match (arguments.json, &arguments.name, rows.first()) {
        (true, _, _) => context.messages.print_json(&rows)?,
        (false, Some(_), Some(row)) => context.messages.print(&detail(row))?,
        _ => context.messages.print(&overview(&rows))?,
    }
    Ok(Exit::Done)
}

fn row(name: &str) -> Result<ModelRow, CliError> {
    let settings = ModelSettings {
        name: name.to_owned(),
        config: ConfigSource::Builtin,
        config_path: None,
        dtype: None,
        revision: None,
        notes: None,
    };
    let loaded = model::load(&settings).map_err(|error| model_error(&error))?;
    let about = model::presets().iter().find(|preset| preset.name == name).map_or("", |preset| preset.about);
    let facts = loaded.config.facts();
    Ok(ModelRow {
        name: name.to_owned(),
        about: about.to_owned(),
        architecture: facts.class,
        parameters: loaded.network.blueprint().parameters_under(""),
        parameters_by_module: parts(&loaded),
        dtype: loaded.dtype,
        layers: facts.layers,
        hidden_size: facts.width,
        vision: facts.vision_backbone,
        mixes_experts: facts.mixes_experts,
    })
}

/// Parameters of the parts a reader would name: at most two steps into the tree.
fn parts(loaded: &LoadedModel) -> Vec<(String, u64)> {
    let blueprint = loaded.network.blueprint();
    let named = blueprint.modules().filter(|(_, entry)| !entry.path.is_empty() && entry.path.split('.').count() <= 2);
    let counted = named.map(|(_, entry)| (entry.path.clone(), blueprint.parameters_under(&entry.path)));
    counted.filter(|(_, count)| *count > 0).collect()
}

fn overview(rows: &[ModelRow]) -> String {
    let mut table = Table::with_heads(["NAME", "PARAMETERS", "DTYPE", "LAYERS", "ABOUT"]).align_right(1).align_right(3);
    for row in rows {
        let layers = row.layers.to_string();
        table.row([&row.name, &grouped(row.parameters), row.dtype.name(), &layers, &row.about]);
    }
    table.to_string()
}

fn detail(row: &ModelRow) -> String {
    let mut text = format!("{}\n{}\n\n", row.name, row.about);
    let mut table = Table::default().align_right(1);
    table.row(["architecture", row.architecture]);
    table.row(["parameters", &grouped(row.parameters)]);
    table.row(["dtype", row.dtype.name()]);
    table.row(["layers", &row.layers.to_string()]);
    table.row(["hidden size", &row.hidden_size.to_string()]);
    table.row(["vision", row.vision.unwrap_or("none")]);
    table.row(["mixes experts", if row.mixes_experts { "yes" } else { "no" }]);
    let _ = writeln!(text, "{table}");
    let mut table = Table::with_heads(["MODULE", "PARAMETERS"]).align_right(1);
    for (path, count) in &row.parameters_by_module {
        table.row([path, &grouped(*count)]);
    }
    let _ = write!(text, "{table}");
    text
}

/// A count with thousands separators.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(3_336_106_240), "3,336,106,240");
    }
}
