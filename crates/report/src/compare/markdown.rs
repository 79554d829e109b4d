//! The comparison as a page.

use types::{Change, Comparison, GateOutcome};

use super::phrase::{self, change, interval, severity, time, verdict};
use super::stages;
use super::terminal::calls;
use crate::markdown::{code, prose};
use crate::number::UNKNOWN;
use crate::table::{Column, Table};

/// The comparison as Markdown, with the largest changes of operators, kernels and modules.
pub fn markdown(comparison: &Comparison, most_rows: usize) -> String {
    let mut page = String::from("# Comparison\n\n");
    phrase::conclusions(comparison).iter().for_each(|line| page += &format!("- {}\n", prose(line)));
    if let Some(gate) = &comparison.gate {
        page += &format!("- {}\n", phrase::gate(gate));
        if gate.outcome == GateOutcome::Undecided {
            gate.reasons.iter().for_each(|reason| page += &format!("  - {}\n", prose(reason)));
        }
    }
    page += "\n## Sides\n\n";
    for (name, runs) in [("base", &comparison.base), ("with", &comparison.with)] {
        for run in runs {
            page += &format!("- {name}: {}, {}\n", code(&run.id), code(&run.path));
        }
    }
    page += &format!("- {}\n", phrase::basis(comparison));
    page += "\n## What differs\n\n";
    page += &differences(comparison);
    page += "\n## Stages\n\n";
    page += &stage_section(comparison);
    let parts =
        [("Operators", &comparison.operators), ("Kernels", &comparison.kernels), ("Modules", &comparison.modules)];
    for (head, changes) in parts {
        page += &part(head, changes, most_rows);
    }
    page += "\n## How to read this\n\n";
    for line in phrase::flagged(&comparison.stages).iter().chain(&comparison.notes) {
        page += &format!("- {}\n", prose(line));
    }
    page += &format!(
        "- Change is how much longer the second side takes. A verdict is corrected for the number of rows in its table: \
         the chance of even one wrong verdict in a table without changes is at most {:.0}%. Intervals are not corrected, \
         so one may exclude zero without a verdict.\n",
        comparison.significance * 100.0
    );
    page
}

fn differences(comparison: &Comparison) -> String {
    if comparison.differences.is_empty() {
        return "Nothing known of them.\n".to_owned();
    }
    let columns = ["severity", "what", "base", "with", "meaning"].map(Column::text);
    let mut table = Table::new(columns);
    for one in &comparison.differences {
        let side = |values: &[String]| match values.is_empty() {
            true => UNKNOWN.to_owned(),
            false => values.iter().map(|value| code(value)).collect::<Vec<_>>().join(", "),
        };
        let grade = severity(one.severity).to_owned();
        table.row([grade, one.aspect.clone(), side(&one.base), side(&one.with), prose(&one.meaning)]);
    }
    table.markdown()
}

fn stage_section(comparison: &Comparison) -> String {
    if comparison.stages.is_empty() {
        return "Neither side measured a stage.\n".to_owned();
    }
    // Markdown drops leading spaces, so depth is shown by a sign.
    let table = stages::table(comparison, |depth, name| match depth {
        0 => name.to_owned(),
        _ => format!("{} {name}", ">".repeat(depth)),
    });
    let reasons = phrase::untested(&comparison.stages);
    let reasons: String = reasons.iter().map(|line| format!("- {}\n", prose(line))).collect();
    table.markdown() + if reasons.is_empty() { "" } else { "\n" } + &reasons
}

fn part(head: &str, changes: &[Change], most_rows: usize) -> String {
    if changes.is_empty() || most_rows == 0 {
        return String::new();
    }
    let columns = [
        Column::text("name"),
        Column::text("stage"),
        Column::number("base"),
        Column::number("with"),
        Column::number("change"),
        Column::text("95% interval"),
        Column::text("verdict"),
        Column::number("calls"),
    ];
    let mut table = Table::new(columns);
    for row in changes.iter().take(most_rows) {
        table.row([
            code(&row.name),
            row.stage.map(|stage| stage.to_string()).unwrap_or_default(),
            time(&row.base),
            time(&row.with),
            change(row.change),
            interval(row.interval),
            verdict(row).to_owned(),
            calls(row),
        ]);
    }
    let more = match changes.len() > most_rows {
        true => format!("The {most_rows} largest changes of {}.\n\n", changes.len()),
        false => String::new(),
    };
    let tested = changes.iter().any(|change| change.untested.is_none());
    let reason = changes.first().and_then(|change| change.untested.as_deref()).filter(|_| !tested);
    let reason = reason.map(|reason| format!("\nNo interval: {}.\n", prose(reason))).unwrap_or_default();
    format!("\n## {head}\n\n{more}{}{reason}", table.markdown())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::sample;

    #[test]
    fn repeats_of_two_runs() {
        insta::assert_snapshot!(markdown(&sample::repeats(), 3));
    }

    #[test]
    fn several_runs_per_side() {
        insta::assert_snapshot!(markdown(&sample::runs(), 3));
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
        let page = markdown(&sample::empty(), 3);
        assert!(page.contains("Neither side measured a stage.") && page.contains("undecided"), "{page}");
    }
}
