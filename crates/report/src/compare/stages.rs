//! The table of stages, which `profile --from` prints alone.

use types::Comparison;

use super::phrase::{change, depth, interval, spread, time, untested, verdict};
use crate::table::{Column, Table};

pub(super) const COLUMNS: [Column; 8] = [
    Column::text("stage"),
    Column::number("base"),
    Column::number("varies"),
    Column::number("with"),
    Column::number("varies"),
    Column::number("change"),
    Column::text("95% interval"),
    Column::text("verdict"),
];

/// Stages as plain text, and why one was not tested.
pub fn stages_terminal(comparison: &Comparison) -> String {
    if comparison.stages.is_empty() {
        return "neither side measured a stage\n".to_owned();
    }
    let lines = untested(&comparison.stages).into_iter().map(|line| line + "\n");
    table(comparison, |depth, name| "  ".repeat(depth) + name).plain() + &lines.collect::<String>()
}

/// One row per stage; `named` turns depth and name into the first cell.
pub(super) fn table(comparison: &Comparison, named: impl Fn(usize, &str) -> String) -> Table<8> {
    let mut table = Table::new(COLUMNS);
    for row in &comparison.stages {
        table.row([
            named(depth(row), &row.name),
            time(&row.base),
            spread(&row.base),
            time(&row.with),
            spread(&row.with),
            change(row.change),
            interval(row.interval),
            verdict(row).to_owned(),
        ]);
    }
    table
}
