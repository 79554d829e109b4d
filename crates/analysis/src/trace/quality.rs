//! What an imported run lost or leaves open, with what to do about it.

use types::{Metrics, Nanos, QualityCounter, Severity, TraceFacts};

use super::TraceRecords;
use super::device_work::DeviceSums;
use crate::attribution::Amount;
use crate::device::DeviceRecords;
use crate::statistics::share;

/// Share of a run that may lie outside of every stage before it is worth a warning.
const STAGES_COVER: f64 = 0.01;

/// Counters of the readers, of the attribution, and of what follows from both.
pub(super) fn counters(
    records: &TraceRecords<'_>,
    metrics: &Metrics,
    sums: &DeviceSums,
    facts: &TraceFacts,
) -> Vec<QualityCounter> {
    let mut counters = records.quality.clone();
    for placed in &records.timelines {
        counters.extend(placed.timeline.quality.iter().cloned());
        counters.extend(placed.attribution.quality.iter().cloned());
    }
    // Ranks lose the same things for the same reasons.
    if records.timelines.len() > 1 {
        counters = merged(counters);
    }
    if records.plain.is_none() {
        counters.extend(outside_stages(metrics));
    }
    counters.extend(graphs(sums));
    counters.extend(without_utilisation(records, metrics, facts));
    counters
}

/// Counters of one name as one: how many in all, and the largest share.
fn merged(counters: Vec<QualityCounter>) -> Vec<QualityCounter> {
    let mut all: Vec<QualityCounter> = Vec::new();
    for counter in counters {
        match all.iter_mut().find(|other| other.counter == counter.counter) {
            Some(other) => {
                other.value = other.value.saturating_add(counter.value);
                other.severity = other.severity.max(counter.severity);
                other.share = match (other.share, counter.share) {
                    (Some(one), Some(two)) => Some(one.max(two)),
                    (one, two) => one.or(two),
                };
            }
            None => all.push(counter),
        }
    }
    all
}

/// Time of the trace that belongs to no stage.
fn outside_stages(metrics: &Metrics) -> Option<QualityCounter> {
    let wall = metrics.totals.wall_ns?;
    let top = metrics.stages.iter().filter(|stage| stage.parent.is_none());
    let staged: Nanos = top.clone().filter_map(|stage| stage.wall_ns).sum();
    let outside = (wall - staged).max(Nanos::ZERO);
    let part = share(outside.get() as f64, wall.get() as f64);
    (top.count() > 0).then(|| QualityCounter {
        counter: "nanoseconds_outside_stages".to_owned(),
        value: outside.get().unsigned_abs(),
        share: part,
        severity: if part > Some(STAGES_COVER) { Severity::Warning } else { Severity::Info },
        remedy: "none needed where the trace also shows loading or warm-up; else name what is missing with a range"
            .to_owned(),
    })
}

fn graphs(sums: &DeviceSums) -> Option<QualityCounter> {
    (sums.graphs > 0).then(|| QualityCounter {
        counter: "graphs_recorded_whole".to_owned(),
        value: sums.graphs,
        share: share(sums.graphs as f64, sums.whole.launches as f64),
        severity: Severity::Warning,
        remedy: "a CUDA graph counts as one kernel here; record its nodes (nsys: --cuda-graph-trace=node)".to_owned(),
    })
}

/// Work whose layer or module is a conclusion, from the order of kernels alone.
pub(super) fn concluded(device: &DeviceRecords, sums: &DeviceSums) -> Vec<QualityCounter> {
    let counter = |name: &str, work: Amount, remedy: &str| {
        (work.count > 0).then(|| QualityCounter {
            counter: name.to_owned(),
            value: work.count,
            share: share(work.time.get() as f64, sums.whole.time.get() as f64),
            severity: Severity::Info,
            remedy: remedy.to_owned(),
        })
    };
    let of_graphs = "layers of CUDA graphs come from kernels that repeat as often as the model has layers; NVTX ranges around \
                     layers while the graph is captured, and our collector, would make them certain";
    let of_products = "modules come from matrix kernels in the order of the model's products; NVTX ranges named after modules \
                       (`--module-ranges depth=N`), or operators with shapes, would make them certain";
    [
        counter("work_with_layer_by_order", device.placed_by_order, of_graphs),
        counter("work_with_module_by_products", device.placed_by_products, of_products),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Stages whose utilisation is unknown, and what is missing for it.
fn without_utilisation(records: &TraceRecords<'_>, metrics: &Metrics, facts: &TraceFacts) -> Option<QualityCounter> {
    let timed = metrics.stages.iter().filter(|stage| stage.wall_ns.is_some());
    let open =
        timed.clone().filter(|stage| !metrics.work_per_stage.contains_key(&stage.name) || metrics.peak.is_none());
    let (open, timed) = (open.count() as u64, timed.count() as u64);
    let mut missing = Vec::new();
    if records.run.model.is_none() {
        missing.push("the model is not named: pass --model".to_owned());
    }
    if records.timelines.len() > 1 {
        missing.push("how the model is spread over several ranks is not known: import one rank".to_owned());
    }
    missing.extend(facts.workload.iter().flat_map(|workload| workload.missing.iter().cloned()));
    if metrics.peak.is_none() && records.devices.iter().all(|device| device.hardware.is_none()) {
        missing.push("the device's rates are not known: pass --hardware (`llm-perf hardware` lists them)".to_owned());
    } else if metrics.peak.is_none() && missing.is_empty() {
        missing.push("no rate of the device is known for the element type that was used".to_owned());
    }
    (open > 0).then(|| QualityCounter {
        counter: "stages_without_utilisation".to_owned(),
        value: open,
        share: share(open as f64, timed as f64),
        severity: Severity::Info,
        remedy: missing.join("; "),
    })
}
