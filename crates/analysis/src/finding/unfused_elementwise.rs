//! Elementwise kernels follow each other, each a pass over memory and a launch of its own.

use types::{EstimatedSaving, Facts, Finding, Nanos, Severity};

use super::{Found, Run, own_kernels};
use crate::device::{DeviceRecords, StageWork};
use crate::kernel::Family;
use crate::loss::Cause;
use crate::replay::Change;
use crate::scope::Scope;
use crate::statistics::share;

/// Share of a stage that fusing must be able to save.
const LEAST_SHARE: f64 = 0.02;

/// Kernels in chains below which nothing is worth fusing.
const FEWEST_KERNELS: u64 = 8;

/// The rule's name.
pub(super) const RULE: &str = "unfused-elementwise";

pub(super) fn check(_: &Run<'_>, _: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let chains = work.chains;
    if chains.kernels < FEWEST_KERNELS {
        return None;
    }
    let saves: Nanos = chains.run;
    let part = share(saves.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let facts = Facts::new()
        .with("where", stage.base())
        .with("kernels", chains.kernels)
        .with("chains", chains.chains)
        .with("per_chain", chains.kernels as f64 / chains.chains.max(1) as f64)
        .with("run", saves)
        .with_share("run_share", part, stage.base());
    let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts).saving(EstimatedSaving::at_most(saves));
    let claim = own_kernels(work, vec![Cause::Kernels(Family::Elementwise)]);
    Some(Found::new(finding, claim).replayed(Change::FusedElementwise))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{IdleCause, Stage};

    use super::*;
    use crate::device::Chains;
    use crate::finding::fired_on_device;

    fn device(run: i64, wait: i64) -> DeviceRecords {
        let decode = StageWork {
            wall: Nanos::new(10_000),
            waits: BTreeMap::from([(IdleCause::Launching, Nanos::new(2_000))]),
            chains: Chains { chains: 10, kernels: 35, run: Nanos::new(run), wait: Nanos::new(wait) },
            ..StageWork::default()
        };
        DeviceRecords { stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]), ..DeviceRecords::default() }
    }

    #[test]
    fn chains_fire_and_save_what_is_lost_on_them() {
        let found = fired_on_device(&device(600, 0), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(600))));
        let facts = &found[0].quantities;
        assert_eq!((facts.count("kernels"), facts.count("chains")), (Some(35), Some(10)));
        assert_eq!((facts.number("per_chain"), facts.share("run_share")), (Some(3.5), Some(0.06)));
    }

    #[test]
    fn chains_that_run_for_little_do_not_fire_however_long_the_device_waits() {
        assert_eq!(fired_on_device(&device(199, 600), RULE), []);
    }
}
