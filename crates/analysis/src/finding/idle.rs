//! What rules about one cause of idle time share: how much of it there must be, and its facts.

use std::collections::BTreeMap;

use types::{EstimatedSaving, Facts, Finding, IdleCause, IdlePlace, Nanos, Severity};

use super::{Claim, Found, Run};
use crate::device::StageWork;
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;
use crate::statistics::share;

/// Share of a part of the run from which idle time of one cause is told.
const LEAST_SHARE: f64 = 0.02;
/// The same where nothing can be promised.
const LEAST_UNPROMISED: f64 = 0.05;
/// Share from which it is worth a warning.
const MUCH: f64 = 0.1;
/// Places named.
const PLACES: usize = 3;
/// The fact that says how much of the unrecorded time comes again.
pub(super) const RECURS: &str = "recurs";

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
    /// Idle time of which nobody knows whether it has this cause: it is told with it, and never promised.
    pub(super) unrecorded: Option<IdleCause>,
    /// How much of the time is promised.
    pub(super) promise: Promise,
}

impl IdleRule {
    /// A part of the run in which the device is idle for long enough.
    pub(super) fn check(&self, run: &Run<'_>, scope: Scope, work: &StageWork) -> Option<Found> {
        let of = |waits: &BTreeMap<IdleCause, Nanos>, cause| waits.get(&cause).copied().unwrap_or_default();
        let of_both = |waits| {
            [Some(self.cause), self.unrecorded].map(|cause| cause.map_or(Nanos::ZERO, |cause| of(waits, cause)))
        };
        let ([known, unrecorded], [known_once, unrecorded_once]) = (of_both(&work.waits), of_both(&work.waits_once));
        let waiting = known + unrecorded;
        let share_of = |time: Nanos| share(time.get() as f64, work.wall.get() as f64);
        let part = share_of(waiting).filter(|part| *part >= LEAST_SHARE && !run.is_little(waiting))?;
        let comes_back = self.promise == Promise::WhatComesBack;
        let promised = if comes_back { known - known_once } else { Nanos::ZERO };
        let recurs = unrecorded - unrecorded_once;
        let told = if comes_back { promised + recurs } else { waiting };
        let severity = if share_of(told).is_some_and(|part| part >= MUCH) { Severity::Warning } else { Severity::Info };
        let is_promised = share_of(promised).is_some_and(|part| part >= LEAST_SHARE);
        let once = if comes_back { known_once + unrecorded_once } else { Nanos::ZERO };
        let is_once = comes_back && share_of(told).is_none_or(|part| part < LEAST_SHARE);
        // What does not come back matters only where it shapes the recording; what nobody knows, a little earlier.
        let least = if is_once { MUCH } else { LEAST_UNPROMISED };
        if comes_back && !is_promised && part < least {
            return None;
        }
        let facts = seen_once(idle(scope, waiting, part), once, waiting)
            .with_if("one_off", is_once && once > Nanos::ZERO)
            .with_known("unrecorded", some(unrecorded))
            .with_if("all_unrecorded", unrecorded == waiting)
            .with_known(RECURS, some(recurs))
            .with_if("works", is_promised);
        let places = places(run, scope, [Some(self.cause), self.unrecorded]);
        let (next, inside): (Vec<_>, Vec<_>) = places.into_iter().partition(|place| place.has("next"));
        let some_rows = |rows: Vec<Facts>| Some(rows).filter(|rows| !rows.is_empty());
        let facts = facts.with_known("places", some_rows(inside)).with_known("next", some_rows(next));
        let finding = Finding::new(self.name, severity, scope.stage(), facts);
        if !is_promised {
            return Some(Found::plain(finding));
        }
        let finding = finding.saving(EstimatedSaving::at_most(promised));
        let found = Found::new(finding, Claim::Lost(vec![Cause::Waiting(self.cause)]));
        Some(found.replayed(Change::WithoutHost(self.cause)))
    }
}

/// Parts of the run whose device waits for this cause for at least such a share of their time, with that time and its share.
pub(super) fn waiting<'a>(
    run: &Run<'a>,
    cause: IdleCause,
    least: f64,
) -> impl Iterator<Item = (Scope, &'a StageWork, Nanos, f64)> {
    run.device.into_iter().flat_map(|device| &device.stages).filter_map(move |(scope, work)| {
        let waiting = work.waits.get(&cause).copied()?;
        let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= least)?;
        Some((*scope, work, waiting, part))
    })
}

/// The facts of idle time in a part of the run.
pub(super) fn idle(scope: Scope, waiting: Nanos, part: f64) -> Facts {
    Facts::new().with("where", scope.base()).with("idle", waiting).with_share("idle_share", part, scope.base())
}

/// Where the host was in idle time of these causes. Places are known of a device's whole time, so that they are evidence for the whole
/// of it alone.
fn places(run: &Run<'_>, scope: Scope, causes: [Option<IdleCause>; 2]) -> Vec<Facts> {
    let [time] = run.device_time else { return Vec::new() };
    let idle = time.idle.iter().filter(|idle| scope == Scope::Run && causes.contains(&Some(idle.cause)));
    let mut places: Vec<_> = idle.flat_map(|idle| &idle.inside).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.ns));
    places.into_iter().take(PLACES).map(row).collect()
}

