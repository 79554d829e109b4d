//! Data that is laid out anew, concatenated or cast, and not computed with.

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

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let Some(device) = run.device else { return Vec::new() };
    device.stages.iter().filter_map(|(stage, work)| found(device, *stage, work)).collect()
}

/// Copies that are no kernels have a rule of their own, and so have casts of quantised tensors.
fn is_copy(group: &WorkGroup) -> bool {
    group.family == Family::Copy && group.kind == WorkKind::Kernel && group.casts.is_none()
}

fn found(device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let copies: Vec<_> = device.groups.iter().filter(|group| group.scope == stage && is_copy(group)).collect();
    let sum = |of: fn(&WorkGroup) -> Nanos| -> Nanos { copies.iter().map(|group| of(group)).sum() };
    let (run, time) = (sum(|group| group.run), sum(|group| group.time));
    let part = share(run.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let convolves = device.groups.iter().any(|group| group.scope == stage && group.family == Family::Convolution);
    let most = copies.iter().find(|group| group.operator.is_some());
    let facts = Facts::new()
        .with("where", stage.base())
        .with("kernels", copies.iter().map(|group| group.calls).sum::<u64>())
        .with("run", run)
        .with("time", time)
        .with_if("overlaps", run < time)
        .with_if("convolutions", convolves)
        .with_share("run_share", part, stage.base())
        .with_known("operator", most.and_then(|group| group.operator.as_deref()))
        .with_known("operator_calls", most.map(|group| group.calls))
        .with_known("operator_run", most.map(|group| group.time));
    let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts).saving(EstimatedSaving::at_most(run));
    let change = Change::Share(Chosen::LayoutCopies, 0.0);
    Some(Found::new(finding, own_kernels(work, vec![Cause::Kernels(Family::Copy)])).replayed(change))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn few_copies_do_not_fire() {
        assert_eq!(fired_on_device(&device(499), RULE), []);
    }
}
