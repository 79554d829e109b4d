//! `--fail-over`: whether a stage got slower than is allowed.
//!
//! It fails where a stage's verdict is `slower` and its change is above the limit. A gate that could not have failed does
//! not pass: it is undecided, and says why.

use std::collections::BTreeMap;

use types::{Change, ChangeVerdict, Difference, Gate, GateOutcome, Severity, Stage};

pub(super) fn judge(limit: f64, stages: &[Change], differences: &[Difference]) -> Gate {
    let slower = |change: &&Change| {
        change.verdict == ChangeVerdict::Slower && change.change.is_some_and(|change| change > limit)
    };
    let failed: Vec<Stage> = stages.iter().filter(slower).filter_map(stage).collect();
    let mut untested: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for change in stages {
        if let Some(reason) = &change.untested {
            untested.entry(reason).or_default().push(&change.name);
        }
    }
    let mut reasons: Vec<String> =
        untested.into_iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    if stages.is_empty() {
        reasons.push("no stage was measured".to_owned());
    }
    let different = differences.iter().filter(|difference| difference.severity == Severity::Error);
    reasons.extend(different.map(|difference| format!("{}: {}", difference.aspect, difference.meaning)));
    let outcome = match (failed.is_empty(), reasons.is_empty()) {
        (false, _) => GateOutcome::Failed,
        (true, true) => GateOutcome::Passed,
        (true, false) => GateOutcome::Undecided,
    };
    let highs =
        stages.iter().filter(|change| change.verdict != ChangeVerdict::Slower).filter_map(|change| change.interval);
    let may_hide = highs.map(|interval| interval.high).filter(|high| *high > limit).max_by(f64::total_cmp);
    Gate { limit, outcome, failed, reasons, may_hide }
}

fn stage(change: &Change) -> Option<Stage> {
    Stage::ALL.into_iter().find(|stage| stage.name() == change.name)
}
