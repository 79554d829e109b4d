//! Remedies that were tried: what replay predicted beside what came of it.

use types::view::RunView;

use super::rows::{Bar, Row, rows};
use crate::words::number::{UNKNOWN, percent, signed};

/// The share of a request that each remedy saves. Absent where none was measured.
pub(super) fn tries_chart(run: &RunView<'_>) -> Option<String> {
    let row = |one: &&types::Try| {
        let saved = one.saves_share?;
        let bar = |to: f64, class: &str, what: &str| Bar::new(to, class, format!("{what}: {}", signed(to)));
        let mut bars: Vec<Bar> = Vec::new();
        bars.extend(one.predicted_saves_share.map(|share| bar(share, "c-predicted", "predicted")));
        let class = if saved < 0.0 { "c-lost" } else { "c-least" };
        bars.push(bar(saved, class, "realised").within(one.low.zip(one.high)));
        let predicted = one.predicted_saves_share.map_or(UNKNOWN.to_owned(), |share| percent(Some(share)));
        Some(Row { name: one.remedy.to_string(), bars, figure: format!("{} (predicted {predicted})", signed(saved)) })
    };
    let drawn: Vec<Row> = run.tries.measured.iter().filter_map(row).collect();
    rows("time saved by each remedy", &drawn, ("share of the time that is saved", signed))
}
