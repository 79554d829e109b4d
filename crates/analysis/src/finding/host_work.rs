//! The device is idle while the host does something else and makes no call for it.

use types::{EstimatedSaving, Finding, IdleCause, Severity};

use super::{Claim, Found, Run, percent};
use crate::loss::Cause;
use crate::replay::Change;
use crate::statistics::share;

/// Share of the time that the host must be away.
const LEAST_SHARE: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "host-work";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let Some(device) = run.device else { return Vec::new() };
    let found = device.stages.iter().filter_map(|(scope, work)| {
        let waiting = work.waits.get(&IdleCause::HostWork).copied()?;
        let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
        let places = run.device_time.iter().flat_map(|time| &time.idle).filter(|idle| idle.cause == IdleCause::HostWork);
        let mut evidence = vec![format!(
            "the device is idle {waiting} while the host makes no CUDA or HIP call for a millisecond or longer, {} of {scope}",
            percent(part)
        )];
        evidence.extend(places.flat_map(|idle| &idle.inside).take(3).map(|place| format!("{} of it inside `{}`", place.ns, place.name)));
        let finding = Finding {
            rule: RULE.to_owned(),
            severity: Severity::Warning,
            stage: scope.stage(),
            evidence,
            saving: EstimatedSaving::at_most(waiting),
            advice: "Look at what the host does there: Python code, pre- and post-processing, operators on the processor. Move it \
                     off the launching thread, or do it while the device is busy. The figure is all of it."
                .to_owned(),
        };
        let claim = Claim::Lost(vec![Cause::Waiting(IdleCause::HostWork)]);
        Some(Found::new(finding, claim).replayed(Change::WithoutHost(IdleCause::HostWork)))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Nanos;

    use super::*;
    use crate::device::{DeviceRecords, StageWork};
    use crate::finding::fired_on_device;
    use crate::scope::Scope;

    fn device(waiting: i64, cause: IdleCause) -> DeviceRecords {
        let waits = BTreeMap::from([(cause, Nanos::new(waiting))]);
        let run = StageWork { wall: Nanos::new(10_000), waits, ..StageWork::default() };
        DeviceRecords { stages: BTreeMap::from([(Scope::Run, run)]), ..DeviceRecords::default() }
    }

    #[test]
    fn a_host_that_is_away_is_told() {
        let found = fired_on_device(&device(5_000, IdleCause::HostWork), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(5_000))));
        assert!(found[0].evidence[0].contains("50.0% of the run"), "{:?}", found[0].evidence);
    }

    #[test]
    fn a_device_that_waits_for_launches_does_not_fire() {
        assert_eq!(fired_on_device(&device(5_000, IdleCause::Launching), RULE), []);
        assert_eq!(fired_on_device(&device(100, IdleCause::HostWork), RULE), []);
    }
}
