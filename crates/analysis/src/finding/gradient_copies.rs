//! Gradients are copied out of the buckets in which they were reduced, one by one.

use types::{Base, Facts, Finding, Nanos, Severity};

use super::{Found, Run};
use crate::statistics::share;

/// Share of all kernels, copies and memsets from which the copies are told, ...
const LEAST_LAUNCHES: f64 = 0.05;
/// ... or share of the run that they take.
const LEAST_TIME: f64 = 0.01;

/// The rule's name.
pub(super) const RULE: &str = "gradient-copies";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let device = run.device?;
    let copies = device.data_parallel.copies_back;
    let pieces: u64 = device.stages.values().map(|work| work.pieces).sum();
    let wall: Nanos = device.stages.values().map(|work| work.wall).sum();
    let part = share(copies as f64, pieces as f64)?;
    let time = share(device.data_parallel.copy_time.get() as f64, wall.get() as f64)?;
    if copies == 0 || (part < LEAST_LAUNCHES && time < LEAST_TIME) {
        return None;
    }
    let facts = Facts::new()
        .with("copies", copies)
        .with_share("part", part, Base::Itself)
        .with("time", device.data_parallel.copy_time);
    Some(Found::plain(Finding::new(RULE, Severity::Info, None, facts)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::device::{DataParallel, DeviceRecords, StageWork};
    use crate::finding::fired_on_device;
    use crate::scope::Scope;

    fn device(copies_back: u64, time: i64) -> DeviceRecords {
        let run = StageWork { wall: Nanos::new(10_000), pieces: 1_000, ..StageWork::default() };
        let data_parallel =
            DataParallel { buckets: true, copies_back, copy_time: Nanos::new(time), ..DataParallel::default() };
        DeviceRecords { stages: BTreeMap::from([(Scope::Run, run)]), data_parallel, ..DeviceRecords::default() }
    }

    #[test]
    fn many_copies_are_told_and_promise_nothing() {
        let found = fired_on_device(&device(130, 20), RULE).remove(0);
        assert_eq!((found.severity, found.saving.saves_ns), (Severity::Info, None));
        assert_eq!((found.quantities.count("copies"), found.quantities.share("part")), (Some(130), Some(0.13)));
        assert_eq!(fired_on_device(&device(10, 100), RULE).len(), 1, "few, and long");
    }

    #[test]
    fn few_short_copies_and_gradients_that_are_views_are_no_finding() {
        assert_eq!(fired_on_device(&device(49, 99), RULE), []);
        assert_eq!(fired_on_device(&device(0, 0), RULE), []);
    }
}
