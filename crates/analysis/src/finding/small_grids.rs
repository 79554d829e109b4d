//! Kernels other than GEMMs with fewer blocks than the device has multiprocessors.

use types::{Base, Facts, Finding, Nanos, RunKindName, Severity};

use super::{Found, Run};
use crate::device::{DeviceRecords, StageWork, WorkGroup};
use crate::kernel::{Family, reads_nothing, short_name};
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::rounded;

/// Share of the time a device is busy that such kernels must take.
const LEAST_SHARE: f64 = 0.1;
/// Share of a scope's wall time that more blocks could save at most: below it, the device mostly waits for something else.
const WORTH_SAYING: f64 = 0.05;
/// Kernels named.
const NAMED: usize = 3;

/// The rule's name.
pub(super) const RULE: &str = "small-grids";

pub(super) fn check(whole: &Run<'_>, device: &DeviceRecords, scope: Scope, work: &StageWork) -> Option<Found> {
    // Where an optimizer or the like runs many tensors in one kernel, that is no advice.
    let many_tensors = device.groups.iter().any(|group| group.name.contains("multi_tensor_apply"));
    let training = whole.kind() == Some(RunKindName::Training) && !many_tensors;
    let multiprocessors = device.multiprocessors?;
    let is_small = |group: &&WorkGroup| {
        // GEMMs have a rule of their own; communication takes few multiprocessors on purpose.
        let other = !matches!(group.family, Family::Gemm | Family::Gemv | Family::Experts | Family::Communication);
        // What fills or counts up has as many blocks as the tensor is long, and is over in the time of a launch.
        group.scope == scope && other && group.is_small_on(multiprocessors) && !reads_nothing(&group.name)
    };
    let groups: Vec<_> = device.groups.iter().filter(is_small).collect();
    let run: Nanos = groups.iter().map(|group| group.run).sum();
    let part = share(run.get() as f64, work.busy().get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let most = |group: &WorkGroup| group.blocks.map_or(0, |[_, most]| most);
    let idle = |group: &&WorkGroup| group.run.get() as f64 * (1.0 - most(group) as f64 / multiprocessors as f64);
    let idle = rounded(groups.iter().map(idle).sum());
    share(idle.get() as f64, work.wall.get() as f64).filter(|part| *part >= WORTH_SAYING)?;
    let row = |group: &&WorkGroup| {
        let facts = Facts::new().with("kernel", short_name(&group.name)).with("calls", group.calls);
        facts.with("run", group.run).with("blocks", most(group))
    };
    let first = groups.first()?;
    let facts = Facts::new()
        .with("where", scope.base())
        .with("kernel", short_name(&first.name))
        .with("blocks", most(first))
        .with("kernels", groups.iter().map(|group| group.calls).sum::<u64>())
        .with("multiprocessors", multiprocessors)
        .with("run", run)
        .with_share("run_share", part, Base::BusyTime)
        .with("idle", idle)
        .with_if("training", training)
        .with("longest", groups.iter().take(NAMED).map(row).collect::<Vec<_>>());
    // What small tensors would gain from more blocks nobody knows, so that nothing is promised.
    Some(Found::plain(Finding::new(RULE, Severity::Info, scope.stage(), facts)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Stage;

    use super::*;
    use crate::device::sample::group;
    use crate::finding::fired_on_device;

    fn device(family: Family, blocks: u64) -> DeviceRecords {
        let decode = StageWork { wall: Nanos::new(1_000), ..StageWork::default() };
        let kernel =
            WorkGroup { blocks: Some([1, blocks]), ..group(Stage::Decode, "vectorized_elementwise", family, 900) };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]),
            groups: vec![kernel],
            multiprocessors: Some(100),
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn small_kernels_fire_with_a_bound_and_promise_nothing() {
        let found = fired_on_device(&device(Family::Elementwise, 4), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, None));
        let facts = &found[0].quantities;
        // 96 of 100 multiprocessors have nothing to do.
        assert_eq!(facts.time("idle"), Some(Nanos::new(864)));
        assert_eq!((facts.share("run_share"), facts.count("multiprocessors")), (Some(0.9), Some(100)));
        assert_eq!(facts.rows("longest")[0].count("blocks"), Some(4));
    }

    #[test]
    fn fills_and_what_is_little_of_the_wall_time_are_not_listed() {
        let mut fill = device(Family::Elementwise, 4);
        fill.groups[0].name = "vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>".to_owned();
        assert_eq!(fired_on_device(&fill, RULE), []);
        let mut waiting = device(Family::Elementwise, 4);
        let work = waiting.stages.get_mut(&Scope::Stage(Stage::Decode)).unwrap();
        work.wall = Nanos::new(100_000);
        work.waits = BTreeMap::from([(types::IdleCause::Launching, Nanos::new(99_000))]);
        assert_eq!(fired_on_device(&waiting, RULE), []);
    }

    #[test]
    fn kernels_that_fill_the_device_gemms_and_communication_do_not_fire() {
        assert_eq!(fired_on_device(&device(Family::Elementwise, 100), RULE), []);
        assert_eq!(fired_on_device(&device(Family::Elementwise, 95), RULE), [], "few have nothing to do");
        assert_eq!(fired_on_device(&device(Family::Gemm, 4), RULE), []);
        assert_eq!(fired_on_device(&device(Family::Communication, 4), RULE), []);
    }
}
