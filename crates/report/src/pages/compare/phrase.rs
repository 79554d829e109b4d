//! Words and figures that both forms need.

use types::view::{ChangesView, ComparisonView};
use types::{Change, ChangeInterval, ChangeVerdict, Comparison, Gate, GateOutcome, Measured, Replication, Stage};

use crate::render::table::printable;
use crate::words::number::{UNKNOWN, count, known, percent, signed};

/// Widest line of a terminal.
pub(super) const WIDTH: usize = 100;

/// How much longer, with its sign.
pub(super) fn change(share: Option<f64>) -> String {
    known(share.map(signed))
}

/// What one side measured.
pub(super) fn amount(side: &Measured) -> String {
    known(side.bytes.map(|bytes| bytes.to_string()).or_else(|| side.time_ns.map(|time| time.to_string())))
}

/// The whole comparison in one line, for a log.
pub(super) fn summary(view: &ComparisonView<'_>) -> String {
    const MOST: usize = 4;
    let timed = [&view.stages, &view.commands, &view.memory, &view.steps].into_iter().flat_map(|table| &table.rows);
    let told = timed.filter(|(_, row)| row.change.is_some()).map(|(name, row)| {
        let verdict = match row.verdict {
            ChangeVerdict::NoEvidence => "",
            _ => "!",
        };
        format!("{name} {}{verdict}", change(row.change))
    });
    let told: Vec<String> = told.collect();
    let more = told.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let told = match told.as_slice() {
        [] => "nothing timed on both sides".to_owned(),
        told => format!("{}{more}", told[..told.len().min(MOST)].join(", ")),
    };
    let gate = view.comparison.gate.as_ref().map(|gate| match gate.outcome {
        GateOutcome::Passed => "; gate passed".to_owned(),
        GateOutcome::Failed => format!("; gate FAILED: {}", gate.failed.join(", ")),
        GateOutcome::Undecided => "; gate undecided".to_owned(),
    });
    format!("summary: {told}{}", gate.unwrap_or_default())
}

/// Where the true change lies.
pub(super) fn interval(interval: Option<ChangeInterval>) -> String {
    known(interval.map(|interval| format!("[{}, {}]", signed(interval.low), signed(interval.high))))
}

/// What can be said about a row.
pub(super) fn verdict(change: &Change) -> &'static str {
    match (change.verdict, &change.untested) {
        (ChangeVerdict::Faster, _) => "faster",
        (ChangeVerdict::Slower, _) => "slower",
        (ChangeVerdict::NoEvidence, None) => "no evidence of change",
        (ChangeVerdict::NoEvidence, Some(_)) => "not tested",
    }
}

/// The text on lines no wider than the terminal, further ones starting with `indent`.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
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

/// Why rows were not tested, each reason once with the rows it is about.
pub(super) fn untested(changes: &ChangesView<'_>) -> Vec<String> {
    let line = |(reason, names): &(&str, Vec<&str>)| match names.is_empty() {
        true => format!("not tested: all of them; {reason}"),
        false => format!("not tested: {}; {reason}", names.join(", ")),
    };
    changes.untested.iter().map(line).collect()
}

/// How to read the numbers: noisy samples, which are in every figure, and the notes of the document.
pub(super) fn notes(view: &ComparisonView<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for noisy in &view.noisy {
        let (name, samples) = (noisy.name, count(noisy.samples, "sample"));
        if noisy.outliers > 0 {
            lines.push(format!("{name}: {} of {samples} are outliers; they are kept", noisy.outliers));
        }
        if noisy.warm_up > 0 {
            let first = count(noisy.warm_up, "sample");
            lines.push(format!("{name}: the first {first} look like warm-up and are kept; add warm-up rounds"));
        }
    }
    lines.extend(view.comparison.notes.iter().map(ToString::to_string));
    lines
}

/// What the numbers rest on.
pub(super) fn basis(comparison: &Comparison) -> String {
    let times = match comparison.common_inputs {
        None => "stage times are those of one instance".to_owned(),
        Some(0) => "no input in common".to_owned(),
        Some(1) => "stage times are medians of the common input".to_owned(),
        Some(inputs) => format!("stage times are medians, summed over {}", count(inputs, "common input")),
    };
    let unit = match comparison.replication {
        Replication::Repeats => "repeats within one run per side".to_owned(),
        Replication::Runs => {
            format!("{} and {}", count(comparison.base.len() as u64, "run"), count(comparison.with.len() as u64, "run"))
        }
    };
    format!("{times}; intervals from {unit}")
}

