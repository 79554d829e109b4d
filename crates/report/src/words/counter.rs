//! Says data-quality counters.

use std::sync::LazyLock;

use types::QualityCounter;

use super::remark;
use super::rows::{Row, rows};
use super::template::lines;

/// What it means and what to do: templates, of which all that can be said are joined.
static COUNTERS: LazyLock<Vec<Row>> = LazyLock::new(|| rows(include_str!("counters.txt")));

/// What people call a counter; its id in words where it has no row.
pub(crate) fn title(counter: &str) -> String {
    let row = COUNTERS.iter().find(|row| row.id == counter);
    row.map_or_else(|| counter.replace('_', " "), |row| row.title.to_owned())
}

/// Says a counter, unless it is said already.
pub(crate) fn say(counter: &mut QualityCounter) {
    if !counter.remedy.is_empty() {
        return;
    }
    remark::say_all(&mut counter.quantities);
    if let Some(row) = COUNTERS.iter().find(|row| row.id == counter.counter) {
        counter.remedy = lines(&row.templates, &counter.quantities).join(" ");
    }
}
