//! Data that is laid out anew, concatenated or cast, and not computed with.

use std::collections::BTreeMap;

use types::timeline::WorkKind;
use types::{EstimatedSaving, Facts, Finding, Nanos, Severity};

use super::{Found, Run, own_kernels};
use crate::device::{DeviceRecords, StageWork, WorkGroup};
use crate::kernel::Family;
use crate::loss::Cause;
use crate::replay::{Change, Chosen};
use crate::scope::Scope;
use crate::statistics::share;

/// Share of a stage that copies on the device must take.
const LEAST_SHARE: f64 = 0.05;

/// The rule's name.
pub(super) const RULE: &str = "layout-copies";

/// Copies that are no kernels have a rule of their own, and so have casts of quantised tensors.
fn is_copy(group: &WorkGroup) -> bool {
    group.family == Family::Copy && group.kind == WorkKind::Kernel && group.casts.is_none()
}

pub(super) fn check(_: &Run<'_>, device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let copies: Vec<_> = device.groups.iter().filter(|group| group.scope == stage && is_copy(group)).collect();
    let sum = |of: fn(&WorkGroup) -> Nanos| -> Nanos { copies.iter().map(|group| of(group)).sum() };
    let (run, time) = (sum(|group| group.run), sum(|group| group.time));
    let part = share(run.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let convolves = device.groups.iter().any(|group| group.scope == stage && group.family == Family::Convolution);
    let most = most(&copies);
    let all: Nanos = copies.iter().map(|group| group.time).sum();
    let facts = Facts::new()
        .with("where", stage.base())
        .with("kernels", copies.iter().map(|group| group.calls).sum::<u64>())
        .with("run", run)
        .with("time", time)
        .with_if("overlaps", run < time)
        .with_if("convolutions", convolves)
        .with_share("run_share", part, stage.base())
        .with_known("operator", most.map(|(operator, ..)| operator))
        .with_known("operator_calls", most.map(|(_, calls, _)| calls))
        .with_known("operator_run", most.map(|(.., time)| time))
        .with_if("mostly", most.is_some_and(|(.., time)| 2 * time.get() > all.get()));
    let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts).saving(EstimatedSaving::at_most(run));
    let change = Change::Share(Chosen::LayoutCopies, 0.0);
    Some(Found::new(finding, own_kernels(work, vec![Cause::Kernels(Family::Copy)])).replayed(change))
}

/// The operator whose kernels copy longest, with how many they are.
fn most<'a>(copies: &[&'a WorkGroup]) -> Option<(&'a str, u64, Nanos)> {
    let mut operators: BTreeMap<&str, (u64, Nanos)> = BTreeMap::new();
    for (operator, group) in copies.iter().filter_map(|group| Some((group.operator.as_deref()?, group))) {
        let (calls, time) = operators.entry(operator).or_default();
        *calls += group.calls;
        *time += group.time;
    }
    let (operator, (calls, time)) = operators.into_iter().max_by_key(|(_, (_, time))| *time)?;
    Some((operator, calls, time))
}

#[cfg(test)]
mod tests {
    use types::Stage;

    use super::*;
    use crate::device::sample::group;
    use crate::finding::fired_on_device;

    fn device(run: i64) -> DeviceRecords {
        let prefill = StageWork { wall: Nanos::new(10_000), least: Some([Nanos::ZERO; 2]), ..StageWork::default() };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Prefill), prefill)]),
            groups: vec![group(Stage::Sam, "CatArrayBatchedCopy", Family::Copy, run)],
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn copies_that_take_time_fire_with_all_of_it() {
        let found = fired_on_device(&device(600), RULE);
        assert_eq!(
            (found.len(), found[0].stage, found[0].saving.saves_ns),
            (1, Some(Stage::Prefill), Some(Nanos::new(600)))
        );
        let facts = &found[0].quantities;
        assert_eq!((facts.time("run"), facts.share("run_share")), (Some(Nanos::new(600)), Some(0.06)));
    }

    #[test]
    fn casts_of_quantised_tensors_are_no_layout_copies() {
        let mut device = device(600);
        device.groups[0].casts = Some(crate::device::Cast::Unknown);
        assert_eq!(fired_on_device(&device, RULE), []);
    }

    #[test]
    fn the_operator_named_is_the_one_of_most_copies_with_all_its_kernels() {
        let of = |operator: Option<&str>, run: i64| WorkGroup {
            operator: operator.map(str::to_owned),
            ..group(Stage::Prefill, "copy", Family::Copy, run)
        };
        let groups = |cat: i64| {
            vec![of(None, 10), of(Some("aten::cat"), cat), of(Some("aten::copy_"), 300), of(Some("aten::copy_"), 250)]
        };
        let told = |cat: i64| {
            let found = fired_on_device(&DeviceRecords { groups: groups(cat), ..device(0) }, RULE);
            let facts = &found[0].quantities;
            (
                facts.name("operator").map(str::to_owned),
                facts.count("operator_calls"),
                facts.time("operator_run"),
                facts.has("mostly"),
            )
        };
        let copy = |mostly| (Some("aten::copy_".to_owned()), Some(2), Some(Nanos::new(550)), mostly);
        assert_eq!(told(400), copy(true));
        assert_eq!(told(540), copy(false), "no more than half of all copies");
    }

    #[test]
    fn few_copies_do_not_fire() {
        assert_eq!(fired_on_device(&device(499), RULE), []);
    }
}
