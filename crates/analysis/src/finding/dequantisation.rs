//! Quantised tensors are widened in device memory before every GEMM, so that the GEMM reads them wide.

use std::collections::BTreeSet;

use types::{EstimatedSaving, Facts, Finding, Nanos, Severity};

use super::{Found, Run, own_kernels};
use crate::device::{Cast, DeviceRecords, Mark, StageWork, WorkGroup};
use crate::kernel::{Family, short_name};
use crate::loss::Cause;
use crate::replay::{Change, Chosen};
use crate::scope::Scope;
use crate::statistics::share;

/// Share of a stage that these kernels must take.
const LEAST_SHARE: f64 = 0.05;
/// Kernels named.
const NAMED: usize = 3;

/// The rule's name.
pub(super) const RULE: &str = "dequantisation";

pub(super) fn check(_: &Run<'_>, device: &DeviceRecords, stage: Scope, work: &StageWork) -> Option<Found> {
    // What is known to be quantised is told by itself, beside casts of which nothing is known.
    [Cast::Quantised, Cast::Unknown].into_iter().find_map(|cast| found(device, stage, work, cast))
}

fn found(device: &DeviceRecords, stage: Scope, work: &StageWork, cast: Cast) -> Option<Found> {
    let of_cast = |group: &&WorkGroup| group.scope == stage && group.casts == Some(cast);
    let groups: Vec<_> = device.groups.iter().filter(of_cast).collect();
    let run: Nanos = groups.iter().map(|group| group.run).sum();
    let part = share(run.get() as f64, work.wall.get() as f64).filter(|part| *part >= LEAST_SHARE)?;
    let longest = groups.iter().take(NAMED).map(|group| {
        let facts = Facts::new().with("kernel", short_name(&group.name)).with("calls", group.calls);
        facts.with("run", group.run).with_known("operator", group.operator.as_deref())
    });
    let facts = Facts::new()
        .with("where", stage.base())
        .with("kernels", groups.iter().map(|group| group.calls).sum::<u64>())
        .with("run", run)
        .with_share("run_share", part, stage.base())
        .with("longest", longest.collect::<Vec<_>>());
    // Casts of unknown types may be of activations, which must be made: nothing is promised for them.
    if cast == Cast::Unknown {
        let finding = Finding::new(RULE, Severity::Info, stage.stage(), facts.with_if("unknown", true));
        return Some(Found::plain(finding));
    }
    let families: BTreeSet<Family> = groups.iter().map(|group| group.family).collect();
    let causes = families.into_iter().map(Cause::Kernels).collect();
    let finding = Finding::new(RULE, Severity::Warning, stage.stage(), facts).saving(EstimatedSaving::at_most(run));
    let change = Change::Share(Chosen::Marked(Mark::Dequantisation), 0.0);
    Some(Found::new(finding, own_kernels(work, causes)).replayed(change))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::Stage;

    use super::*;
    use crate::device::sample::group;
    use crate::finding::fired_on_device;

    fn device(casts: Option<Cast>, run: i64) -> DeviceRecords {
        let decode = StageWork { wall: Nanos::new(10_000), least: Some([Nanos::ZERO; 2]), ..StageWork::default() };
        let of = |name: &str, family: Family| WorkGroup { casts, ..group(Stage::Decode, name, family, run) };
        DeviceRecords {
            stages: BTreeMap::from([(Scope::Stage(Stage::Decode), decode)]),
            groups: vec![of("cast", Family::Copy), of("multiply", Family::Elementwise)],
            ..DeviceRecords::default()
        }
    }

    #[test]
    fn the_cast_and_its_scale_are_one_claim() {
        let found = fired_on_device(&device(Some(Cast::Quantised), 3_000), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(6_000))));
        let facts = &found[0].quantities;
        assert_eq!((facts.share("run_share"), facts.count("kernels")), (Some(0.6), Some(2)));
    }

    #[test]
    fn casts_of_unknown_types_are_told_and_not_promised() {
        let found = fired_on_device(&device(Some(Cast::Unknown), 3_000), RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns, found[0].severity), (1, None, Severity::Info));
        assert!(found[0].quantities.has("unknown"));
    }

    #[test]
    fn a_cast_of_unknown_type_beside_them_takes_nothing_from_what_is_known() {
        let mut device = device(Some(Cast::Quantised), 3_000);
        let stray = WorkGroup { casts: Some(Cast::Unknown), ..group(Stage::Decode, "stray", Family::Copy, 1_000) };
        device.groups.push(stray);
        let found = fired_on_device(&device, RULE);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(6_000))));
    }

    #[test]
    fn little_of_it_and_other_casts_do_not_fire() {
        assert_eq!(fired_on_device(&device(Some(Cast::Quantised), 200), RULE), []);
        assert_eq!(fired_on_device(&device(None, 3_000), RULE), []);
    }
}
