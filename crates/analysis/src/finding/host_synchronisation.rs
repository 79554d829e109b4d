//! The host stops to wait for the device inside a step, and the device then waits for the host.

use types::{EstimatedSaving, Facts, Finding, IdleCause, Nanos, Severity};

use super::idle::{idle, waiting};
use super::{Claim, Found, Run};
use crate::device::StageWork;
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;

/// Share of the time that the device must wait after synchronisations.
const LEAST_SHARE: f64 = 0.02;
/// Calls named.
const NAMED: usize = 3;

/// The rule's name.
pub(super) const RULE: &str = "host-synchronisation";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let parts = waiting(run, IdleCause::Synchronising, LEAST_SHARE);
    parts.map(|(scope, work, waiting, part)| found(run, scope, work, waiting, part)).collect()
}

fn found(run: &Run<'_>, stage: Scope, work: &StageWork, waiting: Nanos, part: f64) -> Found {
    let calls = run.device.map(|device| device.calls(stage, IdleCause::Synchronising)).unwrap_or_default();
    let steps = work.steps.filter(|steps| *steps > 0);
    let row = |(count, name): &(u64, &str)| {
        let per_step = steps.map(|steps| *count as f64 / steps as f64);
        Facts::new().with("call", *name).with("calls", *count).with_known("per_step", per_step)
    };
    let rows: Vec<_> = calls.iter().take(NAMED).map(row).collect();
    let facts = idle(stage, waiting, part).with("calls", rows);
    let saving = EstimatedSaving::at_most(waiting);
    let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts).saving(saving);
    let claim = Claim::Lost(vec![Cause::Waiting(IdleCause::Synchronising)]);
    Found::new(finding, claim).replayed(Change::WithoutSynchronisation)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Stage;

    use super::*;
    use crate::device::DeviceRecords;
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
        let call = Facts::new().with("call", "cudaStreamSynchronize").with("calls", 6_u64).with("per_step", 1.5);
        assert_eq!(found[0].quantities.rows("calls"), [call]);
        assert_eq!(found[0].quantities.share("idle_share"), Some(0.03));
    }

    #[test]
    fn a_short_wait_does_not_fire() {
        assert_eq!(fired_on_device(&device(199), RULE), []);
    }
}
