//! `--fail-over`: whether something got slower, or larger, than is allowed.
//!
//! It fails where a row's verdict is `slower` and its change is above the limit. A gate that could not have failed does
//! not pass: it is undecided, and says why. So is one over runs that a busy machine disturbed, whatever they show. A run
//! passes every gate against itself.

use types::{Change, ChangeVerdict, Difference, Facts, Gate, GateOutcome, Remark, Severity};

use super::{GateLimits, Sides};

/// What can be judged.
pub(super) struct Tables<'a> {
    pub(super) requests: &'a [Change],
    pub(super) stages: &'a [Change],
    pub(super) commands: &'a [Change],
    pub(super) memory: &'a [Change],
    pub(super) steps: &'a [Change],
    pub(super) device: &'a [Change],
}

impl<'a> Tables<'a> {
    /// Latencies of requests, else what is timed without a profiler; else steps, else the parts of the device's time.
    fn timed(&self) -> Vec<&'a Change> {
        let wall = self.commands.iter().filter(|change| is_named(change, "command"));
        let plain: Vec<_> = self.stages.iter().chain(wall).collect();
        // A 99th percentile of few requests is nothing to wait for.
        let counts = |row: &&Change| row.untested.is_none() || !row.name.ends_with("p99");
        let requests = self.requests.iter().filter(counts).collect();
        let choices = [requests, plain, self.steps.iter().collect(), self.device.iter().collect()];
        choices.into_iter().find(|rows| !rows.is_empty()).unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = &'a Change> {
        self.requests
            .iter()
            .chain(self.stages)
            .chain(self.commands)
            .chain(self.memory)
            .chain(self.steps)
            .chain(self.device)
    }
}

pub(super) fn judge(limits: GateLimits, tables: &Tables<'_>, differences: &[Difference], sides: Sides<'_>) -> Gate {
    let mut judged: Vec<(&Change, f64)> = Vec::new();
    let mut reasons = Vec::new();
    for (name, limit) in &limits.named {
        let rows: Vec<_> = tables.all().filter(|change| is_named(change, name)).collect();
        if rows.is_empty() {
            let known: Vec<Facts> = tables.all().map(|change| Facts::new().with("name", &change.name)).collect();
            reasons.push(Remark::new("gate.unknown-row", Facts::new().with("name", name).with("known", known)));
        }
        judged.extend(rows.into_iter().map(|row| (row, *limit)));
    }
    if let Some(limit) = limits.all {
        let timed = tables.timed();
        if timed.is_empty() {
            reasons.push(Remark::new("gate.nothing-measured", Facts::new()));
        }
        let named = |change: &Change| limits.named.keys().any(|name| is_named(change, name));
        judged.extend(timed.into_iter().filter(|change| !named(change)).map(|change| (change, limit)));
    }
    let is_above = |(change, limit): &&(&Change, f64)| {
        change.verdict == ChangeVerdict::Slower && change.change.is_some_and(|change| change > *limit)
    };
    let failed: Vec<String> = judged.iter().filter(is_above).map(|(change, _)| change.name.clone()).collect();
    let mut untested: Vec<(&Remark, Vec<Facts>)> = Vec::new();
    for (change, _) in &judged {
        let Some(reason) = &change.untested else { continue };
        let name = Facts::new().with("name", &change.name);
        match untested.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => untested.push((reason, vec![name])),
        }
    }
    let of_rows = |(reason, rows): (&Remark, Vec<Facts>)| {
        Remark::new("gate.untested", Facts::new().with("rows", rows).with("reason", reason.clone()))
    };
    reasons.extend(untested.into_iter().map(of_rows));
    let different = differences.iter().filter(|difference| difference.severity == Severity::Error);
    let meaning = |one: &Difference| Facts::new().with("aspect", &one.aspect).with("meaning", one.meaning.clone());
    reasons.extend(different.map(|difference| Remark::new("gate.different", meaning(difference))));
    let busy: Vec<Remark> = sides.runs().filter_map(super::disturbed_run).collect();
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
    Gate { limit: limits.all, limits: limits.named, outcome, failed, reasons, may_hide }
}

/// Whether a row is what a limit names: `memory` is every row of memory, `memory: reserved` one.
fn is_named(change: &Change, name: &str) -> bool {
    change.name == name || change.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'))
}
