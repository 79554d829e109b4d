//! The comparison as a page.

use types::view::{ChangesView, ComparisonView};
use types::{Comparison, GateOutcome};

use super::phrase::{self, amount, calls, change, interval, per_call, verdict};
use super::stages;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, codes, prose};
use crate::words::number::UNKNOWN;

/// The comparison as Markdown, with the largest changes of operators, kernels and modules.
pub fn page(view: &ComparisonView<'_>, most_rows: usize) -> Page {
    let comparison = view.comparison;
    let mut page = Page::new("Comparison");
    page.list(conclusions(view));
    page.heading("Sides");
    let sides = [("base", &comparison.base), ("with", &comparison.with)];
    let runs = sides.into_iter().flat_map(|(name, runs)| runs.iter().map(move |run| (name, run)));
    let runs = runs.map(|(name, run)| format!("{name}: {}, {}", code(&run.id), code(&run.path)));
    page.list(runs.chain([phrase::basis(comparison)]));
    page.heading("Differences");
    page.table_or(&differences(comparison), "None known.");
    page.heading("Stages");
    // Markdown drops leading spaces, so depth is shown by a sign.
    let stages = stages::table(view, |depth, name| match depth {
        0 => name.to_owned(),
        _ => format!("{} {name}", ">".repeat(depth)),
    });
    page.table_or(&stages, "Neither side measured a stage.");
    page.list(phrase::untested(&view.stages).iter().map(|line| prose(line)));
    if !view.commands.rows.is_empty() {
        page.heading("Commands");
        page.table(&stages::rows("command", &view.commands, |_, name| code(name)));
        page.list(phrase::untested(&view.commands).iter().map(|line| prose(line)));
    }
    let parts = [
        ("Memory", &view.memory),
        ("Steps", &view.steps),
        ("Device time", &view.device_time),
        ("Operators", &view.operators),
        ("Kernels", &view.kernels),
        ("Modules", &view.modules),
    ];
    for (head, changes) in parts {
        part(&mut page, head, changes, most_rows);
    }
    if !comparison.forecasts.is_empty() {
        page.heading("Forecasts");
        page.paragraph("What the analytic model of each side forecasts in eager mode, with 90% intervals; nothing here was measured.");
        page.table(&super::terminal::forecasts(comparison));
    }
    page.heading("How to read this");
    let last = format!(
        "Change is how much longer the second side takes. A verdict is corrected for the number of rows in its table: the chance \
         of even one wrong verdict in a table without changes is at most {:.0}%. Intervals are not corrected, so one may exclude \
         zero without a verdict.",
        comparison.significance * 100.0
    );
    page.list(phrase::notes(view).iter().map(|line| prose(line)).chain([last]));
    page
}

/// What changed, and how the gate ended, as a list.
pub(crate) fn conclusions_page(view: &ComparisonView<'_>) -> Page {
    let mut page = Page::new("Comparison");
    page.list(conclusions(view));
    page
}

fn conclusions(view: &ComparisonView<'_>) -> Vec<String> {
    let mut conclusions: Vec<_> = phrase::conclusions(view).iter().map(|line| prose(line)).collect();
    if let Some(gate) = &view.comparison.gate {
        conclusions.push(phrase::gate(gate));
        if gate.outcome == GateOutcome::Undecided {
            conclusions.extend(gate.reasons.iter().map(|reason| format!("undecided because {}", prose(reason))));
        }
    }
    conclusions
}

fn differences(comparison: &Comparison) -> Table {
    let mut table = Table::new("severity | aspect | base | with | meaning");
    for one in &comparison.differences {
        let side = |values: &[String]| if values.is_empty() { UNKNOWN.to_owned() } else { codes(values) };
        let severity = one.severity.name().to_owned();
        table.row([severity, one.aspect.clone(), side(&one.base), side(&one.with), prose(&one.meaning)]);
    }
    table
}

fn part(page: &mut Page, head: &str, changes: &ChangesView<'_>, most_rows: usize) {
    let all = changes.rows.len();
    if all == 0 || most_rows == 0 {
        return;
    }
    page.heading(head);
    if all > most_rows {
        page.paragraph(&format!("The {most_rows} largest changes of {all}."));
    }
    let mut table = Table::new("name | stage | >base | >with | >change | 95% interval | verdict | >calls | >per call");
    for (name, row) in changes.rows.iter().take(most_rows) {
        table.row([
            code(name),
            row.stage.map(|stage| stage.to_string()).unwrap_or_default(),
            amount(&row.base),
            amount(&row.with),
            change(row.change),
            interval(row.interval),
            verdict(row).to_owned(),
            calls(row),
            per_call(row),
        ]);
    }
    page.table(&table);
    if let Some((reason, _)) = changes.untested.first().filter(|_| !changes.tested) {
        page.paragraph(&format!("No interval: {}.", prose(reason)));
    }
}

#[cfg(test)]
mod tests {
    use analysis::view::comparison;

    use super::*;
    use crate::pages::compare::sample;

    #[test]
    fn repeats_of_two_runs() {
        insta::assert_snapshot!(page(&comparison(&sample::repeats()), 3).markdown());
    }

    #[test]
    fn several_runs_per_side() {
        insta::assert_snapshot!(page(&comparison(&sample::runs()), 3).markdown());
    }

    #[test]
    fn every_sample_is_a_valid_document() {
        for comparison in [sample::repeats(), sample::runs(), sample::apart(), sample::empty()] {
            let found = crate::validate(&serde_json::to_vec(&comparison).unwrap()).unwrap();
            assert_eq!(found.violations, []);
        }
    }

    #[test]
    fn two_empty_runs_give_a_page() {
        let page = page(&comparison(&sample::empty()), 3).markdown();
        assert!(page.contains("Neither side measured a stage.") && page.contains("undecided"), "{page}");
    }
}
