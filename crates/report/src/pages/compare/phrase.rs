//! Words and figures that both forms need.

use std::borrow::Cow;
use std::collections::BTreeMap;

use types::{
    Change, ChangeInterval, ChangeVerdict, Comparison, Gate, GateOutcome, IdleCause, Measured, Replication, Stage,
};

use super::caveats::{Comparability, comparability, disturbed};
use crate::render;
use crate::render::text::prose;
use crate::words::number::{count, grouped, known, percent, signed};
use crate::words::serving::compared;

/// Widest line of a terminal.
pub(super) const WIDTH: usize = 100;

/// The name of a row, short enough to print.
pub(crate) fn name(change: &Change) -> Cow<'_, str> {
    let idle = |cause: &str| IdleCause::ALL.into_iter().find(|one| one.name().replace('_', " ") == cause);
    match change.name.strip_prefix("idle: ").and_then(idle) {
        Some(cause) => format!("idle: {}", crate::words::idle::cause(cause)).into(),
        None => change.short_name.as_deref().unwrap_or(&change.name).into(),
    }
}

/// Whether any row could be tested.
pub(super) fn tested(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.untested.is_none())
}

/// Changes that the evidence supports.
pub(super) fn changed(changes: &[Change]) -> impl Iterator<Item = &Change> {
    changes.iter().filter(|change| change.verdict != ChangeVerdict::NoEvidence)
}

/// How much longer, with its sign.
pub(super) fn change(share: Option<f64>) -> String {
    known(share.map(signed))
}

/// What one side measured.
pub(super) fn amount(side: &Measured) -> String {
    known(side.bytes.map(|bytes| bytes.to_string()).or_else(|| side.time_ns.map(|time| time.to_string())))
}

/// The whole comparison in one line, for a log.
pub(super) fn summary(comparison: &Comparison) -> String {
    const MOST: usize = 4;
    let tables =
        [&comparison.requests, &comparison.stages, &comparison.commands, &comparison.memory, &comparison.steps];
    let told = tables.into_iter().flatten().filter(|row| row.change.is_some()).map(|row| {
        let verdict = match row.verdict {
            ChangeVerdict::NoEvidence => "",
            _ => "!",
        };
        format!("{} {}{verdict}", row.name, change(row.change))
    });
    let told: Vec<String> = told.collect();
    let more = told.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let told = match told.as_slice() {
        [] => "nothing timed on both sides".to_owned(),
        told => format!("{}{more}", told[..told.len().min(MOST)].join(", ")),
    };
    let doubt = match comparability(comparison) {
        Comparability::Comparable => "",
        Comparability::OtherConditions => "; not directly comparable",
        Comparability::OtherWork => "; NOT comparable",
    };
    let gate = comparison.gate.as_ref().map(|gate| match gate.outcome {
        GateOutcome::Passed => "; gate passed".to_owned(),
        GateOutcome::Failed => format!("; gate FAILED: {}", gate.failed.join(", ")),
        GateOutcome::Undecided => "; gate undecided".to_owned(),
    });
    format!("summary: {told}{doubt}{}", gate.unwrap_or_default())
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

/// The text on lines no wider than the terminal; what goes on stands two columns further in.
pub(super) fn wrapped(text: &str) -> String {
    text.lines().map(|line| if line.chars().count() > WIDTH { broken(line) } else { format!("{line}\n") }).collect()
}

fn broken(text: &str) -> String {
    let leading: String = text.chars().take_while(|c| *c == ' ').collect();
    let lines = render::wrapped(text.trim_start(), WIDTH - leading.len() - 2);
    format!("{leading}{}\n", lines.join(&format!("\n{leading}  ")))
}

/// Why rows were not tested, each reason once with the rows it is about.
pub(super) fn untested(changes: &[Change]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for change in changes {
        if let Some(reason) = &change.untested {
            reasons.entry(reason).or_default().push(&change.name);
        }
    }
    let line = |(reason, names): (&str, Vec<&str>)| {
        if names.len() == changes.len() && names.len() > 1 {
            format!("nothing was tested: {}", prose(reason))
        } else {
            format!("not tested: {} ({})", prose(&names.join(", ")), prose(reason))
        }
    };
    reasons.into_iter().map(line).collect()
}

/// How to read the numbers: noisy samples, which are in every figure, and the notes of the document. Caveats have said who was
/// disturbed.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for change in comparison.stages.iter().chain(&comparison.commands) {
        let both = |of: fn(&Measured) -> u64| of(&change.base) + of(&change.with);
        let (name, samples) = (&change.name, count(both(|side| side.samples), "sample"));
        let (outliers, warm_up) = (both(|side| side.outliers), both(|side| side.warm_up));
        if outliers > 0 {
            lines.push(format!("{name}: {outliers} of {samples} are outliers; they are kept"));
        }
        if warm_up > 0 {
            let first = count(warm_up, "sample");
            lines.push(format!("{name}: the first {first} look like warm-up and are kept; add warm-up rounds"));
        }
    }
    let disturbed: Vec<&str> = disturbed(comparison).map(|(_, why)| why).collect();
    let notes = comparison.notes.iter().map(ToString::to_string);
    lines.extend(notes.filter(|note| !disturbed.iter().any(|why| note.ends_with(why))));
    lines
}

