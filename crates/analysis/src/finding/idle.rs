//! What rules about one cause of idle time share: how much of it there must be, and how it is told.

use types::{EstimatedSaving, Finding, IdleCause, Nanos, Severity};

use super::{Claim, Found, Run, percent};
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;
use crate::statistics::share;

/// How much of its time a rule promises.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// None: it happens once.
    Nothing,
    /// What comes back in the recording: a longer run may not repeat the rest.
    WhatComesBack,
    /// All of it.
    All,
}

/// A rule about one cause of idle time.
pub(super) struct IdleRule {
    /// Its name.
    pub(super) name: &'static str,
    /// The cause.
    pub(super) cause: IdleCause,
    /// Share of the time from which it is told.
    pub(super) least_share: f64,
    /// What goes on meanwhile, behind "the device is idle 5 ms".
    pub(super) meanwhile: &'static str,
    /// How much of the time is promised.
    pub(super) promise: Promise,
    /// What to do.
    pub(super) advice: &'static str,
}

impl IdleRule {
    /// Every scope in which the device is idle for long enough; `more` is further evidence.
    pub(super) fn check(&self, run: &Run<'_>, more: impl Fn(Scope) -> Vec<String>) -> Vec<Found> {
        let Some(device) = run.device else { return Vec::new() };
        let found = device.stages.iter().filter_map(|(scope, work)| {
            let waiting = work.waits.get(&self.cause).copied()?;
            let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= self.least_share)?;
            let mut evidence =
                vec![format!("the device is idle {waiting} {}, {} of {scope}", self.meanwhile, percent(part))];
            evidence.extend(more(*scope));
            let once = work.waits_once.get(&self.cause).copied().unwrap_or_default();
            let promised = match self.promise {
                Promise::Nothing => Nanos::ZERO,
                Promise::WhatComesBack => waiting - once,
                Promise::All => waiting,
            };
            evidence.extend(once_told(once).filter(|_| self.promise == Promise::WhatComesBack));
            let much =
                share(promised.get() as f64, work.wall.get() as f64).is_some_and(|part| part >= self.least_share);
            let is_told_only = self.promise == Promise::WhatComesBack && !much;
            let finding = Finding {
                quantities: Default::default(),
                rule: self.name.to_owned(),
                severity: if is_told_only { Severity::Info } else { Severity::Warning },
                stage: scope.stage(),
                evidence,
                saving: if much { EstimatedSaving::at_most(promised) } else { EstimatedSaving::default() },
                advice: self.advice.to_owned(),
            };
            if !much {
                return Some(Found::plain(finding));
            }
            let found = Found::new(finding, Claim::Lost(vec![Cause::Waiting(self.cause)]));
            Some(found.replayed(Change::WithoutHost(self.cause)))
        });
        found.collect()
    }
}

/// What is said of the part of a wait that comes once in the recording.
pub(super) fn once_told(once: Nanos) -> Option<String> {
    (once > Nanos::ZERO).then(|| format!("{once} of that comes once in this recording, and is not promised"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::device::{DeviceRecords, StageWork};
    use crate::finding::{compilation, data_loading, fired_on_device, host_work};

    fn device(waiting: i64, cause: IdleCause) -> DeviceRecords {
        let waits = BTreeMap::from([(cause, Nanos::new(waiting))]);
        let run = StageWork { wall: Nanos::new(10_000), waits, ..StageWork::default() };
        DeviceRecords { stages: BTreeMap::from([(Scope::Run, run)]), ..DeviceRecords::default() }
    }

    #[test]
    fn a_cause_is_told_by_its_own_rule_with_what_it_may_save() {
        let rules = [
            (data_loading::RULE, IdleCause::DataLoading, Some(Nanos::new(5_000))),
            (host_work::RULE, IdleCause::HostWork, Some(Nanos::new(5_000))),
            // Compiling happens once and promises nothing.
            (compilation::RULE, IdleCause::Compiling, None),
        ];
        for (rule, cause, saves) in rules {
            let found = fired_on_device(&device(5_000, cause), rule);
            assert_eq!((found.len(), found[0].saving.saves_ns), (1, saves), "{rule}");
            assert!(found[0].evidence[0].contains("50.0% of the run"), "{:?}", found[0].evidence);
            assert_eq!(fired_on_device(&device(5_000, IdleCause::Launching), rule), [], "{rule}");
            assert_eq!(fired_on_device(&device(100, cause), rule), [], "{rule}");
        }
    }

    #[test]
    fn what_comes_once_is_told_and_not_promised() {
        let with_once = |once: i64| {
            let mut records = device(5_000, IdleCause::HostWork);
            let run = records.stages.get_mut(&Scope::Run).unwrap();
            run.waits_once = BTreeMap::from([(IdleCause::HostWork, Nanos::new(once))]);
            fired_on_device(&records, host_work::RULE).remove(0)
        };
        let starting = with_once(4_500);
        assert_eq!((starting.severity, starting.saving.saves_ns), (Severity::Info, None));
        assert!(starting.evidence[1].contains("comes once in this recording"), "{:?}", starting.evidence);
        let steady = with_once(1_000);
        assert_eq!((steady.severity, steady.saving.saves_ns), (Severity::Warning, Some(Nanos::new(4_000))));
    }

    #[test]
    fn time_outside_of_stages_is_not_called_the_run() {
        let mut records = device(5_000, IdleCause::DataLoading);
        let rest = records.stages.remove(&Scope::Run).unwrap();
        let decode = StageWork { wall: Nanos::new(10_000), ..StageWork::default() };
        records.stages = BTreeMap::from([(Scope::Stage(types::Stage::Decode), decode), (Scope::Rest, rest)]);
        let found = fired_on_device(&records, data_loading::RULE);
        assert!(found[0].evidence[0].ends_with("50.0% of the time outside of stages"), "{:?}", found[0].evidence);
        assert_eq!((found[0].stage, found[0].saving.saves_ns), (None, Some(Nanos::new(5_000))));
    }
}
