//! What `llm-perf compare` prints: at most a hundred columns.

use types::view::{ChangesView, ComparisonView};
use types::{ComparedRun, Comparison, ForecastRange, GateOutcome, RunState};

use super::phrase::{self, amount, calls, change, interval, per_call, values, verdict, wrapped};
use super::stages::timed_terminal;
use crate::render::table::{Table, printable, shortened};
use crate::words::number::milliseconds;

/// Widest name of an operator, kernel or module, beside a verdict and without one.
const NAME: [usize; 2] = [28, 34];
/// Widest value of a difference.
const VALUE: usize = 30;

/// The comparison as plain text, with the largest changes of operators, kernels and modules.
pub fn terminal(view: &ComparisonView<'_>, most_rows: usize) -> String {
    let comparison = view.comparison;
    let mut text = String::new();
    text += &side("base", &comparison.base);
    text += &side("with", &comparison.with);
    text += &wrapped(&phrase::basis(comparison), "");
    text += &differences(comparison);
    text.push('\n');
    text += &timed_terminal(view);
    let parts = [
        ("memory", &view.memory),
        ("step", &view.steps),
        ("device time", &view.device_time),
        ("operator", &view.operators),
        ("kernel", &view.kernels),
        ("module", &view.modules),
    ];
    for (noun, changes) in parts {
        text += &part(noun, changes, most_rows);
    }
    if !comparison.forecasts.is_empty() {
        text += &format!("\n{}", forecasts(comparison));
    }
    text.push('\n');
    for line in phrase::notes(view) {
        text += &wrapped(&format!("note: {line}"), "      ");
    }
    for line in phrase::conclusions(view) {
        text += &wrapped(&line, "  ");
    }
    if let Some(gate) = &comparison.gate {
        text += &wrapped(&phrase::gate(gate), "  ");
        if gate.outcome == GateOutcome::Undecided {
            gate.reasons.iter().for_each(|reason| text += &wrapped(&format!("  {reason}"), "    "));
        }
    }
    text += &(printable(&phrase::summary(view)).into_owned() + "\n");
    text
}

/// What was forecast of the stages of both sides.
pub(super) fn forecasts(comparison: &Comparison) -> Table {
    let mut table = Table::new("forecast | >base | >with | >change");
    let time = |range: ForecastRange| {
        format!("{} ({} to {})", milliseconds(range.value), milliseconds(range.low), milliseconds(range.high))
    };
    for row in &comparison.forecasts {
        table.row([row.stage.clone(), time(row.base), time(row.with), change(Some(row.change))]);
    }
    table
}

fn side(name: &str, runs: &[ComparedRun]) -> String {
    let line = |run: &ComparedRun| {
        let state = match run.state {
            Some(RunState::Partial) => ", partial",
            Some(RunState::Failed) => ", failed",
            Some(RunState::Running) => ", still running",
            Some(RunState::Interrupted) => ", interrupted",
            _ => "",
        };
        wrapped(&format!("{name}  {}{state}", run.path), "      ")
    };
    runs.iter().map(line).collect()
}

fn differences(comparison: &Comparison) -> String {
    if comparison.differences.is_empty() {
        return "no known differences\n".to_owned();
    }
    let mut table = Table::new("differs | | base | with");
    for one in &comparison.differences {
        let cut = |side: &[String]| shortened(&values(side), VALUE).into_owned();
        table.row([one.severity.name().to_owned(), one.aspect.clone(), cut(&one.base), cut(&one.with)]);
    }
    let mut text = format!("\n{table}");
    let mut said: Vec<&str> = Vec::new();
    for one in &comparison.differences {
        if !said.contains(&&*one.meaning) {
            said.push(&one.meaning);
            text += &wrapped(&format!("{}: {}", one.severity.name(), one.meaning), "  ");
        }
    }
    text
}

/// The largest changes; with verdicts where some could be tested.
fn part(noun: &str, changes: &ChangesView<'_>, most_rows: usize) -> String {
    let all = changes.rows.len();
    if all == 0 || most_rows == 0 {
        return String::new();
    }
    let (last, name) = match changes.tested {
        true => ("95% interval | verdict", NAME[0]),
        false => (">calls | >per call", NAME[1]),
    };
    let mut table = Table::new(&format!("{noun} | stage | >base | >with | >change | {last}")).widest(name);
    for (name, row) in changes.rows.iter().take(most_rows) {
        let mut cells = vec![
            name.clone().into_owned(),
            row.stage.map(|stage| stage.to_string()).unwrap_or_default(),
            amount(&row.base),
            amount(&row.with),
            change(row.change),
        ];
        match changes.tested {
            true => cells.extend([interval(row.interval), verdict(row).replace("no evidence of change", "-")]),
            false => cells.extend([calls(row), per_call(row)]),
        }
        table.row(cells);
    }
    let more = match all > most_rows {
        true => format!(" (the {most_rows} largest changes of {all})"),
        false => String::new(),
    };
    let last = match (changes.tested, changes.untested.first()) {
        (true, _) => format!("{} of {all} changed significantly\n", changes.changed.len()),
        (false, Some((reason, _))) => format!("no interval: {reason}\n"),
        (false, None) => String::new(),
    };
    let plural = if noun == "memory" { "" } else { "s" };
    format!("\n{noun}{plural}{more}\n{table}{last}")
}

#[cfg(test)]
mod tests {
    use analysis::view::comparison;

    use super::*;
    use crate::pages::compare::phrase::WIDTH;
    use crate::pages::compare::sample;

    fn no_line_is_too_wide(text: &str) {
        let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > WIDTH).collect();
        assert_eq!(wide, Vec::<&str>::new());
    }

    #[test]
    fn repeats_of_two_runs() {
        let text = terminal(&comparison(&sample::repeats()), 5);
        no_line_is_too_wide(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn several_runs_per_side() {
        let text = terminal(&comparison(&sample::runs()), 5);
        no_line_is_too_wide(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn runs_that_hardly_compare() {
        let text = terminal(&comparison(&sample::apart()), 5);
        no_line_is_too_wide(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = wrapped(&format!("note: {}", "word ".repeat(40)), "      ");
        no_line_is_too_wide(&text);
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().skip(1).all(|line| line.starts_with("      word")));
    }
}
