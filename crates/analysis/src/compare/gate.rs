//! `--fail-over`: whether something got slower, or larger, than is allowed.
//!
//! It fails where a row's verdict is `slower` and its change is above the limit. A gate that could not have failed does
//! not pass: it is undecided, and says why. So is one over runs that a busy machine disturbed, whatever they show. A run
//! passes every gate against itself.

use std::collections::BTreeMap;

use types::{Change, ChangeVerdict, Difference, Gate, GateOutcome, Severity};

use super::{GateLimits, Sides};
use crate::disturbed;

/// What can be judged.
pub(super) struct Tables<'a> {
    pub(super) stages: &'a [Change],
    pub(super) commands: &'a [Change],
    pub(super) memory: &'a [Change],
    pub(super) steps: &'a [Change],
    pub(super) device: &'a [Change],
}

impl<'a> Tables<'a> {
    /// What is timed without a profiler; else steps, else the parts of the device's time.
    fn timed(&self) -> Vec<&'a Change> {
        let wall = self.commands.iter().filter(|change| is_named(change, "command"));
        let plain: Vec<_> = self.stages.iter().chain(wall).collect();
        let choices = [plain, self.steps.iter().collect(), self.device.iter().collect()];
        choices.into_iter().find(|rows| !rows.is_empty()).unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = &'a Change> {
        self.stages.iter().chain(self.commands).chain(self.memory).chain(self.steps).chain(self.device)
    }
}

pub(super) fn judge(limits: GateLimits, tables: &Tables<'_>, differences: &[Difference], sides: Sides<'_>) -> Gate {
    let mut judged: Vec<(&Change, f64)> = Vec::new();
    let mut reasons = Vec::new();
    for (name, limit) in &limits.named {
        let rows: Vec<_> = tables.all().filter(|change| is_named(change, name)).collect();
        if rows.is_empty() {
            let known: Vec<&str> = tables.all().map(|change| change.name.as_str()).collect();
            reasons.push(format!("neither side measured `{name}`; there is {}", known.join(", ")));
        }
        judged.extend(rows.into_iter().map(|row| (row, *limit)));
    }
    if let Some(limit) = limits.all {
        let timed = tables.timed();
        if timed.is_empty() {
            reasons.push("no stage, command or step was measured".to_owned());
        }
        let named = |change: &Change| limits.named.keys().any(|name| is_named(change, name));
        judged.extend(timed.into_iter().filter(|change| !named(change)).map(|change| (change, limit)));
    }
    let is_above = |(change, limit): &&(&Change, f64)| {
        change.verdict == ChangeVerdict::Slower && change.change.is_some_and(|change| change > *limit)
    };
    let failed: Vec<String> = judged.iter().filter(is_above).map(|(change, _)| change.name.clone()).collect();
    let mut untested: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (change, _) in &judged {
        if let Some(reason) = &change.untested {
            untested.entry(reason).or_default().push(&change.name);
        }
    }
    reasons.extend(untested.into_iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))));
    let different = differences.iter().filter(|difference| difference.severity == Severity::Error);
    reasons.extend(different.map(|difference| format!("{}: {}", difference.aspect, difference.meaning)));
    let busy = sides.runs().filter_map(|run| Some((run, disturbed::verdict(&run.metrics)?)));
    let busy: Vec<String> = busy.map(|(run, reason)| format!("{}: {reason}", run.path)).collect();
    let is_busy = !busy.is_empty();
    reasons.extend(busy);
    let outcome = match (failed.is_empty(), reasons.is_empty()) {
        _ if sides.is_same() && !judged.is_empty() => GateOutcome::Passed,
        (false, _) if !is_busy => GateOutcome::Failed,
        (true, true) => GateOutcome::Passed,
        _ => GateOutcome::Undecided,
    };
    let hidden = |(change, limit): &(&Change, f64)| {
        let high = change.interval.filter(|_| change.verdict != ChangeVerdict::Slower)?.high;
        (high > *limit).then_some(high)
    };
    let may_hide = judged.iter().filter_map(hidden).max_by(f64::total_cmp);
    Gate {
        limit: limits.all,
        limits: limits.named,
        outcome,
        failed,
        reasons: reasons.into_iter().map(Into::into).collect(),
        may_hide,
    }
}

/// Whether a row is what a limit names: `memory` is every row of memory, `memory: reserved` one.
fn is_named(change: &Change, name: &str) -> bool {
    change.name == name || change.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
}
