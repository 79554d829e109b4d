//! Kernels of a run: sums, shares, means and families.

use std::collections::BTreeMap;

use types::view::{FamilyView, KernelView, KernelsView};
use types::{Count, KernelSummary, Metrics, Nanos, Stage};

use super::{mean, time_share};

/// Kernels of a run.
pub(super) fn kernels(metrics: &Metrics) -> KernelsView<'_> {
    let total_ns: Nanos = metrics.breakdown.kernels.iter().map(|kernel| kernel.total_ns).sum();
    let rows: Vec<_> = metrics.breakdown.kernels.iter().map(|kernel| view(kernel, total_ns)).collect();
    let staged: Vec<_> = rows.iter().filter(|row| row.kernel.stage.is_some()).copied().collect();
    KernelsView {
        calls: metrics.breakdown.kernels.iter().map(|kernel| kernel.calls).sum::<Count>().get(),
        total_ns,
        of_stages: if staged.is_empty() { rows.clone() } else { staged },
        rows,
        families: families(metrics, total_ns, |_| None),
        families_per_stage: families(metrics, total_ns, |kernel| kernel.stage),
    }
}

fn view(kernel: &KernelSummary, all: Nanos) -> KernelView<'_> {
    KernelView { kernel, share: time_share(kernel.total_ns, all), mean_ns: mean(kernel.total_ns, kernel.calls) }
}

fn families(metrics: &Metrics, all: Nanos, stage: impl Fn(&KernelSummary) -> Option<Stage>) -> Vec<FamilyView<'_>> {
    let mut sums: BTreeMap<(&str, Option<Stage>), FamilyView<'_>> = BTreeMap::new();
    for kernel in &metrics.breakdown.kernels {
        let (family, stage) = (kernel.family.as_str(), stage(kernel));
        let empty = FamilyView { family, stage, total_ns: Nanos::ZERO, share: None, calls: 0, rows: 0 };
        let sum = sums.entry((family, stage)).or_insert(empty);
        sum.total_ns += kernel.total_ns;
        sum.calls = sum.calls.saturating_add(kernel.calls);
        sum.rows += 1;
    }
    let mut sums: Vec<_> = sums.into_values().collect();
    sums.iter_mut().for_each(|sum| sum.share = time_share(sum.total_ns, all));
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.total_ns));
    sums
}
