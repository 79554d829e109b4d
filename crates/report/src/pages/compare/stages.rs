//! The table of stages, which `profile --from` prints alone.

use types::view::{ChangesView, ComparisonView};

use super::phrase::{change, depth, interval, untested, verdict, wrapped};
use crate::render::Table;
use crate::words::number::{known, percent};

/// Everything timed without a profiler as plain text: stages and commands.
pub(super) fn timed_terminal(view: &ComparisonView<'_>) -> String {
    if view.commands.rows.is_empty() {
        return stages_terminal(view);
    }
    let stages = if view.stages.rows.is_empty() { String::new() } else { stages_terminal(view) + "\n" };
    let lines = untested(&view.commands).into_iter().map(|line| wrapped(&line, "  "));
    stages + &rows("command", &view.commands, |_, name| name.to_owned()).to_string() + &lines.collect::<String>()
}

/// Stages as plain text, and why one was not tested.
pub fn stages_terminal(view: &ComparisonView<'_>) -> String {
    if view.stages.rows.is_empty() {
        return "neither side measured a stage\n".to_owned();
    }
    let lines = untested(&view.stages).into_iter().map(|line| wrapped(&line, "  "));
    table(view, |depth, name| "  ".repeat(depth) + name).to_string() + &lines.collect::<String>()
}

/// One row per stage; `named` turns depth and name into the first cell.
pub(super) fn table(view: &ComparisonView<'_>, named: impl Fn(usize, &str) -> String) -> Table {
    rows("stage", &view.stages, named)
}

/// One row per change of a table whose rows are `noun`s.
pub(super) fn rows(noun: &str, changes: &ChangesView<'_>, named: impl Fn(usize, &str) -> String) -> Table {
    let mut table = Table::new(&format!("{noun} | >base | >CV | >with | >CV | >change | 95% interval | verdict"));
    for (name, row) in &changes.rows {
        table.row([
            named(depth(row), name),
            known(row.base.time_ns),
            percent(row.base.spread),
            known(row.with.time_ns),
            percent(row.with.spread),
            change(row.change),
            interval(row.interval),
            verdict(row).to_owned(),
        ]);
    }
    table
}