/// The stages that changed, in one sentence each; or that none did.
pub(super) fn conclusions(view: &ComparisonView<'_>) -> Vec<String> {
    let line = |row: &&Change| {
        let size = row.change.map(f64::abs);
        format!("{} is {} by {} {}", row.name, verdict(row), percent(size), interval(row.interval))
    };
    if view.stages.rows.is_empty() && !view.commands.rows.is_empty() {
        return match (view.commands.changed.as_slice(), view.commands.tested) {
            ([], true) => vec!["no evidence of change in the time of the command".to_owned()],
            ([], false) => vec!["the command could not be tested for a change".to_owned()],
            (changed, _) => changed.iter().map(line).collect(),
        };
    }
    if view.stages.rows.is_empty() {
        return without_stages(view, line);
    }
    match (view.stages.changed.as_slice(), view.stages.tested) {
        ([], true) => vec!["no evidence of change in any stage".to_owned()],
        ([], false) => {
            let none = "no stage could be tested for a change".to_owned();
            std::iter::once(none).chain(view.steps.changed.iter().map(line)).collect()
        }
        (changed, _) => changed.iter().map(line).collect(),
    }
}

/// The same for runs without stages: by their steps, else the part of a device's time that changed most.
fn without_stages(view: &ComparisonView<'_>, line: impl Fn(&&Change) -> String) -> Vec<String> {
    let mut lines: Vec<String> = view.steps.changed.iter().map(line).collect();
    if lines.is_empty() && view.steps.tested {
        lines.push("no evidence of change in any step".to_owned());
    }
    let largest = view.device_time.rows.first().filter(|(_, row)| row.base.time_ns != row.with.time_ns);
    lines.extend(largest.map(|(name, row)| {
        let device = row.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
        let (base, with, share) = (known(row.base.time_ns), known(row.with.time_ns), change(row.change));
        format!(
            "the part of device time that changed most is {name}{device}: {base} -> {with} ({share}), {}",
            verdict(row)
        )
    }));
    if lines.is_empty() {
        lines.push("neither side has a stage, a step or a device to compare".to_owned());
    }
    lines
}

/// How the gate ended, and what it may have missed.
pub(super) fn gate(gate: &Gate) -> String {
    let named = gate.limits.iter().map(|(name, limit)| format!("{name} {}", percent(Some(*limit))));
    let limit = gate.limit.map(|limit| percent(Some(limit))).into_iter().chain(named).collect::<Vec<_>>().join(", ");
    let text = match gate.outcome {
        GateOutcome::Passed => format!("gate {limit}: passed, nothing is slower by more"),
        GateOutcome::Failed => format!("gate {limit}: failed, slower by more: {}", gate.failed.join(", ")),
        GateOutcome::Undecided if !gate.failed.is_empty() => {
            format!("gate {limit}: undecided, slower by more on a busy machine: {}", gate.failed.join(", "))
        }
        GateOutcome::Undecided => {
            format!("gate {limit}: undecided, nothing failed but not everything could be tested")
        }
    };
    match gate.may_hide {
        Some(share) => format!("{text}; noise may hide up to {}; more repeats or runs narrow that", signed(share)),
        None => text,
    }
}

/// Values of a side; the first few where there are many.
pub(super) fn values(values: &[String]) -> String {
    const MOST: usize = 3;
    match values.len() {
        0 => UNKNOWN.to_owned(),
        length if length > MOST => format!("{} and {} more", values[..MOST].join(", "), length - MOST),
        _ => values.join(", "),
    }
}

/// How deep a stage is nested.
pub(super) fn depth(change: &Change) -> usize {
    let stage = Stage::ALL.into_iter().find(|stage| stage.name() == change.name);
    std::iter::successors(stage, |stage| stage.parent()).count().saturating_sub(1)
}

/// How much longer one call takes; nothing where calls are not counted.
pub(super) fn per_call(row: &Change) -> String {
    row.change_per_call.map(signed).unwrap_or_default()
}

/// Calls of both sides, once where they are the same.
pub(super) fn calls(row: &Change) -> String {
    match (row.base.calls, row.with.calls) {
        (None, None) => String::new(),
        (Some(base), Some(with)) if base == with => base.to_string(),
        (base, with) => format!("{} -> {}", known(base), known(with)),
    }
}
