//! The device waits for the host to launch work: the launches decide the time, not the work.

use types::{EstimatedSaving, Finding, IdleCause, RunKindName, Severity};

use super::launches::{facts, is_in_graphs, without_launches};
use super::{Claim, Found, Run};
use crate::device::StageWork;
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;
use crate::statistics::share;

/// Share of a stage that the device waits for launches above which they decide its time.
pub(super) const LEAST_SHARE: f64 = 0.3;

/// The rule's name.
pub(super) const RULE: &str = "launch-bound";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    // What is launched into a capture is on its way into a graph.
    let Some(device) = run.device.filter(|_| run.kind() != Some(RunKindName::GraphCapture)) else { return Vec::new() };
    device.stages.iter().filter_map(|(stage, work)| of_stage(run, *stage, work)).collect()
}

fn of_stage(run: &Run<'_>, stage: Scope, work: &StageWork) -> Option<Found> {
    let waiting = work.waits.get(&IdleCause::Launching).copied()?;
    let part = share(waiting.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    if is_in_graphs(work) || run.is_little(waiting) {
        return None;
    }
    let saves = without_launches(work, waiting);
    let facts = facts(run, stage, work, waiting, part)?;
    let finding = Finding::new(RULE, Severity::Warning, stage.stage(), facts).saving(EstimatedSaving::at_most(saves));
    let claim = Claim::Lost(vec![Cause::Waiting(IdleCause::Launching)]);
    Some(Found::new(finding, claim).replayed(Change::CudaGraphs))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{Nanos, Stage};

    use super::*;
    use crate::device::DeviceRecords;
    use crate::finding::fired_on_device;

    /// Ten steps of ten launches in 10,000 ns.
    fn device(waiting: i64) -> DeviceRecords {
        let decode = StageWork {
            wall: Nanos::new(10_000),
            instances: 1,
            steps: Some(10),
            launches: 100,
            waits: BTreeMap::from([(IdleCause::Launching, Nanos::new(waiting))]),
            shortest_wait: Some(Nanos::new(2)),
            ..StageWork::default()
        };
        DeviceRecords { stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]), ..DeviceRecords::default() }
    }

    #[test]
    fn a_device_that_waits_for_launches_fires_with_what_graphs_would_save() {
        let found = fired_on_device(&device(8_000), RULE);
        assert_eq!((found.len(), found[0].stage), (1, Some(Stage::Decode)));
        // 8,000 ns of waiting, less 100 launches that still need 2 ns each.
        assert_eq!(found[0].saving.saves_ns, Some(Nanos::new(7_800)));
        let facts = &found[0].quantities;
        let times = ["idle", "wall", "interval"].map(|name| facts.time(name).unwrap().get());
        assert_eq!(times, [8_000, 10_000, 100]);
        assert_eq!((facts.share("idle_share"), facts.share("busy_share")), (Some(0.8), Some(0.2)));
        assert_eq!((facts.number("launches"), facts.name("unit")), (Some(10.0), Some("step")));
        assert!(facts.has("repeats") && !facts.has("token_roofline"));
    }

    #[test]
    fn idle_time_of_a_recording_that_lacks_most_kernels_is_no_finding() {
        assert_eq!(fired_on_device(&DeviceRecords { misses_kernels: true, ..device(8_000) }, RULE), []);
    }

    #[test]
    fn graphs_are_those_of_the_interface_and_engines_that_launch_some_need_no_option() {
        let facts = |is_hip| fired_on_device(&DeviceRecords { is_hip, ..device(8_000) }, RULE).remove(0).quantities;
        assert!(facts(true).has("hip") && !facts(false).has("hip") && !facts(false).has("run_graphs"));
        let mut elsewhere = device(8_000);
        elsewhere.stages.entry(Scope::Stage(Stage::Prefill)).or_default().graphs.launches = 5;
        assert!(fired_on_device(&elsewhere, RULE)[0].quantities.has("run_graphs"));
    }

    #[test]
    fn a_device_that_is_mostly_busy_does_not_fire() {
        assert_eq!(fired_on_device(&device(2_900), RULE), []);
    }
}
