//! `llm-perf schema`: the JSON Schema of a document the tool writes.

use types::Exit;

use crate::arguments::Context;
use crate::error::CliError;
use crate::table::Table;

/// Show the JSON Schema of a document, or list the documents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Document, such as `metrics` or `llm-perf/metrics/1`; all are listed without one
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the list as JSON; a schema always is
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf schema                          every document with a line about it
  llm-perf schema metrics > metrics.schema.json
  llm-perf schema llm-perf/manifest/1";

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    match (&arguments.name, arguments.json) {
        (Some(name), _) => {
            let schema = flow::validate::schema(name)?;
            context.messages.print_json(&schema)?;
        }
        (None, true) => context.messages.print_json(&flow::validate::schemas())?,
        (None, false) => {
            let mut table = Table::default();
            flow::validate::schemas()
                .documents
                .iter()
                .for_each(|document| table.row([&document.name, &document.about]));
            context.messages.print(&table.to_string())?;
        }
    }
    Ok(Exit::Done)
}
