//! Operators of a run: sums, shares and means.

use types::view::{ClassView, MemoryView, OperatorView, OperatorsView, ShapeView};
use types::{Bytes, FlopsPerSecond, Metrics, Nanos, OperatorSummary, ShapeGroup};

use super::{mean, share, time_share};

/// Operators of a run.
pub(super) fn operators<'a>(metrics: &'a Metrics) -> OperatorsView<'a> {
    let operators = &metrics.breakdown.operators;
    let total_ns: Nanos = operators.iter().map(|operator| operator.total_ns).sum();
    let self_ns: Nanos = operators.iter().map(|operator| operator.self_ns).sum();
    let device_ns: Option<Nanos> = operators.iter().map(|operator| operator.device_ns).sum();
    let row = |operator: &'a OperatorSummary| {
        let OperatorSummary { calls, total_ns: total, self_ns: own, device_ns: device, .. } = operator;
        OperatorView {
            operator,
            total_share: time_share(*total, total_ns),
            self_share: time_share(*own, self_ns),
            device_share: device.zip(device_ns).and_then(|(part, whole)| time_share(part, whole)),
            mean_ns: mean(*total, *calls),
        }
    };
    let peak = metrics.utilisation.peak.as_ref().map(|peak| peak.flops);
    let groups = &metrics.breakdown.operator_groups;
    OperatorsView {
        calls: operators.iter().map(|operator| operator.calls).sum(),
        total_ns,
        self_ns,
        device_ns,
        rows: operators.iter().map(row).collect(),
        by_memory: by_memory(metrics),
        by_class: (groups.by_class.iter())
            .map(|group| ClassView { group, share: time_share(group.total_ns, total_ns) })
            .collect(),
        by_shape: groups.by_shape.iter().map(|group| shape(group, total_ns, device_ns, peak)).collect(),
    }
}

fn shape(group: &ShapeGroup, host: Nanos, device: Option<Nanos>, peak: Option<FlopsPerSecond>) -> ShapeView<'_> {
    let (time_ns, all) = match group.device_ns {
        Some(time) => (time, device.unwrap_or_default()),
        None => (group.total_ns, host),
    };
    // A rate above the peak cannot be true, and a finding says so.
    let of_peak = || group.flops_per_second.zip(peak).map(|(rate, peak)| rate / peak).filter(|share| *share <= 1.0);
    ShapeView {
        group,
        time_ns,
        share: time_share(time_ns, all),
        mean_ns: mean(time_ns, group.calls),
        peak_share: group.roofline_share.or_else(|| of_peak().filter(|_| group.device_ns.is_none())),
    }
}

fn by_memory<'a>(metrics: &'a Metrics) -> Vec<MemoryView<'a>> {
    let known = metrics.breakdown.operators.iter().filter_map(|operator| Some((operator, operator.bytes_allocated?)));
    let mut rows: Vec<_> = known.collect();
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let all: Bytes = rows.iter().map(|(_, bytes)| *bytes).sum();
    let view = |(operator, bytes): (&'a OperatorSummary, Bytes)| MemoryView {
        operator,
        bytes,
        share: share(bytes.as_f64(), all.as_f64()),
        bytes_per_call: bytes.get().checked_div(operator.calls).map(Bytes::new),
    };
    rows.into_iter().map(view).collect()
}
