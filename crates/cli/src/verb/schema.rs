//! `llm-perf schema`: the JSON Schema of a document the tool writes.

use types::{Exit, UserError};

use crate::context::Context;
use crate::screen::{ScreenTable, terminal_width};

/// Print the JSON Schema of a document, or list the documents
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Document, such as `metrics` or `llm-perf/metrics/1` [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the list as JSON; a schema is always JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    if let Some(name) = &arguments.name {
        return context.messages.print_json(&flow::validate::schema(name)?);
    }
    let schemas = flow::validate::schemas();
    context.messages.print_answer(arguments.json, &schemas, || {
        let mut table = ScreenTable::default();
        schemas.documents.iter().for_each(|document| table.row([&document.name, &document.about]));
        table.text(terminal_width())
    })
}
