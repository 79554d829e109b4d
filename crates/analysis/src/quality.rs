//! What a run lost or leaves open, with what to do about it.

use types::{Facts, Nanos, QualityCounter, Remark, Severity, Stage, StageSummary, StepBasis, StepLabel, Times};

use crate::attribution::Amount;
use crate::counter;
use crate::device::{DeviceRecords, DeviceSums};
use crate::evidence::{Evidence, PricedOperator, Trace};
use crate::operators::priced::Sum;
use crate::statistics::share;
use crate::steps::untimed;
use crate::subject::Subject;
use crate::timings::Timings;

/// Share of a run that may lie outside of every stage before it is worth a warning.
const STAGES_COVER: f64 = 0.01;

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
        if placed.timeline.graphs_only {
            counters.extend(untimed(placed.timeline, placed.attribution));
        }
    }
    // Ranks lose the same things for the same reasons.
    if trace.timelines.len() > 1 {
        counters = merged(counters);
    }
    if evidence.plain.is_none() {
        // A step whose end is not known is in none.
        counters.extend(outside_stages(times).filter(|_| !evidence.has_graphs_only()));
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
    if counters.iter().all(|counter| counter.counter != "stages_without_peak") {
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
    // An engine's step with prompts and decoding sequences is in neither stage, and is no gap.
    let annotated = times.steps.as_ref().filter(|steps| steps.basis == StepBasis::EngineAnnotations);
    let mixed = annotated.iter().flat_map(|steps| &steps.list).filter(|step| step.label == Some(StepLabel::Mixed));
    let mixed_ns = mixed.clone().map(|step| step.wall_ns).sum::<Nanos>().min(outside);
    let unexplained = share((outside - mixed_ns).get() as f64, wall.get() as f64);
    let severity = if unexplained > Some(STAGES_COVER) { Severity::Warning } else { Severity::Info };
    let counter = QualityCounter::new("nanoseconds_outside_stages", severity, outside.get().unsigned_abs());
    let count = Some(mixed.count()).filter(|count| *count > 0);
    let facts = Facts::new().with("outside", outside).with_if("traced", true).with_if("annotated", annotated.is_some());
    let facts = facts.with_known("mixed", count).with_known("mixed_time", count.map(|_| mixed_ns));
    (top.count() > 0 && outside > Nanos::ZERO).then(|| counter.share(part).facts(facts))
}

/// Graphs without kernels; or where launches were sampled, how many have theirs.
fn graphs(sums: &DeviceSums) -> Option<QualityCounter> {
    let (sampled, launches) = sums.graph_launches;
    if sampled > 0 {
        return Some(QualityCounter::new("graph_launches_sampled", Severity::Info, sampled).of(launches));
    }
    let counter = QualityCounter::some("graphs_recorded_whole", Severity::Warning, sums.graphs);
    counter.map(|counter| counter.of(sums.whole.pieces))
}

/// Work whose layer or module is a conclusion, from the order of kernels alone.
fn concluded(device: &DeviceRecords, sums: &DeviceSums) -> Vec<QualityCounter> {
    let of = |counter: Option<QualityCounter>, work: Amount| {
        counter.map(|counter| counter.share(share(work.time.get() as f64, sums.whole.time.get() as f64)))
    };
    let (by_order, by_gemms) = (device.placed_by_order, device.placed_by_gemms);
    [
        of(QualityCounter::some("work_with_layer_by_order", Severity::Info, by_order.count), by_order),
        of(QualityCounter::some("work_with_module_by_gemms", Severity::Info, by_gemms.count), by_gemms),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Stages whose utilisation is unknown, and what is missing for it.
fn without_utilisation(subject: &Subject, trace: &Trace<'_>, times: &Times) -> Option<QualityCounter> {
    let timed = times.stages.iter().filter(|stage| stage.wall_ns.is_some());
    let has_work = |stage: Stage| subject.work.iter().any(|work| work.stage == stage);
    let is_open = |stage: &&StageSummary| stage.mfu.is_none() && (!has_work(stage.name) || subject.peak.is_none());
    let open = timed.clone().filter(is_open);
    let (open, timed) = (open.count() as u64, timed.count() as u64);
    let no_peak = subject.peak.is_none();
    let unknown_device = no_peak && subject.devices.iter().all(|device| device.hardware.is_none());
    let missing = subject.workload.iter().flat_map(|workload| workload.missing.iter().cloned());
    // A server's steps hold several requests at once, each with lengths of its own.
    let is_served = times.steps.as_ref().is_some_and(|steps| steps.basis == StepBasis::EngineAnnotations);
    let served = Remark::new(
        "workload.served",
        Facts::new()
            .with_if("joined", !subject.steps.is_empty())
            .with_if("graphs_only", trace.timelines.iter().any(|placed| placed.timeline.graphs_only)),
    );
    let reasons = if is_served && subject.run.model.is_some() { vec![served] } else { missing.collect() };
    let reasons: Vec<Facts> = reasons.into_iter().map(|reason| Facts::new().with("reason", reason)).collect();
    let facts = Facts::new()
        .with_if("no_model", subject.run.model.is_none())
        .with_if("several_ranks", trace.timelines.len() > 1)
        .with_known("reasons", (!reasons.is_empty()).then_some(reasons))
        .with_if("unknown_device", unknown_device);
    let no_rate = no_peak && facts.is_empty();
    let counter = QualityCounter::some("stages_without_utilisation", Severity::Info, open);
    counter.map(|counter| counter.of(timed).facts(facts.with_if("no_rate", no_rate)))
}

/// Stages whose utilisation is unknown because the device's rates are.
fn without_peak(subject: &Subject, timings: &Timings<'_>) -> Option<QualityCounter> {
    let stages = timings.stages().count() as u64;
    let counter = QualityCounter::some("stages_without_peak", Severity::Warning, stages);
    counter.filter(|_| subject.peak.is_none()).map(|counter| counter.of(stages))
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
    let counter = QualityCounter::some("stage_inputs_without_modelled_work", Severity::Warning, missing as u64);
    counter.map(|counter| counter.of(timed.len() as u64))
}

/// Operators outside of every stage or module: they are in the operator tables and in no module.
fn unplaced(operators: &[PricedOperator]) -> Option<QualityCounter> {
    let unplaced = |operator: &&PricedOperator| operator.record.stage.is_none() || operator.record.module.is_none();
    let found = Sum::of(operators.iter().filter(unplaced));
    let counter = QualityCounter::some("operators_unattributed", Severity::Info, found.calls);
    counter.map(|counter| counter.share(share(found.time.get() as f64, Sum::of(operators).time.get() as f64)))
}

/// Modules that took less than the roofline time of their work.
fn below_roofline((below, all): (u64, u64)) -> Option<QualityCounter> {
    let counter = QualityCounter::some("modules_faster_than_modelled", Severity::Info, below);
    counter.map(|counter| counter.of(all))
}
