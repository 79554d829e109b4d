//! Experts run one after the other, each a few small products that cannot fill the device.

use types::{EstimatedSaving, Facts, Finding, IdleCause, Severity};

use super::{Claim, Found, Run};
use crate::device::{DeviceRecords, Mark, StageWork};
use crate::kernel::Family;
use crate::loss::Cause;
use crate::replay::{Change, Chosen};
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::rounded;

/// Share of a stage that the products of experts must take.
const LEAST_SHARE: f64 = 0.05;
/// Launches per pass from which experts are worth grouping.
const FEWEST_LAUNCHES: f64 = 32.0;
/// Products of one expert: gate, up, down. Grouped, a layer needs as many launches in all.
const PRODUCTS: f64 = 3.0;

/// The rule's name.
pub(super) const RULE: &str = "small-expert-gemms";

pub(super) fn check(_: &Run<'_>, device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let (experts, layers) = (device.special.experts.get(&stage)?, device.special.expert_layers);
    let passes = work.steps.unwrap_or(work.instances).max(1) as f64;
    let launches = experts.calls as f64 / passes;
    let part = share(experts.part.total().get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let grouped = share(PRODUCTS * layers as f64, launches).filter(|grouped| *grouped < 1.0)?;
    if launches < FEWEST_LAUNCHES {
        return None;
    }
    let each = rounded(experts.part.run.get() as f64 / experts.calls.max(1) as f64);
    let saves = rounded(experts.part.wait.get() as f64 * (1.0 - grouped));
    let facts = Facts::new()
        .with("where", stage.base())
        .with("launches", launches)
        .with("layers", layers)
        .with("each", each)
        .with_share("experts_share", part, stage.base())
        .with("wait", experts.part.wait)
        .with("grouped", PRODUCTS * layers as f64);
    let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts).saving(EstimatedSaving::at_most(saves));
    let causes = vec![
        Cause::Waiting(IdleCause::Launching),
        Cause::Kernels(Family::Gemm),
        Cause::Kernels(Family::Gemv),
        Cause::Kernels(Family::Experts),
    ];
    let change = Change::Grouped(Chosen::Marked(Mark::Expert), grouped);
    Some(Found::new(finding, Claim::Lost(causes)).replayed(change))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{Nanos, Stage};

    use super::*;
    use crate::device::{Part, Portion, Special};
    use crate::finding::fired_on_device;

    fn device(calls: u64) -> DeviceRecords {
        let waits = BTreeMap::from([(IdleCause::Launching, Nanos::new(2_000))]);
        let decode =
            StageWork { wall: Nanos::new(10_000), waits, steps: Some(10), instances: 1, ..StageWork::default() };
        let portion = Portion { calls, part: Part { wait: Nanos::new(1_000), run: Nanos::new(500) } };
        let experts = BTreeMap::from([(Scope::Stage(Stage::Decode), portion)]);
        let special = Special { experts, expert_layers: 5, ..Special::default() };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]),
            special,
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn many_small_products_fire_with_the_waits_that_grouping_removes() {
        // 60 launches a step in 5 layers; 15 would do, so three quarters of 1,000 ns go.
        let found = fired_on_device(&device(600), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(750))));
        let facts = &found[0].quantities;
        assert_eq!((facts.number("launches"), facts.number("grouped")), (Some(60.0), Some(15.0)));
        assert_eq!((facts.time("wait"), facts.share("experts_share")), (Some(Nanos::new(1_000)), Some(0.15)));
    }

    #[test]
    fn few_products_do_not_fire() {
        assert_eq!(fired_on_device(&device(310), RULE), []);
    }
}
