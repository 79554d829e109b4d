//! The device waits for the host to launch work: the launches decide the time, not the work.

use types::{Finding, Severity};

use super::launches::{facts, is_in_graphs, launching, lost_to_launches, without_launches};
use super::{Found, Run};
use crate::replay::Change;

/// Share of a stage that the device waits for launches above which they decide its time.
pub(super) const LEAST_SHARE: f64 = 0.3;

/// The rule's name.
pub(super) const RULE: &str = "launch-bound";

pub(super) fn check(run: &Run<'_>) -> Vec<Found> {
    let parts = launching(run, LEAST_SHARE).filter(|(_, work, ..)| !is_in_graphs(work));
    let found = parts.filter_map(|(scope, work, waiting, part)| {
        let facts = facts(run, scope, work, waiting, part)?;
        let finding = Finding::new(RULE, Severity::Warning, scope.stage(), facts);
        Some(lost_to_launches(finding, without_launches(work, waiting), Change::CudaGraphs))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{IdleCause, Nanos, Stage};

    use super::*;
    use crate::device::sample::group;
    use crate::device::{DeviceRecords, StageWork, WorkGroup};
    use crate::finding::fired_on_device;
    use crate::kernel::Family;
    use crate::scope::Scope;

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
    fn what_is_launched_once_promises_nothing_of_a_graph() {
        let of = |calls: u64| {
            let kernel = WorkGroup { calls, ..group(Stage::Decode, "kernel", Family::Other, 10) };
            let mut device = DeviceRecords { groups: vec![kernel], ..device(8_000) };
            // One pass, of which no step is known to repeat.
            device.stages.values_mut().for_each(|work| work.steps = None);
            let found = fired_on_device(&device, RULE).remove(0);
            (found.saving.saves_ns.is_some(), found.quantities.has("single"))
        };
        assert_eq!([of(2), of(3)], [(false, true), (true, false)]);
    }

    #[test]
    fn a_device_that_is_mostly_busy_does_not_fire() {
        assert_eq!(fired_on_device(&device(2_900), RULE), []);
    }
}
