//! What takes the most time, by the finest division that the run has and that does not overlap.

use std::collections::BTreeMap;

use types::view::{CostCentreView, CostCentresView};
use types::{Metrics, Nanos, Stage};

use super::{share, time_share};

/// Cost centres named.
const NAMED: usize = 3;
/// Share of the device work that operators must have launched to be ranked: what CUDA graphs replay and what is launched outside of
/// the framework has no operator, and operators ranked without it would be the largest of little.
const COVERED: f64 = 0.9;
/// What the shares of a run with device work are of.
const DEVICE_WORK: &str = "the time of all kernels, copies and memsets";

/// The largest cost centres.
pub(super) fn cost_centres(metrics: &Metrics) -> CostCentresView<'_> {
    let breakdown = &metrics.breakdown;
    if !breakdown.cost_centres.is_empty() {
        let rows = breakdown.cost_centres.iter().map(|centre| CostCentreView {
            name: &centre.module,
            stage: Some(centre.stage),
            time_ns: centre.total_ns,
            share: Some(centre.share),
            roofline_ns: centre.speed_of_light_ns,
        });
        return view("part of the network", "the operators' time in one profiled pass", rows.collect());
    }
    let host = breakdown.operators.iter().map(|operator| operator.self_ns).sum();
    let Some(whole) = device_work(metrics) else {
        let rows =
            breakdown.operators.iter().map(|operator| row(&operator.name, operator.stage, operator.self_ns, host));
        return view("operator", "the host time of all operators", rows.collect());
    };
    let launched: Nanos = breakdown.operators.iter().filter_map(|operator| operator.device_ns).sum();
    let covered = time_share(launched, whole).filter(|_| !breakdown.operators.is_empty());
    let rows = if covered.is_some_and(|covered| covered >= COVERED) {
        let on_device = breakdown.operators.iter().filter_map(|operator| Some((operator, operator.device_ns?)));
        let rows = on_device.map(|(operator, time)| row(&operator.name, operator.stage, time, whole));
        view("operator", DEVICE_WORK, rows.collect())
    } else {
        // A kernel that runs on several devices is one.
        let mut kernels: BTreeMap<(&str, Option<Stage>), (&str, Nanos)> = BTreeMap::new();
        for kernel in &breakdown.kernels {
            kernels.entry((&kernel.name, kernel.stage)).or_insert((&kernel.short_name, Nanos::ZERO)).1 +=
                kernel.total_ns;
        }
        for copy in breakdown.device_time.iter().flat_map(|device| &device.copies) {
            kernels.entry((&copy.kind, None)).or_insert((&copy.kind, Nanos::ZERO)).1 += copy.ns;
        }
        let rows = kernels.into_iter().map(|((_, stage), (name, time))| row(name, stage, time, whole));
        view("kernel or copy", DEVICE_WORK, rows.collect())
    };
    CostCentresView { operator_share: covered, ..rows }
}

/// Time of all kernels, copies and memsets; absent where none ran.
fn device_work(metrics: &Metrics) -> Option<Nanos> {
    let kernels: Nanos = metrics.breakdown.kernels.iter().map(|kernel| kernel.total_ns).sum();
    let copies: Nanos =
        metrics.breakdown.device_time.iter().flat_map(|device| &device.copies).map(|copy| copy.ns).sum();
    let coverage = metrics.conditions.trace.as_ref().and_then(|facts| facts.coverage.as_ref());
    Some(coverage.map_or(kernels + copies, |coverage| coverage.device_ns)).filter(|whole| *whole > Nanos::ZERO)
}

fn row(name: &str, stage: Option<Stage>, time_ns: Nanos, whole: Nanos) -> CostCentreView<'_> {
    CostCentreView { name, stage, time_ns, share: time_share(time_ns, whole), roofline_ns: None }
}

fn view<'a>(kind: &'static str, whole: &'static str, mut rows: Vec<CostCentreView<'a>>) -> CostCentresView<'a> {
    rows.retain(|row| row.time_ns > Nanos::ZERO);
    rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
    rows.truncate(NAMED);
    let shares = rows.iter().map(|row| row.share).sum::<Option<f64>>();
    let share = shares.and_then(|sum| share(sum, 1.0)).filter(|_| !rows.is_empty());
    CostCentresView { kind, whole, share, rows, operator_share: None }
}
