//! The run in a sentence or two, as its page begins.

use types::view::RunView;

use super::phrase::imported_facts;
use super::{command, imported, report};

/// What matters first: of a command, of files that another tool wrote, or of a model that was measured here.
pub(crate) fn headline(run: &RunView<'_>) -> String {
    if let Some(command) = run.commands.first() {
        return command::headline(command) + ".";
    }
    match imported_facts(run.metrics) {
        Some(_) => imported::headline(run),
        None => report::measured(run),
    }
}
