//! What a run lost or leaves open, with what to do about it.

use types::{Nanos, QualityCounter, Severity, Stage, Times};

use crate::attribution::Amount;
use crate::counter;
use crate::device::{DeviceRecords, DeviceSums};
use crate::evidence::{Evidence, PricedOperator, Trace};
use crate::operators::priced::Sum;
use crate::statistics::share;
use crate::subject::Subject;
use crate::timings::Timings;

/// Share of a run that may lie outside of every stage before it is worth a warning.
const STAGES_COVER: f64 = 0.01;

/// Counter of stages whose utilisation is unknown because the device's rates are.
const WITHOUT_PEAK: &str = "stages_without_peak";

/// What data quality is judged by.
pub(crate) struct QualityInputs<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) evidence: &'a Evidence<'a>,
    pub(crate) timings: &'a Timings<'a>,
    pub(crate) times: &'a Times,
    pub(crate) sums: &'a DeviceSums,
    pub(crate) device: Option<&'a DeviceRecords>,
    /// Modules that took less than the roofline time of their work, of so many.
    pub(crate) modules_below_roofline: (u64, u64),
}

/// Counters of those who collected, and what follows from the rest.
pub(crate) fn counters(inputs: &QualityInputs<'_>) -> Vec<QualityCounter> {
    match &inputs.evidence.trace {
        Some(trace) => of_trace(inputs, trace),
        None => of_operators(inputs),
    }
}

/// Counters of the readers, of the attribution, and of what follows from both.
fn of_trace(inputs: &QualityInputs<'_>, trace: &Trace<'_>) -> Vec<QualityCounter> {
    let QualityInputs { subject, evidence, times, sums, device, .. } = *inputs;
    let mut counters = evidence.quality.clone();
    for placed in &trace.timelines {
        counters.extend(placed.timeline.quality.iter().cloned());
        counters.extend(placed.attribution.quality.iter().cloned());
    }
    // Ranks lose the same things for the same reasons.
    if trace.timelines.len() > 1 {
        counters = merged(counters);
    }
    if evidence.plain.is_none() {
        counters.extend(outside_stages(times));
    }
    counters.extend(graphs(sums));
    counters.extend(without_utilisation(subject, trace, times));
    counters.extend(device.into_iter().flat_map(|device| concluded(device, sums)));
    counters.extend(counter::differing(&trace.listed, &sums.kernels));
    counters
}

