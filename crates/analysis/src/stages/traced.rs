//! Stages of imported timelines: their instances as samples, their time on the host, their steps.

use std::collections::BTreeMap;

use types::timeline::{DeviceQueue, ThreadId};
use types::{DeviceId, Facts, Nanos, QueueFacts, Remark, Sample, SetAside, Stage, StageBasis, StepFacts, WorkCoverage};

use crate::attribution::{Amount, Attribution, Coverage, Inference, StageInstance, StageOrigin, step_series};
use crate::evidence::PlacedTimeline;
use crate::statistics::share;
use crate::time::{Span, devices, queue_depth};

/// One sample for each instance of a stage. Where the parts of vision are there and vision itself is not marked, each
/// prefill gets a vision of their sum, as a profile has it.
pub(crate) fn samples(timelines: &[PlacedTimeline<'_>]) -> Vec<Sample> {
    timelines.iter().flat_map(of_timeline).collect()
}

fn of_timeline(placed: &PlacedTimeline<'_>) -> Vec<Sample> {
    let mut counts: BTreeMap<(Option<u32>, Stage), u32> = BTreeMap::new();
    let mut sample = |stage: Stage, thread: ThreadId, wall_ns: Nanos| {
        // Processes of several ranks may be in one timeline, each with threads of its own.
        let rank = placed.rank.or_else(|| placed.timeline.threads.get(thread.0 as usize)?.rank);
        let repeat = counts.entry((rank, stage)).or_default();
        let sample = Sample { stage, input: None, epoch: 0, repeat: *repeat, rank, warmup: false, wall_ns };
        *repeat += 1;
        sample
    };
    let instances = &placed.attribution.stages;
    let of_instance = |instance: &StageInstance| (instance.stage, instance.thread, instance.wall_ns());
    let mut all: Vec<_> = instances.iter().map(of_instance).collect();
    if instances.iter().all(|instance| instance.stage != Stage::Vision) {
        all.extend(visions(placed.attribution).into_iter().map(|(thread, time)| (Stage::Vision, thread, time)));
    }
    all.into_iter().map(|(stage, thread, time)| sample(stage, thread, time)).collect()
}

/// Ranks of the timelines with their devices, in order.
pub(crate) fn ranks(timelines: &[PlacedTimeline<'_>]) -> BTreeMap<u32, Option<DeviceId>> {
    let mut ranks = BTreeMap::new();
    for placed in timelines {
        let threads = placed.timeline.threads.iter().filter_map(|thread| thread.rank);
        for rank in placed.rank.into_iter().chain(threads) {
            let of_rank = |queue: &&DeviceQueue| placed.rank.is_some() || queue.rank == Some(rank);
            let device = || placed.timeline.queues.iter().find(of_rank).map(|queue| placed.device(queue.device));
            ranks.entry(rank).or_insert_with(device);
        }
    }
    ranks
}

/// Time of the parts of vision in each prefill that has any, with the thread that ran it.
fn visions(attribution: &Attribution) -> Vec<(ThreadId, Nanos)> {
    let parts = || attribution.stages.iter().filter(|instance| instance.stage.parent() == Some(Stage::Vision));
    let prefills = attribution.stages.iter().filter(|instance| instance.stage == Stage::Prefill);
    let inside = |prefill: Span| -> Nanos {
        let of_prefill = parts().filter(|part| prefill.contains(part.host.start));
        of_prefill.map(|part| part.wall_ns()).sum()
    };
    let timed = prefills.map(|prefill| (prefill.thread, inside(prefill.host)));
    timed.filter(|(_, time)| *time > Nanos::ZERO).collect()
}

/// Host time of all instances of a stage; with several processes, which run side by side, that of the slowest.
pub(crate) fn wall(timelines: &[PlacedTimeline<'_>], stage: Stage) -> Option<Nanos> {
    timelines.iter().filter_map(|placed| wall_of_timeline(placed, stage)).max()
}

fn wall_of_timeline(placed: &PlacedTimeline<'_>, stage: Stage) -> Option<Nanos> {
    let instances = &placed.attribution.stages;
    let of_stage = |found: Stage| found == stage;
    // Where vision is not marked, it is the sum of its parts.
    let summed = stage == Stage::Vision && !instances.iter().any(|instance| of_stage(instance.stage));
    let mut walls: BTreeMap<Option<u32>, Nanos> = BTreeMap::new();
    for instance in instances {
        if of_stage(instance.stage) || (summed && instance.stage.parent() == Some(Stage::Vision)) {
            let process = placed.timeline.threads[instance.thread.0 as usize].process;
            *walls.entry(process).or_default() += instance.wall_ns();
        }
    }
    walls.into_values().max()
}

/// From the first thing recorded to the last, without loading and warming up; with several ranks, the longest.
pub(crate) fn whole(timelines: &[PlacedTimeline<'_>]) -> Option<Nanos> {
    let of_timeline = |placed: &PlacedTimeline<'_>| {
        let extent = extent(placed)?;
        Some(extent.length() - placed.attribution.asides.time_within(placed.timeline, extent))
    };
    timelines.iter().filter_map(of_timeline).max()
}

/// What was set aside; absent where nothing was.
pub(crate) fn set_aside(timelines: &[PlacedTimeline<'_>]) -> Option<SetAside> {
    let mut all = SetAside::default();
    for placed in timelines.iter().filter(|placed| !placed.attribution.asides.is_empty()) {
        let Amount { count, time } = placed.attribution.coverage.aside;
        let wall = extent(placed).map(|extent| placed.attribution.asides.time_within(placed.timeline, extent));
        all.wall_ns = all.wall_ns.max(wall.unwrap_or_default());
        all.launches += count;
        all.device_ns += time;
    }
    (all != SetAside::default()).then_some(all)
}

fn extent(placed: &PlacedTimeline<'_>) -> Option<Span> {
    let timeline = placed.timeline;
    let work = timeline.work.iter().map(|work| Span::new(work.start, work.end()));
    let calls = timeline.calls.iter().map(|call| Span::new(call.start, call.end()));
    let operators = timeline.operators.iter().map(|operator| Span::new(operator.start, operator.end()));
    let ranges = timeline.ranges.iter().map(|range| Span::new(range.start, range.end.unwrap_or(range.start)));
    work.chain(calls).chain(operators).chain(ranges).reduce(Span::hull)
}

/// How the stages were found; absent without a timeline.
pub(crate) fn basis(timelines: &[PlacedTimeline<'_>]) -> Option<StageBasis> {
    let marked = StageBasis { inferred: false, basis: Remark::new("stages.marked", Facts::new()) };
    let of_timeline = |placed: &PlacedTimeline<'_>| match &placed.attribution.inference {
        Inference::NotNeeded => marked.clone(),
        Inference::Done { evidence } => StageBasis { inferred: true, basis: evidence.clone() },
        Inference::Refused { reason } => StageBasis { inferred: false, basis: reason.clone() },
    };
    // With several ranks, one that is not marked speaks for all.
    timelines.iter().map(of_timeline).max_by_key(|basis| basis.inferred)
}

/// Whether a stage was inferred in any timeline.
pub(crate) fn is_inferred(timelines: &[PlacedTimeline<'_>], stage: Stage) -> bool {
    let mut instances = timelines.iter().flat_map(|placed| &placed.attribution.stages);
    // Where vision is the sum of its parts, it is as sure as they are.
    let of_stage = |found: Stage| found == stage || (stage == Stage::Vision && found.parent() == Some(stage));
    instances.any(|instance| of_stage(instance.stage) && instance.origin == StageOrigin::Tokens)
}

/// Decode steps of all ranks together, where the trace marks or shows them.
pub(crate) fn steps(timelines: &[PlacedTimeline<'_>]) -> Option<u64> {
    let steps = timelines.iter().map(|placed| placed.attribution.steps.len() as u64).sum();
    (steps > 0).then_some(steps)
}

/// Host time of every decode step, in milliseconds.
pub(crate) fn step_times(timelines: &[PlacedTimeline<'_>]) -> Vec<f64> {
    let of_timeline = |placed: &PlacedTimeline<'_>| -> Vec<f64> {
        placed.attribution.steps.iter().map(|step| step.host.length().as_millis()).collect()
    };
    timelines.iter().flat_map(of_timeline).collect()
}

/// Decode step by step.
pub(crate) fn step_facts(placed: &PlacedTimeline<'_>) -> Option<StepFacts> {
    let series = step_series(&placed.attribution.steps)?;
    Some(StepFacts {
        p50_ns: series.p50,
        p95_ns: series.p95,
        p99_ns: series.p99,
        drift: series.drift,
        kernels_per_token: series.kernels_per_token,
        work_per_token_ns: series.work_per_token,
    })
}

/// Queue depth of the only device, while it had work.
pub(crate) fn queue_facts(placed: &PlacedTimeline<'_>) -> Option<QueueFacts> {
    let [device] = devices(placed.timeline)[..] else { return None };
    let meant = placed.timeline.work.iter().enumerate().filter(|(place, _)| !placed.attribution.is_aside(*place));
    let spans = meant.map(|(_, work)| Span::new(work.start, work.end()));
    let depth = queue_depth(placed.timeline, &placed.attribution.launch, device, spans.reduce(Span::hull)?)?;
    Some(QueueFacts { mean: depth.mean, max: depth.max, empty_share: depth.empty_share })
}

/// How much of the device's time could be placed.
pub(crate) fn coverage(timelines: &[PlacedTimeline<'_>]) -> WorkCoverage {
    let sum = |time: fn(&Coverage) -> Nanos| -> Nanos {
        timelines.iter().map(|placed| time(&placed.attribution.coverage)).sum()
    };
    let all = sum(|coverage| coverage.all.time);
    let has_operators = timelines.iter().any(|placed| !placed.timeline.operators.is_empty());
    let of = |time: Nanos| share(time.get() as f64, all.get() as f64);
    let (marked, inferred) = (sum(|found| found.stage_from_ranges.time), sum(|found| found.stage_inferred.time));
    WorkCoverage {
        device_ns: all,
        stage_share: of(marked),
        inferred_share: of(inferred),
        unattributed_share: of(all - marked - inferred),
        operator_share: of(sum(|coverage| coverage.operator.time)).filter(|_| has_operators),
        graph_share: of(sum(|coverage| coverage.graph.time)).filter(|share| *share > 0.0),
    }
}
