//! Every step copies from the host to the device.

use types::timeline::{CopyDirection, WorkKind};
use types::{Base, Bytes, EstimatedSaving, Facts, Finding, IdleCause, Nanos, Severity, Stage};

use super::copies::CopyRule;
use super::{Claim, Found, Run};
use crate::device::{DeviceRecords, WorkGroup};
use crate::kernel::Family;
use crate::loss::Cause;
use crate::replay::{Change, CopyFate};
use crate::scope::Scope;
use crate::statistics::share;

/// Share of decode that the copies must take.
const LEAST_SHARE: f64 = 0.01;
/// The rule's name.
pub(super) const RULE: &str = "host-to-device-copies";

/// Copies that the devices spend their time on, whatever launches them.
const COPIES: CopyRule = CopyRule { name: RULE, direction: CopyDirection::HostToDevice };

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    run.device.and_then(found).into_iter().chain(COPIES.check(run)).collect()
}

fn found(device: &DeviceRecords) -> Option<Found> {
    let work = device.stages.get(&Scope::Stage(Stage::Decode))?;
    let steps = work.steps.filter(|steps| *steps > 0)?;
    let is_copy = |group: &&WorkGroup| {
        group.scope == Scope::Stage(Stage::Decode) && group.kind == WorkKind::Copy(CopyDirection::HostToDevice)
    };
    let copies: Vec<_> = device.groups.iter().filter(is_copy).collect();
    let calls: u64 = copies.iter().map(|group| group.calls).sum();
    if calls < steps {
        return None;
    }
    let sum = |of: fn(&WorkGroup) -> Nanos| -> Nanos { copies.iter().map(|group| of(group)).sum() };
    let in_calls = work.waits.get(&IdleCause::Copying).copied().unwrap_or_default();
    let (run, wait) = (sum(|group| group.run), sum(|group| group.wait));
    let saves = run + wait.max(in_calls);
    let part = share(saves.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let facts = Facts::new()
        .with("per_step", calls as f64 / steps as f64)
        .with("moved", copies.iter().map(|group| group.bytes).sum::<Bytes>())
        .with("run", run)
        .with("wait", wait.max(in_calls))
        .with_share("copies_share", part, Base::Stage(Stage::Decode));
    let finding =
        Finding::new(RULE, Severity::Info, Some(Stage::Decode), facts).saving(EstimatedSaving::at_most(saves));
    let causes = vec![
        Cause::Waiting(IdleCause::Copying),
        Cause::Kernels(Family::MemoryCopy),
        Cause::Waiting(IdleCause::Launching),
    ];
    let change = Change::Copies(Some(CopyDirection::HostToDevice), CopyFate::Removed);
    Some(Found::new(finding, Claim::Lost(causes)).replayed(change))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::device::StageWork;
    use crate::device::sample::group;
    use crate::finding::fired_on_device;

    fn device(calls: u64) -> DeviceRecords {
        let waits = BTreeMap::from([(IdleCause::Copying, Nanos::new(500))]);
        let decode = StageWork { wall: Nanos::new(10_000), waits, steps: Some(4), ..StageWork::default() };
        let copy = WorkGroup {
            kind: WorkKind::Copy(CopyDirection::HostToDevice),
            calls,
            ..group(Stage::Decode, "Memcpy HtoD", Family::MemoryCopy, 20)
        };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]),
            groups: vec![copy],
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn a_copy_in_every_step_fires() {
        let found = fired_on_device(&device(8), RULE);
        // Without a model nothing is known to be lost while they run, so 500 of the 520 ns can be claimed.
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(500))));
        let facts = &found[0].quantities;
        assert_eq!((facts.number("per_step"), facts.share("copies_share")), (Some(2.0), Some(0.052)));
        assert_eq!((facts.time("run"), facts.time("wait")), (Some(Nanos::new(20)), Some(Nanos::new(500))));
    }

    #[test]
    fn devices_that_mostly_copy_fire_however_busy_they_are() {
        let copy = types::CopyTime {
            kind: "HtoD".to_owned(),
            calls: 225,
            ns: Nanos::new(900),
            exposed_ns: Nanos::new(880),
            bytes: Some(Bytes::new(9_000)),
        };
        let time = types::DeviceTime {
            copies_exposed_ns: Nanos::new(880),
            copies: vec![copy],
            ..crate::sample::device_time(1_000)
        };
        let found = crate::finding::on_devices(&[time.clone(), time], RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(1_760))));
        assert_eq!(crate::finding::on_devices(&[crate::sample::device_time(1_000)], RULE), []);
    }

    #[test]
    fn copies_without_a_kernel_to_hide_behind_promise_nothing() {
        let copy = types::CopyTime {
            kind: "HtoD".to_owned(),
            calls: 10,
            ns: Nanos::new(480),
            exposed_ns: Nanos::new(480),
            bytes: Some(Bytes::new(9)),
        };
        let time = crate::sample::device_time(1_000);
        let time = types::DeviceTime { compute_ns: Nanos::ZERO, copies: vec![copy], ..time };
        let [found] = &crate::finding::on_devices(&[time], RULE)[..] else { panic!("one finding") };
        assert_eq!((found.severity, found.saving.saves_ns), (Severity::Warning, None));
        assert!(found.quantities.has("mostly"));
    }

    #[test]
    fn fewer_copies_are_worth_a_word_and_no_warning() {
        let of = |exposed: i64| {
            let exposed_ns = Nanos::new(exposed);
            let copy = types::CopyTime {
                kind: "HtoD".to_owned(),
                calls: 3,
                ns: exposed_ns,
                exposed_ns,
                bytes: Some(Bytes::new(9)),
            };
            let copies = types::DeviceTime { copies: vec![copy], ..crate::sample::device_time(1_000) };
            let found = crate::finding::on_devices(&[copies], RULE);
            found.first().map(|found| (found.severity, found.saving.saves_ns))
        };
        assert_eq!(of(49), None);
        assert_eq!(of(66), Some((Severity::Info, Some(Nanos::new(66)))));
        assert_eq!(of(100), Some((Severity::Warning, Some(Nanos::new(100)))));
    }

    #[test]
    fn a_copy_once_in_a_while_does_not_fire() {
        assert_eq!(fired_on_device(&device(3), RULE), []);
    }
}
