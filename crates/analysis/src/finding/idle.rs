//! What rules about one cause of idle time share: how much of it there must be, and its facts.

use types::{EstimatedSaving, Facts, Finding, IdleCause, Nanos, Severity};

use super::{Claim, Found, Run};
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
}

/// A rule about one cause of idle time.
pub(super) struct IdleRule {
    /// Its name.
    pub(super) name: &'static str,
    /// The cause.
    pub(super) cause: IdleCause,
    /// Share of the time from which it is told.
    pub(super) least_share: f64,
    /// How much of the time is promised.
    pub(super) promise: Promise,
}

impl IdleRule {
    /// Every scope in which the device is idle for long enough; `places` are where the host was.
    pub(super) fn check(&self, run: &Run<'_>, places: impl Fn(Scope) -> Vec<Facts>) -> Vec<Found> {
        let Some(device) = run.device else { return Vec::new() };
        let found = device.stages.iter().filter_map(|(scope, work)| {
            let waiting = work.waits.get(&self.cause).copied().filter(|waiting| !run.is_little(*waiting))?;
            let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= self.least_share)?;
            let once = work.waits_once.get(&self.cause).copied().unwrap_or_default();
            let promised = match self.promise {
                Promise::Nothing => Nanos::ZERO,
                Promise::WhatComesBack => waiting - once,
            };
            let much =
                share(promised.get() as f64, work.wall.get() as f64).is_some_and(|part| part >= self.least_share);
            let is_told_only = self.promise == Promise::WhatComesBack && !much;
            let severity = if is_told_only { Severity::Info } else { Severity::Warning };
            let once = some(once).filter(|_| self.promise == Promise::WhatComesBack);
            let facts =
                idle(*scope, waiting, part).with_known("once", once).with_if("one_off", is_told_only && once.is_some());
            let rows = Some(places(*scope)).filter(|rows| !rows.is_empty());
            let finding = Finding::new(self.name, severity, scope.stage(), facts.with_known("places", rows));
            if !much {
                return Some(Found::plain(finding));
            }
            let finding = finding.saving(EstimatedSaving::at_most(promised));
            let found = Found::new(finding, Claim::Lost(vec![Cause::Waiting(self.cause)]));
            Some(found.replayed(Change::WithoutHost(self.cause)))
        });
        found.collect()
    }
}

/// The facts of idle time in a part of the run.
pub(super) fn idle(scope: Scope, waiting: Nanos, part: f64) -> Facts {
    Facts::new().with("where", scope.base()).with("idle", waiting).with_share("idle_share", part, scope.base())
}

/// A time, where there is any.
pub(super) fn some(time: Nanos) -> Option<Nanos> {
    Some(time).filter(|time| *time > Nanos::ZERO)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Base;

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
            assert_eq!(found[0].quantities.get("where"), Some(&Base::Run.into()));
            assert_eq!(found[0].quantities.share("idle_share"), Some(0.5));
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
        assert_eq!(starting.quantities.time("once"), Some(Nanos::new(4_500)));
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
        let share = types::Share { share: 0.5, of: Base::OutsideStages };
        assert_eq!(found[0].quantities.get("idle_share"), Some(&share.into()));
        assert_eq!((found[0].stage, found[0].saving.saves_ns), (None, Some(Nanos::new(5_000))));
    }

    #[test]
    fn little_time_outside_of_stages_is_not_told() {
        let mut records = device(5_000, IdleCause::DataLoading);
        let rest = records.stages.remove(&Scope::Run).unwrap();
        let decode = StageWork { wall: Nanos::new(1_000_000), ..StageWork::default() };
        records.stages = BTreeMap::from([(Scope::Stage(types::Stage::Decode), decode), (Scope::Rest, rest)]);
        assert_eq!(fired_on_device(&records, data_loading::RULE), [], "half a percent of the run");
    }
}
