//! Words and figures that both forms need.

use std::collections::BTreeMap;

use types::{
    Change, ChangeInterval, ChangeVerdict, Comparison, Gate, GateOutcome, Measured, Replication, Severity, Stage,
};

use crate::number::{UNKNOWN, count, percent};

/// How much longer, with its sign.
pub(super) fn change(share: Option<f64>) -> String {
    share.map_or(UNKNOWN.to_owned(), signed)
}

/// Where the true change lies.
pub(super) fn interval(interval: Option<ChangeInterval>) -> String {
    interval.map_or(UNKNOWN.to_owned(), |interval| format!("[{}, {}]", signed(interval.low), signed(interval.high)))
}

/// Time of one side.
pub(super) fn time(side: &Measured) -> String {
    side.time_ns.map_or(UNKNOWN.to_owned(), |time| time.to_string())
}

/// Spread of one side.
pub(super) fn spread(side: &Measured) -> String {
    percent(side.spread)
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

/// Why rows were not tested, each reason once with the rows it is about.
pub(super) fn untested(changes: &[Change]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for change in changes {
        if let Some(reason) = &change.untested {
            reasons.entry(reason).or_default().push(&change.name);
        }
    }
    let all = |names: &[&str]| names.len() == changes.len() && names.len() > 1;
    let line = |(reason, names): (&str, Vec<&str>)| match all(&names) {
        true => format!("not tested: all of them; {reason}"),
        false => format!("not tested: {}; {reason}", names.join(", ")),
    };
    reasons.into_iter().map(line).collect()
}

/// Samples that stand out, which are in every figure.
pub(super) fn flagged(changes: &[Change]) -> Vec<String> {
    let sides = |change: &Change, of: fn(&Measured) -> u64| of(&change.base) + of(&change.with);
    let mut lines = Vec::new();
    for change in changes {
        let samples = sides(change, |side| side.samples);
        let outliers = sides(change, |side| side.outliers);
        if outliers > 0 {
            lines.push(format!(
                "{}: {outliers} of {} stand apart from the others; kept",
                change.name,
                count(samples, "sample")
            ));
        }
        let warm_up = sides(change, |side| side.warm_up);
        if warm_up > 0 {
            let them = count(warm_up, "sample");
            lines.push(format!(
                "{}: {them} at the beginning look like warm-up; kept, more warm-up rounds help",
                change.name
            ));
        }
    }
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
pub(super) fn conclusions(comparison: &Comparison) -> Vec<String> {
    let sure = comparison.stages.iter().filter(|change| change.verdict != ChangeVerdict::NoEvidence);
    let line = |row: &Change| {
        let size = row.change.map(f64::abs);
        format!("{} is {} by {} {}", row.name, verdict(row), percent(size), interval(row.interval))
    };
    let lines: Vec<String> = sure.map(line).collect();
    let tested = comparison.stages.iter().any(|change| change.untested.is_none());
    match (lines.is_empty(), tested) {
        (false, _) => lines,
        (true, true) => vec!["no evidence of change in any stage".to_owned()],
        (true, false) => vec!["no stage could be tested for a change".to_owned()],
    }
}

/// How the gate ended, and what it may have missed.
pub(super) fn gate(gate: &Gate) -> String {
    let limit = percent(Some(gate.limit));
    let text = match gate.outcome {
        GateOutcome::Passed => format!("gate {limit}: passed, no stage is slower by more"),
        GateOutcome::Failed => {
            let stages: Vec<&str> = gate.failed.iter().map(|stage| stage.name()).collect();
            format!("gate {limit}: failed, slower by more: {}", stages.join(", "))
        }
        GateOutcome::Undecided => {
            format!("gate {limit}: undecided, nothing failed but not everything could be tested")
        }
    };
    match gate.may_hide {
        Some(share) => format!("{text}; the noise may hide up to {}, more repeats or runs narrow that", signed(share)),
        None => text,
    }
}

/// How much a difference matters.
pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
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

/// The stage of that name.
pub(super) fn stage(change: &Change) -> Option<Stage> {
    Stage::ALL.into_iter().find(|stage| stage.name() == change.name)
}

/// How deep a stage is nested.
pub(super) fn depth(change: &Change) -> usize {
    std::iter::successors(stage(change), |stage| stage.parent()).count().saturating_sub(1)
}

fn signed(share: f64) -> String {
    match share * 100.0 {
        percent if percent.abs() >= 999.5 => format!("{:+.0}x", share + 1.0),
        percent if percent.abs() < 0.05 => "0.0%".to_owned(),
        percent => format!("{percent:+.1}%"),
    }
}
