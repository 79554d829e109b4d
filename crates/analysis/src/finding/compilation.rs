//! The device is idle while the host compiles, captures a graph, loads modules or launches for the first time.

use types::{EstimatedSaving, Finding, IdleCause, Severity};

use super::{Found, Run, percent};
use crate::statistics::share;

/// Share of the time that must go into it.
const LEAST_SHARE: f64 = 0.05;

/// The rule's name.
pub(super) const RULE: &str = "compilation";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let Some(device) = run.device else { return Vec::new() };
    let found = device.stages.iter().filter_map(|(scope, work)| {
        let waiting = work.waits.get(&IdleCause::Compiling).copied()?;
        let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
        let evidence = vec![format!(
            "the device is idle {waiting} while the host compiles, captures, loads or launches for the first time, {} of {scope}",
            percent(part)
        )];
        let finding = Finding {
            rule: RULE.to_owned(),
            severity: Severity::Warning,
            stage: scope.stage(),
            evidence,
            saving: EstimatedSaving::default(),
            advice: "This happens once: run the same shapes before the profiler starts, and read nothing else of this run as steady. \
                     Where it comes back, shapes change (dynamic shapes, recompilation): fix or pad them."
                .to_owned(),
        };
        Some(Found::plain(finding))
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
    fn compiling_is_told_and_promises_nothing() {
        let found = fired_on_device(&device(5_000, IdleCause::Compiling), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, None));
        assert!(found[0].evidence[0].contains("50.0% of the run"), "{:?}", found[0].evidence);
    }

    #[test]
    fn a_device_that_waits_for_launches_does_not_fire() {
        assert_eq!(fired_on_device(&device(5_000, IdleCause::Launching), RULE), []);
        assert_eq!(fired_on_device(&device(100, IdleCause::Compiling), RULE), []);
    }
}
