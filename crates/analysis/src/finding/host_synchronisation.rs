//! The host stops to wait for the device inside a step, and the device then waits for the host.

use types::{EstimatedSaving, Finding, Severity};

use super::{Claim, Found, Run, percent};
use crate::device::{DeviceRecords, StageWork};
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;
use crate::statistics::share;
use types::IdleCause;

/// Share of the time that the device must wait after synchronisations.
const LEAST_SHARE: f64 = 0.02;

/// The rule's name.
pub(super) const RULE: &str = "host-synchronisation";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let Some(device) = run.device else { return Vec::new() };
    device.stages.iter().filter_map(|(stage, work)| found(device, *stage, work)).collect()
}

fn found(device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let waiting = work.waits.get(&IdleCause::Synchronising).copied()?;
    let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let calls = device.calls(stage, IdleCause::Synchronising);
    let mut evidence =
        vec![format!("the device waits {waiting} while the host waits for it, {} of {stage}", percent(part))];
    let steps = work.steps.filter(|steps| *steps > 0);
    evidence.extend(calls.iter().take(3).map(|(count, name)| match steps {
        Some(steps) => format!("`{name}`: {:.1} calls per step", *count as f64 / steps as f64),
        None => format!("`{name}`: {count} calls"),
    }));
    let finding = Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Info,
        stage: stage.stage(),
        evidence,
        saving: EstimatedSaving::at_most(waiting),
        advice: "Let the host run ahead: keep on the device what the next launch needs, read results back every few steps, and avoid \
                 `.item()`, `.cpu()` and `nonzero` in between."
            .to_owned(),
    };
    let claim = Claim::Lost(vec![Cause::Waiting(IdleCause::Synchronising)]);
    Some(Found::new(finding, claim).replayed(Change::WithoutSynchronisation))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{Nanos, Stage};

    use super::*;
    use crate::finding::fired_on_device;

    fn device(waiting: i64) -> DeviceRecords {
        let waits = BTreeMap::from([(IdleCause::Synchronising, Nanos::new(waiting))]);
        let decode = StageWork { wall: Nanos::new(10_000), waits, steps: Some(4), ..StageWork::default() };
        let name = "cudaStreamSynchronize".to_owned();
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]),
            blocking: BTreeMap::from([((Scope::Stage(Stage::Decode), IdleCause::Synchronising, name), 6)]),
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn waits_after_synchronisations_fire_and_name_the_call() {
        let found = fired_on_device(&device(300), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(300))));
        assert_eq!(found[0].evidence[1], "`cudaStreamSynchronize`: 1.5 calls per step");
    }

    #[test]
    fn a_short_wait_does_not_fire() {
        assert_eq!(fired_on_device(&device(199), RULE), []);
    }
}