/// What the numbers rest on.
pub(super) fn basis(comparison: &Comparison) -> String {
    let times = match comparison.common_inputs {
        _ if !comparison.requests.is_empty() => "latencies of the requests of a load".to_owned(),
        None => "stage times of one instance".to_owned(),
        Some(0) => "no input in common".to_owned(),
        Some(1) => "stage medians of the common input".to_owned(),
        Some(inputs) => format!("stage medians summed over {}", count(inputs, "common input")),
    };
    let unit = match comparison.replication {
        Replication::Repeats if !comparison.requests.is_empty() => "the requests of one load per side".to_owned(),
        Replication::Repeats => "repeats within one run per side".to_owned(),
        Replication::Runs => {
            format!("{} and {}", count(comparison.base.len() as u64, "run"), count(comparison.with.len() as u64, "run"))
        }
    };
    format!("{times}; intervals from {unit}")
}

/// The stages that changed, in one sentence each; or that none did. No verdict is given on sides that do not compare.
pub(super) fn conclusions(comparison: &Comparison) -> Vec<String> {
    let comparable = comparability(comparison);
    let is_latency = |row: &Change| comparison.requests.iter().any(|one| one.name == row.name);
    let told = |row: &Change| if is_latency(row) { compared(&row.name) } else { row.name.clone() };
    let line = |row: &Change| {
        let more = if row.verdict == ChangeVerdict::Slower { "more" } else { "less" };
        let size = format!("{} {more} time", percent(row.change.map(f64::abs)));
        match comparable {
            Comparability::Comparable => {
                format!("{} is {}: {size}, 95% interval {}", told(row), verdict(row), interval(row.interval))
            }
            other => format!("{}: {size}{}", told(row), other.but()),
        }
    };
    let none = |what: &str| format!("no evidence of change in {what}{}", comparable.but());
    let (stages, commands) = (&comparison.stages[..], &comparison.commands[..]);
    let (rows, what) = if !comparison.requests.is_empty() {
        (&comparison.requests[..], "any latency of requests")
    } else if stages.is_empty() && !commands.is_empty() {
        (commands, "the command's time")
    } else {
        (stages, "any stage")
    };
    // A mean is told where the median does not tell it.
    let is_told = |row: &&Change| {
        let median = row.name.strip_suffix("mean").map(|latency| format!("{latency}p50"));
        !median.is_some_and(|median| changed(rows).any(|row| row.name == median))
    };
    let mut lines: Vec<String> = changed(rows).filter(is_told).map(line).collect();
    match (lines.is_empty(), tested(rows)) {
        (true, _) if rows.is_empty() => lines = without_stages(comparison, line, none),
        (true, true) => lines.push(none(what)),
        (true, false) => {
            lines.push(
                format!("{what} could not be tested for a change")
                    .replace("any stage could not", "no stage could")
                    .replace("any latency of requests could not", "no latency of requests could"),
            );
            lines.extend(changed(&comparison.steps).map(line));
        }
        (false, _) => {}
    }
    lines
}

/// The same for runs without stages: by their steps, else the part of a device's time that changed most.
fn without_stages(
    comparison: &Comparison,
    line: impl Fn(&Change) -> String,
    none: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut lines: Vec<String> = changed(&comparison.steps).map(line).collect();
    if lines.is_empty() && tested(&comparison.steps) {
        lines.push(none("any step"));
    }
    let largest = comparison.device_time.first().filter(|row| row.base.time_ns != row.with.time_ns);
    lines.extend(largest.map(|row| {
        let device = row.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
        let (base, with, share) = (known(row.base.time_ns), known(row.with.time_ns), change(row.change));
        let but = comparability(comparison).but();
        format!(
            "largest change in device time: {}{device}, {base} -> {with} ({share}), {}{but}",
            row.name,
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
            format!("gate {limit}: undecided, slower by more, but on a busy machine: {}", gate.failed.join(", "))
        }
        GateOutcome::Undecided => {
            format!("gate {limit}: undecided, nothing failed but not everything could be tested")
        }
    };
    match gate.may_hide {
        Some(share) => {
            format!("{text}; noise may hide up to {}, which more repeats or runs would narrow", signed(share))
        }
        None => text,
    }
}

/// How deep a stage is nested.
pub(crate) fn depth(change: &Change) -> usize {
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
        (Some(base), Some(with)) if base == with => grouped(base),
        (base, with) => format!("{} -> {}", known(base.map(grouped)), known(with.map(grouped))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = wrapped(&format!("  - {}", "word ".repeat(40)));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")));
    }
}
