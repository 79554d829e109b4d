//! What `llm-perf compare` prints: at most a hundred columns.

use types::{Change, ChangeVerdict, ComparedRun, Comparison, GateOutcome, RunState};

use super::phrase::{self, change, interval, severity, time, values};
use super::stages::stages_terminal;
use crate::table::{Column, Table, printable};

/// Widest line.
const WIDTH: usize = 100;
/// Widest name of an operator, kernel or module.
const NAME: usize = 34;
/// Widest value of a difference.
const VALUE: usize = 30;

/// The comparison as plain text, with the largest changes of operators, kernels and modules.
pub fn terminal(comparison: &Comparison, most_rows: usize) -> String {
    let mut text = String::new();
    text += &side("base", &comparison.base);
    text += &side("with", &comparison.with);
    text += &wrapped(&phrase::basis(comparison), "");
    text += &differences(comparison);
    text.push('\n');
    text += &stages_terminal(comparison);
    let parts = [("operator", &comparison.operators), ("kernel", &comparison.kernels), ("module", &comparison.modules)];
    for (noun, changes) in parts {
        text += &part(noun, changes, most_rows);
    }
    text.push('\n');
    for line in phrase::flagged(&comparison.stages).iter().chain(&comparison.notes) {
        text += &wrapped(&format!("note: {line}"), "      ");
    }
    for line in phrase::conclusions(comparison) {
        text += &wrapped(&line, "  ");
    }
    if let Some(gate) = &comparison.gate {
        text += &wrapped(&phrase::gate(gate), "  ");
        if gate.outcome == GateOutcome::Undecided {
            gate.reasons.iter().for_each(|reason| text += &wrapped(&format!("  {reason}"), "    "));
        }
    }
    text
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
        return "nothing known of them differs\n".to_owned();
    }
    let mut table = Table::new([Column::text("differs"), Column::text(""), Column::text("base"), Column::text("with")]);
    for one in &comparison.differences {
        let cut = |side: &[String]| shortened(&values(side), VALUE);
        table.row([severity(one.severity).to_owned(), one.aspect.clone(), cut(&one.base), cut(&one.with)]);
    }
    let mut text = format!("\n{}", table.plain());
    let mut said: Vec<&str> = Vec::new();
    for one in &comparison.differences {
        if !said.contains(&one.meaning.as_str()) {
            said.push(&one.meaning);
            text += &wrapped(&format!("{}: {}", severity(one.severity), one.meaning), "  ");
        }
    }
    text
}

/// The largest changes; with verdicts where some could be tested.
fn part(noun: &'static str, changes: &[Change], most_rows: usize) -> String {
    if changes.is_empty() || most_rows == 0 {
        return String::new();
    }
    let tested = changes.iter().any(|change| change.untested.is_none());
    let shown = changes.iter().take(most_rows);
    let table = match tested {
        true => with_verdicts(noun, shown),
        false => without_verdicts(noun, shown),
    };
    let more = match changes.len() > most_rows {
        true => format!(" (the {most_rows} largest changes of {})", changes.len()),
        false => String::new(),
    };
    let mut text = format!("\n{noun}s{more}\n{table}");
    let sure = changes.iter().filter(|change| change.verdict != ChangeVerdict::NoEvidence).count();
    let reason = changes.first().and_then(|change| change.untested.as_deref());
    match (tested, reason) {
        (true, _) => text += &format!("{sure} of {} changed by the evidence\n", changes.len()),
        (false, Some(reason)) => text += &format!("no interval: {reason}\n"),
        (false, None) => {}
    }
    text
}

fn with_verdicts<'a>(noun: &'static str, changes: impl Iterator<Item = &'a Change>) -> String {
    let columns = [
        Column::text(noun),
        Column::text("stage"),
        Column::number("base"),
        Column::number("with"),
        Column::number("change"),
        Column::text("95% interval"),
        Column::text("verdict"),
    ];
    let mut table = Table::new(columns);
    for row in changes {
        let verdict = match phrase::verdict(row) {
            "no evidence of change" => "-",
            verdict => verdict,
        };
        table.row([
            shortened(&row.name, NAME - 6),
            row.stage.map(|stage| stage.to_string()).unwrap_or_default(),
            time(&row.base),
            time(&row.with),
            change(row.change),
            interval(row.interval),
            verdict.to_owned(),
        ]);
    }
    table.plain()
}

fn without_verdicts<'a>(noun: &'static str, changes: impl Iterator<Item = &'a Change>) -> String {
    let columns = [
        Column::text(noun),
        Column::text("stage"),
        Column::number("base"),
        Column::number("with"),
        Column::number("change"),
        Column::number("calls"),
    ];
    let mut table = Table::new(columns);
    for row in changes {
        table.row([
            shortened(&row.name, NAME),
            row.stage.map(|stage| stage.to_string()).unwrap_or_default(),
            time(&row.base),
            time(&row.with),
            change(row.change),
            calls(row),
        ]);
    }
    table.plain()
}

/// Calls of both sides, once where they are the same.
pub(super) fn calls(row: &Change) -> String {
    match (row.base.calls, row.with.calls) {
        (None, None) => String::new(),
        (Some(base), Some(with)) if base == with => base.to_string(),
        (base, with) => {
            let known = |calls: Option<u64>| calls.map_or("-".to_owned(), |calls| calls.to_string());
            format!("{} -> {}", known(base), known(with))
        }
    }
}

/// The text with its middle left out where it is too long: both ends of kernel and module names tell them apart.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let (head, tail) = ((most - 2) / 2, (most - 2).div_ceil(2));
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(length - tail).collect();
    format!("{first}..{last}")
}

/// The text on lines no wider than the terminal, further ones begun with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let text = printable(text);
    let mut lines = String::new();
    let leading: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut line = leading;
    for word in text.split_whitespace() {
        let blank = line.trim().is_empty();
        if !blank && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &(line + "\n");
            line = indent.to_owned();
        } else if !blank {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::sample;

    fn no_line_is_too_wide(text: &str) {
        let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > WIDTH).collect();
        assert_eq!(wide, Vec::<&str>::new());
    }

    #[test]
    fn repeats_of_two_runs() {
        let text = terminal(&sample::repeats(), 5);
        no_line_is_too_wide(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn several_runs_per_side() {
        let text = terminal(&sample::runs(), 5);
        no_line_is_too_wide(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn runs_that_hardly_compare() {
        let text = terminal(&sample::apart(), 5);
        no_line_is_too_wide(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("0123456789abcdef", 10), "0123..cdef");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = wrapped(&format!("note: {}", "word ".repeat(40)), "      ");
        no_line_is_too_wide(&text);
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().skip(1).all(|line| line.starts_with("      word")));
    }
}
