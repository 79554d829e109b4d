//! Matrix products too small to give every multiprocessor a block.

use types::{Base, EstimatedSaving, Facts, Finding, Severity};

use super::{Claim, Found, Run};
use crate::device::{DeviceRecords, StageWork};
use crate::kernel::{Family, is_split_k, short_name, sums_up_products};
use crate::loss::Cause;
use crate::replay::{Change, Chosen};
use crate::scope::Scope;
use crate::statistics::share;
use crate::timings::rounded;

/// Share of a stage's busy time that such products must take.
const LEAST_SHARE: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "low-occupancy-gemms";

pub(super) fn check(_: &Run<'_>, device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    let multiprocessors = device.multiprocessors?;
    let few = |group: &&crate::device::WorkGroup| {
        let is_product = matches!(group.family, Family::Gemm | Family::Gemv) && !sums_up_products(&group.name);
        group.scope == stage && is_product && group.is_small_on(multiprocessors)
    };
    let groups: Vec<_> = device.groups.iter().filter(few).collect();
    let longest = groups.first()?;
    let run: types::Nanos = groups.iter().map(|group| group.run).sum();
    let part = share(run.get() as f64, work.busy().get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let idle = |group: &crate::device::WorkGroup| {
        let most = group.blocks.map_or(multiprocessors, |[_, most]| most);
        group.run.get() as f64 * (1.0 - most as f64 / multiprocessors as f64)
    };
    let saves = rounded(groups.iter().map(|group| idle(group)).sum());
    let calls: u64 = groups.iter().map(|group| group.calls).sum();
    let facts = Facts::new()
        .with("where", stage.base())
        .with("kernels", calls)
        .with("multiprocessors", multiprocessors)
        .with("run", run)
        .with_share("run_share", part, Base::BusyTime)
        .with("kernel", short_name(&longest.name))
        .with("calls", longest.calls)
        .with_if("split_k", is_split_k(&longest.name))
        .with("blocks", longest.blocks.map_or(0, |[_, most]| most));
    let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts).saving(EstimatedSaving::at_most(saves));
    let causes = vec![Cause::Kernels(Family::Gemm), Cause::Kernels(Family::Gemv)];
    let change = Change::Share(Chosen::FewBlocks(multiprocessors), 0.5);
    Some(Found::new(finding, Claim::Lost(causes)).replayed(change))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{Nanos, Stage};

    use super::*;
    use crate::device::sample::group;
    use crate::finding::fired_on_device;

    fn device(blocks: u64) -> DeviceRecords {
        let decode =
            StageWork { wall: Nanos::new(1_000), least: Some([Nanos::new(100), Nanos::ZERO]), ..StageWork::default() };
        let product = crate::device::WorkGroup {
            blocks: Some([1, blocks]),
            ..group(Stage::Decode, "gemv2T_kernel_val<int, int, __nv_bfloat16>", Family::Gemv, 1_000)
        };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]),
            groups: vec![product],
            multiprocessors: Some(100),
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn products_with_few_blocks_fire_with_the_idle_part() {
        let found = fired_on_device(&device(40), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(600))));
        let facts = &found[0].quantities;
        assert_eq!((facts.count("multiprocessors"), facts.count("blocks")), (Some(100), Some(40)));
        assert_eq!((facts.time("run"), facts.share("run_share")), (Some(Nanos::new(1_000)), Some(1.0)));
    }

    #[test]
    fn what_is_split_already_is_not_told_to_split_and_its_sum_is_no_product() {
        let named = |name: &str| {
            let mut device = device(40);
            device.groups[0].name = name.to_owned();
            fired_on_device(&device, RULE)
        };
        assert!(named("nvjet_tst_64x16_64x16_2x4_v_bz_splitK_TNT")[0].quantities.has("split_k"));
        assert!(!named("nvjet_tst_64x16_64x16_2x4_v_bz_TNT")[0].quantities.has("split_k"));
        assert_eq!(named("void cublasLt::splitKreduce_kernel<32, 16, int, float>(float const*)"), []);
    }

    #[test]
    fn products_that_fill_the_device_do_not_fire() {
        assert_eq!(fired_on_device(&device(100), RULE), []);
        // Of 100 multiprocessors, five without a block are few.
        assert_eq!(fired_on_device(&device(95), RULE), []);
    }
}
