//! What each data-quality counter says: one row a counter.

use types::QualityCounter;

use super::template::lines;

/// The words of a counter.
pub(crate) struct CounterWords {
    /// Its id, as in documents.
    pub(crate) counter: &'static str,
    /// What people call it, in the plural.
    pub(crate) title: &'static str,
    /// What it means and what to do: templates, of which all that can be said are joined.
    pub(crate) remedy: &'static [&'static str],
}

/// Every counter.
pub(crate) const COUNTERS: &[CounterWords] = &[CounterWords {
    counter: "busy_above_wall",
    title: "GPU busy times above wall time",
    remedy: &[
        "GPU busy time is left out where it exceeds the host's wall time: the host did not wait for the GPU.",
        "*parts {part}: busy {busy}, wall {wall}.",
    ],
}];

/// What people call a counter; its id in words where it has no row.
pub(crate) fn title(counter: &str) -> String {
    let row = COUNTERS.iter().find(|row| row.counter == counter);
    row.map_or_else(|| counter.replace('_', " "), |row| row.title.to_owned())
}

/// Says a counter, unless it is said already.
pub(crate) fn say(counter: &mut QualityCounter) {
    let row = COUNTERS.iter().find(|row| row.counter == counter.counter);
    if let Some(row) = row.filter(|_| counter.remedy.is_empty()) {
        counter.remedy = lines(row.remedy, &counter.quantities).join(" ");
    }
}
