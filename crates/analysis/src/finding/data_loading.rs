//! The device is idle while the host waits for its data loader.

use types::{EstimatedSaving, Finding, IdleCause, Severity};

use super::{Claim, Found, Run, percent};
use crate::loss::Cause;
use crate::replay::Change;
use crate::statistics::share;

/// Share of the time that the device must be idle inside the data loader.
const LEAST_SHARE: f64 = 0.02;

/// The rule's name.
pub(super) const RULE: &str = "data-loading";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let Some(device) = run.device else { return Vec::new() };
    let found = device.stages.iter().filter_map(|(scope, work)| {
        let waiting = work.waits.get(&IdleCause::DataLoading).copied()?;
        let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
        let evidence =
            vec![format!("the device is idle {waiting} inside `enumerate(DataLoader)`, {} of {scope}", percent(part))];
        let finding = Finding {
            rule: RULE.to_owned(),
            severity: Severity::Warning,
            stage: scope.stage(),
            evidence,
            saving: EstimatedSaving::at_most(waiting),
            advice: "Load ahead: more worker processes (`num_workers`), `prefetch_factor`, `persistent_workers`, pinned memory with \
                     `non_blocking` copies, or preprocessing moved off the critical path."
                .to_owned(),
        };
        let claim = Claim::Lost(vec![Cause::Waiting(IdleCause::DataLoading)]);
        Some(Found::new(finding, claim).replayed(Change::WithoutHost(IdleCause::DataLoading)))
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
    fn gaps_inside_the_data_loader_are_its_own() {
        let found = fired_on_device(&device(5_000, IdleCause::DataLoading), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(5_000))));
        assert!(found[0].evidence[0].contains("50.0% of the run"), "{:?}", found[0].evidence);
    }

    #[test]
    fn a_device_that_waits_for_launches_does_not_fire() {
        assert_eq!(fired_on_device(&device(5_000, IdleCause::Launching), RULE), []);
        assert_eq!(fired_on_device(&device(100, IdleCause::DataLoading), RULE), []);
    }
}
