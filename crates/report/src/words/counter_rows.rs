//! The rows of data-quality counters, and what people call each.

use std::sync::LazyLock;

use super::rows::{Row, rows};

/// What it means and what to do: templates, of which all that can be said are joined.
pub(super) static COUNTERS: LazyLock<Vec<Row>> = LazyLock::new(|| rows(include_str!("counters.txt")));

/// What people call a counter; its id in words where it has no row.
pub(crate) fn title(counter: &str) -> String {
    let row = COUNTERS.iter().find(|row| row.id == counter);
    row.map_or_else(|| counter.replace('_', " "), |row| row.title.to_owned())
}
