//! The host gives device memory back and asks for it again, and the device waits.

use types::{EstimatedSaving, Facts, Finding, IdleCause, Severity};

use super::idle::{idle, seen_once};
use super::{Claim, Found, Run};
use crate::device::{DeviceRecords, StageWork};
use crate::loss::Cause;
use crate::scope::Scope;
use crate::statistics::share;

/// Share of the time that the device must wait meanwhile.
const LEAST_SHARE: f64 = 0.05;
/// The same where it does not come back.
const MUCH: f64 = 0.1;
/// Times memory must be given back: a program that starts only asks for it.
const FEWEST_FREES: u64 = 2;
/// Calls named.
const NAMED: usize = 3;

/// The rule's name.
pub(super) const RULE: &str = "memory-allocation";

pub(super) fn check(_: &Run<'_>, device: &DeviceRecords, scope: Scope, work: &StageWork) -> Option<Found> {
    let waiting = work.waits.get(&IdleCause::Allocating).copied()?;
    let once = work.waits_once.get(&IdleCause::Allocating).copied().unwrap_or_default();
    let comes_back = waiting - once;
    let part = share(waiting.get() as f64, work.wall.get() as f64)?;
    let recurs = share(comes_back.get() as f64, work.wall.get() as f64).is_some_and(|part| part >= LEAST_SHARE);
    // What does not come back matters only where it shapes the recording.
    if !recurs && part < MUCH {
        return None;
    }
    let calls = device.calls(scope, IdleCause::Allocating);
    let gives_back = |name: &str| ["Free", "Unmap", "Unregister"].iter().any(|sign| name.contains(sign));
    let count =
        |back: bool| calls.iter().filter(|(_, name)| gives_back(name) == back).map(|(count, _)| count).sum::<u64>();
    if count(true).min(count(false)) < FEWEST_FREES {
        return None;
    }
    let rows = calls.iter().take(NAMED).map(|(count, name)| Facts::new().with("call", *name).with("calls", *count));
    let facts = seen_once(idle(scope, waiting, part), once, waiting).with("calls", rows.collect::<Vec<_>>());
    if !recurs {
        let facts = facts.with_if("one_off", true);
        return Some(Found::plain(Finding::new(RULE, Severity::Info, scope.stage(), facts)));
    }
    let saving = EstimatedSaving::at_most(comes_back);
    let finding = Finding::new(RULE, Severity::Warning, scope.stage(), facts).saving(saving);
    Some(Found::new(finding, Claim::Lost(vec![Cause::Waiting(IdleCause::Allocating)])))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Nanos;

    use super::*;
    use crate::finding::fired_on_device;

    fn device(waiting: i64, frees: u64) -> DeviceRecords {
        let waits = BTreeMap::from([(IdleCause::Allocating, Nanos::new(waiting))]);
        let run = StageWork { wall: Nanos::new(10_000), waits, ..StageWork::default() };
        let calls = [("cudaMalloc", 80), ("cudaFree", frees)];
        let blocking = calls.map(|(name, count)| ((Scope::Run, IdleCause::Allocating, name.to_owned()), count));
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Run, run)]),
            blocking: BTreeMap::from(blocking),
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn memory_that_comes_and_goes_fires_with_its_calls() {
        let found = fired_on_device(&device(6_000, 80), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(6_000))));
        assert_eq!(found[0].quantities.share("idle_share"), Some(0.6));
        let free = Facts::new().with("call", "cudaFree").with("calls", 80_u64);
        assert!(found[0].quantities.rows("calls").contains(&free), "{:?}", found[0].quantities);
    }

    #[test]
    fn what_comes_once_is_not_promised_and_alone_is_told_where_it_is_much() {
        let with_once = |once: i64| {
            let mut records = device(6_000, 80);
            let run = records.stages.get_mut(&Scope::Run).unwrap();
            run.waits_once = BTreeMap::from([(IdleCause::Allocating, Nanos::new(once))]);
            fired_on_device(&records, RULE)
        };
        let found = with_once(1_000).remove(0);
        assert_eq!(found.saving.saves_ns, Some(Nanos::new(5_000)));
        assert_eq!(found.quantities.time("once"), Some(Nanos::new(1_000)));
        let alone = with_once(5_900).remove(0);
        assert_eq!((alone.severity, alone.saving.saves_ns), (Severity::Info, None));
        assert!(alone.quantities.has("one_off"));
        let mut little = device(900, 80);
        little.stages.get_mut(&Scope::Run).unwrap().waits_once =
            BTreeMap::from([(IdleCause::Allocating, Nanos::new(890))]);
        assert_eq!(fired_on_device(&little, RULE), []);
    }

    #[test]
    fn memory_that_is_only_asked_for_does_not_fire() {
        assert_eq!(fired_on_device(&device(6_000, 0), RULE), []);
        assert_eq!(fired_on_device(&device(400, 80), RULE), []);
    }
}
