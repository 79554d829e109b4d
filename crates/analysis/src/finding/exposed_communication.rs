//! The device communicates, and no other kernel runs meanwhile.

use types::{EstimatedSaving, Finding, Nanos, Severity};

use super::{Claim, Found, Run, percent};
use crate::device::WorkGroup;
use crate::kernel::{Family, short_name};
use crate::replay::Change;
use crate::statistics::share;

/// Share of the devices' time that must go into it.
const LEAST_SHARE: f64 = 0.05;

/// The rule's name.
pub(super) const RULE: &str = "exposed-communication";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    found(run).into_iter().collect()
}

fn found(run: &Run<'_>) -> Option<Found> {
    let sum = |of: fn(&types::DeviceTime) -> Nanos| -> Nanos { run.device_time.iter().map(of).sum() };
    let (exposed, all, span) =
        (sum(|time| time.communication_exposed_ns), sum(|time| time.communication_ns), sum(|time| time.span_ns));
    let part = share(exposed.get() as f64, span.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let mut evidence = vec![format!(
        "communication runs {all}, of which {exposed} with no other kernel beside it: {} of {span}",
        percent(part)
    )];
    let is_collective = |group: &&WorkGroup| group.family == Family::Communication;
    let collectives = run.device.iter().flat_map(|device| device.groups.iter().filter(is_collective));
    evidence.extend(collectives.take(3).map(|group| {
        let operator = group.operator.as_deref().map(|name| format!(" of `{name}`")).unwrap_or_default();
        format!("`{}`{operator}: {} calls, {}", short_name(&group.name), group.calls, group.time)
    }));
    let finding = Finding {
        rule: RULE.to_owned(),
        severity: Severity::Warning,
        stage: None,
        evidence,
        saving: EstimatedSaving::at_most(exposed),
        advice: "Start collectives earlier and let compute run beside them (buckets in backward, prefetched all-gathers, two \
                 batches in flight), or send less (lower precision, fewer and larger messages). A collective also waits for \
                 the slowest rank: compare ranks before blaming the link. The figure is all of it."
            .to_owned(),
    };
    Some(Found::new(finding, Claim::Work(Vec::new())).replayed_everywhere(Change::HiddenCommunication))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::on_devices;

    #[test]
    fn communication_alone_fires_and_hidden_communication_does_not() {
        let time = |exposed: i64| types::DeviceTime {
            communication_ns: Nanos::new(600),
            communication_exposed_ns: Nanos::new(exposed),
            ..crate::sample::device_time(1_000)
        };
        let exposed = on_devices(&[time(500)], RULE);
        assert_eq!((exposed.len(), exposed[0].saving.saves_ns), (1, Some(Nanos::new(500))));
        assert_eq!(on_devices(&[time(40)], RULE), []);
    }
}