/// Counters of a run without a trace.
fn of_operators(inputs: &QualityInputs<'_>) -> Vec<QualityCounter> {
    let mut counters = inputs.evidence.quality.clone();
    if counters.iter().all(|counter| counter.counter != WITHOUT_PEAK) {
        counters.extend(without_peak(inputs.subject, inputs.timings));
    }
    counters.extend(unpriced(inputs.subject, inputs.timings));
    counters.extend(unplaced(&inputs.evidence.operators.calls));
    counters.extend(below_roofline(inputs.modules_below_roofline));
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
fn outside_stages(times: &Times) -> Option<QualityCounter> {
    let wall = times.totals.wall_ns?;
    let top = times.stages.iter().filter(|stage| stage.parent.is_none());
    let staged: Nanos = top.clone().filter_map(|stage| stage.wall_ns).sum();
    let outside = (wall - staged).max(Nanos::ZERO);
    let part = share(outside.get() as f64, wall.get() as f64);
    (top.count() > 0).then(|| QualityCounter {
        quantities: Default::default(),
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
        quantities: Default::default(),
        counter: "graphs_recorded_whole".to_owned(),
        value: sums.graphs,
        share: share(sums.graphs as f64, sums.whole.launches as f64),
        severity: Severity::Warning,
        remedy: "a CUDA graph counts as one kernel here; record its nodes (nsys: --cuda-graph-trace=node)".to_owned(),
    })
}

/// Work whose layer or module is a conclusion, from the order of kernels alone.
fn concluded(device: &DeviceRecords, sums: &DeviceSums) -> Vec<QualityCounter> {
    let counter = |name: &str, work: Amount, remedy: &str| {
        (work.count > 0).then(|| QualityCounter {
            quantities: Default::default(),
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
        counter("work_with_module_by_gemms", device.placed_by_gemms, of_products),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Stages whose utilisation is unknown, and what is missing for it.
fn without_utilisation(subject: &Subject, trace: &Trace<'_>, times: &Times) -> Option<QualityCounter> {
    let timed = times.stages.iter().filter(|stage| stage.wall_ns.is_some());
    let has_work = |stage: Stage| subject.work.iter().any(|work| work.stage == stage);
    let open = timed.clone().filter(|stage| !has_work(stage.name) || subject.peak.is_none());
    let (open, timed) = (open.count() as u64, timed.count() as u64);
    let mut missing = Vec::new();
    if subject.run.model.is_none() {
        missing.push("the model is not named: pass --model".to_owned());
    }
    if trace.timelines.len() > 1 {
        missing.push("how the model is spread over several ranks is not known: import one rank".to_owned());
    }
    missing.extend(subject.workload.iter().flat_map(|workload| workload.missing.iter().map(ToString::to_string)));
    if subject.peak.is_none() && subject.devices.iter().all(|device| device.hardware.is_none()) {
        missing.push("the device's rates are not known: pass --hardware (`llm-perf hardware` lists them)".to_owned());
    } else if subject.peak.is_none() && missing.is_empty() {
        missing.push("no rate of the device is known for the element type that was used".to_owned());
    }
    (open > 0).then(|| QualityCounter {
        quantities: Default::default(),
        counter: "stages_without_utilisation".to_owned(),
        value: open,
        share: share(open as f64, timed as f64),
        severity: Severity::Info,
        remedy: missing.join("; "),
    })
}

/// Stages whose utilisation is unknown because the device's rates are.
fn without_peak(subject: &Subject, timings: &Timings<'_>) -> Option<QualityCounter> {
    let stages = timings.stages().count() as u64;
    (subject.peak.is_none() && stages > 0).then(|| QualityCounter {
        quantities: Default::default(),
        counter: WITHOUT_PEAK.to_owned(),
        value: stages,
        share: Some(1.0),
        severity: Severity::Warning,
        remedy:
            "the device's rates are not known, so MFU and MBU are not either: `llm-perf doctor --calibrate` measures \
                 those of this processor, `llm-perf hardware` lists known devices"
                .to_owned(),
    })
}

/// Timed inputs whose work is not modelled; they are left out of MFU and MBU.
fn unpriced(subject: &Subject, timings: &Timings<'_>) -> Option<QualityCounter> {
    let top = |stage: &Stage| stage.parent().is_none();
    let timed: Vec<_> = timings
        .stages()
        .filter(top)
        .flat_map(|stage| timings.inputs(stage).map(move |(input, _)| (stage, input)))
        .collect();
    let known =
        |(stage, input): &(Stage, &str)| subject.work.iter().any(|work| work.stage == *stage && work.input == *input);
    let missing = timed.iter().filter(|one| !known(one)).count();
    (missing > 0).then(|| QualityCounter {
        quantities: Default::default(),
        counter: "stage_inputs_without_modelled_work".to_owned(),
        value: missing as u64,
        share: share(missing as f64, timed.len() as f64),
        severity: Severity::Warning,
        remedy: "MFU and MBU are over the other inputs; `llm-perf models` lists the models whose work is known"
            .to_owned(),
    })
}

/// Operators outside of every stage or module: they are in the operator tables and in no module.
fn unplaced(operators: &[PricedOperator]) -> Option<QualityCounter> {
    let unplaced = |operator: &&PricedOperator| operator.record.stage.is_none() || operator.record.module.is_none();
    let found = Sum::of(operators.iter().filter(unplaced));
    (found.calls > 0).then(|| QualityCounter {
        quantities: Default::default(),
        counter: "operators_unattributed".to_owned(),
        value: found.calls,
        share: share(found.time.get() as f64, Sum::of(operators).time.get() as f64),
        severity: Severity::Info,
        remedy: "they ran outside of a stage or a module; `operators` has them, `modules` does not".to_owned(),
    })
}

/// Modules that took less than the roofline time of their work.
fn below_roofline((below, all): (u64, u64)) -> Option<QualityCounter> {
    (below > 0).then(|| QualityCounter {
        quantities: Default::default(),
        counter: "modules_faster_than_modelled".to_owned(),
        value: below,
        share: share(below as f64, all as f64),
        severity: Severity::Info,
        remedy:
            "their lost time is unknown: their data stayed in caches, which are faster than the memory the roofline \
                 assumes, or the device's rates were measured too low"
                .to_owned(),
    })
}
