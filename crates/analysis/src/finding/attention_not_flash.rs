//! Attention computed step by step: scores, softmax and weighted sum as kernels of their own.

use types::{Base, EstimatedSaving, Facts, Finding, Severity};

use super::{Found, Run, own_kernels};
use crate::device::{DeviceRecords, Mark, StageWork};
use crate::kernel::Family;
use crate::loss::Cause;
use crate::replay::{Change, Chosen};
use crate::scope::Scope;
use crate::statistics::share;

/// Share of a stage that the softmax must take.
const LEAST_SHARE: f64 = 0.005;
/// Share of it from which it is among the first things to change.
const MUCH: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "attention-not-flash";

pub(super) fn check(_: &Run<'_>, device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let softmax = device.special.score_softmax.get(&stage)?;
    let time = softmax.part.run;
    let part = share(time.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let busy = share(time.get() as f64, work.busy().get() as f64)?;
    let severity = if part >= MUCH { Severity::Warning } else { Severity::Info };
    let facts = Facts::new()
        .with("where", stage.base())
        .with("kernels", softmax.calls)
        .with("run", time)
        .with_share("run_share", part, stage.base())
        .with_share("busy_share", busy, Base::BusyTime);
    let finding = Finding::new(RULE, severity, stage.stage(), facts).saving(EstimatedSaving::at_most(time));
    let claim = own_kernels(work, vec![Cause::Kernels(Family::Softmax)]);
    Some(Found::new(finding, claim).replayed(Change::Share(Chosen::Marked(Mark::ScoreSoftmax), 0.0)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{IdleCause, Nanos, Stage};

    use super::*;
    use crate::device::{Part, Portion, Special};
    use crate::finding::fired_on_device;

    fn device(wait: i64) -> DeviceRecords {
        let waits = BTreeMap::from([(IdleCause::Launching, Nanos::new(2_000))]);
        let decode = StageWork { wall: Nanos::new(10_000), waits, ..StageWork::default() };
        let portion = Portion { calls: 12, part: Part { wait: Nanos::ZERO, run: Nanos::new(wait) } };
        let special =
            Special { score_softmax: BTreeMap::from([(Scope::Stage(Stage::Decode), portion)]), ..Special::default() };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]),
            special,
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn a_softmax_over_scores_fires_with_its_time() {
        let found = fired_on_device(&device(200), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(200))));
        let facts = &found[0].quantities;
        assert_eq!((facts.count("kernels"), facts.time("run")), (Some(12), Some(Nanos::new(200))));
        // Of 10,000 ns, in 8,000 of which the device is busy.
        assert_eq!((facts.share("run_share"), facts.share("busy_share")), (Some(0.02), Some(0.025)));
    }

    #[test]
    fn one_that_takes_no_time_does_not() {
        assert_eq!(fired_on_device(&device(49), RULE), []);
    }
}