/// A place of the host, or the work behind it.
fn row(place: &IdlePlace) -> Facts {
    let name = place.next().map_or(("name", place.name.as_str()), |next| ("next", next));
    Facts::new().with(name.0, name.1).with("time", place.ns)
}

/// How much of a time comes once, or that all of it does.
pub(super) fn seen_once(facts: Facts, once: Nanos, all: Nanos) -> Facts {
    facts
        .with_known("once", some(once).filter(|once| *once < all))
        .with_if("entirely", all > Nanos::ZERO && once >= all)
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
    use crate::device::StageWork;
    use crate::finding::{compilation, data_loading, fired_on_device, host_work, waiting_device};

    #[test]
    fn a_cause_is_told_by_its_own_rule_with_what_it_may_save() {
        let rules = [
            (data_loading::RULE, IdleCause::DataLoading, Some(Nanos::new(5_000))),
            (host_work::RULE, IdleCause::HostWork, Some(Nanos::new(5_000))),
            // Compiling happens once and promises nothing.
            (compilation::RULE, IdleCause::Compiling, None),
        ];
        for (rule, cause, saves) in rules {
            let found = fired_on_device(&waiting_device(5_000, cause), rule);
            assert_eq!((found.len(), found[0].saving.saves_ns), (1, saves), "{rule}");
            assert_eq!(found[0].quantities.get("where"), Some(&Base::Run.into()));
            assert_eq!(found[0].quantities.share("idle_share"), Some(0.5));
            assert_eq!(fired_on_device(&waiting_device(5_000, IdleCause::Launching), rule), [], "{rule}");
            assert_eq!(fired_on_device(&waiting_device(100, cause), rule), [], "{rule}");
        }
    }

    #[test]
    fn what_comes_once_is_told_and_not_promised() {
        let with_once = |once: i64| {
            let mut records = waiting_device(5_000, IdleCause::HostWork);
            let run = records.stages.get_mut(&Scope::Run).unwrap();
            run.waits_once = BTreeMap::from([(IdleCause::HostWork, Nanos::new(once))]);
            fired_on_device(&records, host_work::RULE).remove(0)
        };
        let starting = with_once(4_900);
        assert_eq!((starting.severity, starting.saving.saves_ns), (Severity::Info, None));
        assert_eq!(starting.quantities.time("once"), Some(Nanos::new(4_900)));
        let steady = with_once(1_000);
        assert_eq!((steady.severity, steady.saving.saves_ns), (Severity::Warning, Some(Nanos::new(4_000))));
    }

    #[test]
    fn there_is_no_cliff_between_a_warning_and_nothing() {
        let of = |waiting| fired_on_device(&waiting_device(waiting, IdleCause::HostWork), host_work::RULE);
        assert_eq!((of(1_000)[0].severity, of(990)[0].severity), (Severity::Warning, Severity::Info));
        assert_eq!((of(990)[0].saving.saves_ns, of(190).len()), (Some(Nanos::new(990)), 0));
    }

    #[test]
    fn time_of_which_nothing_is_recorded_is_told_and_never_promised() {
        let found = fired_on_device(&waiting_device(5_000, IdleCause::HostUnknown), host_work::RULE).remove(0);
        assert_eq!((found.severity, found.saving.saves_ns), (Severity::Warning, None));
        let facts = &found.quantities;
        assert_eq!((facts.time("unrecorded"), facts.has("works")), (Some(Nanos::new(5_000)), false));
        // Beside work, only the work is promised.
        let mut both = waiting_device(3_000, IdleCause::HostUnknown);
        both.stages.get_mut(&Scope::Run).unwrap().waits.insert(IdleCause::HostWork, Nanos::new(2_000));
        let found = fired_on_device(&both, host_work::RULE).remove(0);
        assert_eq!(found.saving.saves_ns, Some(Nanos::new(2_000)));
        assert_eq!(found.quantities.time("idle"), Some(Nanos::new(5_000)));
        // A program that sleeps, and a server between its requests.
        assert_eq!(fired_on_device(&waiting_device(5_000, IdleCause::NoWork), host_work::RULE), []);
    }

    #[test]
    fn without_a_place_of_the_host_the_work_behind_it_is_evidence() {
        let [next, inside] = [
            IdlePlace::before("flash_fwd", Nanos::new(4_000)),
            IdlePlace { name: "load".to_owned(), ns: Nanos::new(1) },
        ]
        .map(|one| row(&one));
        assert_eq!(
            (next.name("next"), next.time("time"), next.has("name")),
            (Some("flash_fwd"), Some(Nanos::new(4_000)), false)
        );
        assert_eq!((inside.name("name"), inside.has("next")), (Some("load"), false));
    }

    #[test]
    fn time_outside_of_stages_is_not_called_the_run() {
        let mut records = waiting_device(5_000, IdleCause::DataLoading);
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
        let mut records = waiting_device(5_000, IdleCause::DataLoading);
        let rest = records.stages.remove(&Scope::Run).unwrap();
        let decode = StageWork { wall: Nanos::new(1_000_000), ..StageWork::default() };
        records.stages = BTreeMap::from([(Scope::Stage(types::Stage::Decode), decode), (Scope::Rest, rest)]);
        assert_eq!(fired_on_device(&records, data_loading::RULE), [], "half a percent of the run");
    }
}
