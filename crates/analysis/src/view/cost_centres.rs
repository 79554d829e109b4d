//! What takes the most time, by the finest division that the run has and that does not overlap.

use types::view::{CostCentreView, CostCentresView};
use types::{Metrics, Nanos};

use super::{share, time_share};

/// Cost centres named.
const NAMED: usize = 3;

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
    let on_device: Option<Nanos> = breakdown.operators.iter().map(|operator| operator.device_ns).sum();
    if let Some(whole) = on_device.filter(|whole| *whole > Nanos::ZERO) {
        let rows = breakdown.operators.iter().map(|operator| {
            let time = operator.device_ns.unwrap_or_default();
            row(&operator.name, operator.stage, time, whole)
        });
        return view("operator", "the device time of all operators", rows.collect());
    }
    if !breakdown.kernels.is_empty() {
        let whole = breakdown.kernels.iter().map(|kernel| kernel.total_ns).sum();
        let rows = breakdown.kernels.iter().map(|kernel| row(&kernel.short_name, kernel.stage, kernel.total_ns, whole));
        return view("kernel", "the time of all kernels", rows.collect());
    }
    let whole = breakdown.operators.iter().map(|operator| operator.self_ns).sum();
    let rows = breakdown.operators.iter().map(|operator| row(&operator.name, operator.stage, operator.self_ns, whole));
    view("operator", "the host time of all operators", rows.collect())
}

fn row(name: &str, stage: Option<types::Stage>, time_ns: Nanos, whole: Nanos) -> CostCentreView<'_> {
    CostCentreView { name, stage, time_ns, share: time_share(time_ns, whole), roofline_ns: None }
}

fn view<'a>(kind: &'static str, whole: &'static str, mut rows: Vec<CostCentreView<'a>>) -> CostCentresView<'a> {
    rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
    rows.truncate(NAMED);
    let shares = rows.iter().map(|row| row.share).sum::<Option<f64>>();
    CostCentresView { kind, whole, share: shares.and_then(|sum| share(sum, 1.0)).filter(|_| !rows.is_empty()), rows }
}
