//! Data that is laid out anew, concatenated or cast, and not computed with.

use types::timeline::WorkKind;
use types::{EstimatedSaving, Finding, Nanos, Severity};

use super::{Found, Run, own_kernels, percent};
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

/// Copies that are no kernels have a rule of their own.
fn is_copy(group: &WorkGroup) -> bool {
    group.family == Family::Copy && group.kind == WorkKind::Kernel
}

fn found(device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let copies: Vec<_> = device.groups.iter().filter(|group| group.scope == stage && is_copy(group)).collect();
    let sum = |of: fn(&WorkGroup) -> Nanos| -> Nanos { copies.iter().map(|group| of(group)).sum() };
    let run = sum(|group| group.run);
    let part = share(run.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let calls: u64 = copies.iter().map(|group| group.calls).sum();
    let mut evidence = vec![
        format!("{calls} kernels of {stage} only copy: they run {run}"),
        format!("that is {} of {stage}", percent(part)),
    ];
    let first = copies.iter().find_map(|group| Some((group.operator.as_deref()?, group.calls, group.run)));
    evidence.extend(first.map(|(name, calls, run)| format!("most are of `{name}`: {calls} calls, {run}")));
    let finding = Finding {
        quantities: Default::default(),
        rule: RULE.to_owned(),
        severity: Severity::Info,
        stage: stage.stage(),
        evidence,
        saving: EstimatedSaving::at_most(run),
        advice: "Keep one layout and one element type from producer to consumer: preallocate the cache instead of concatenating, \
                 cast weights once, avoid `contiguous` between operators that accept strides. The figure is all of them; some \
                 may be needed."
            .to_owned(),
    };
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
    }

    #[test]
    fn few_copies_do_not_fire() {
        assert_eq!(fired_on_device(&device(499), RULE), []);
    }
}
