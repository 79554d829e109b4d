//! Data-quality counters of attribution: what has no place, and what to do about it.

use std::collections::{HashMap, HashSet};

use types::timeline::{Timeline, TraceFormat, WorkKind};
use types::{Facts, Nanos, QualityCounter, Severity};

use super::amount::Amount;
use super::backlog::Backlog;
use super::stage::Inference;
use super::{Attribution, graph};
use crate::kernel::is_migration;
use crate::statistics::share;
use crate::time::{CaptureCall, Span, is_kernel_launch, kernel_launches};

/// From this share of device time on, what is missing may change a conclusion.
const WORTH_A_WARNING: f64 = 0.02;

/// From this share of launches on, steps and rates of a recording whose end is missing are not what they seem, nor is idle time where
/// kernels are missing in between.
const MISLEADS: f64 = 0.1;

/// From this share of launches on, work that was dropped anywhere is most of what ran.
const MOST: f64 = 0.5;

/// The fact of how many launches without work come before others with it.
const BETWEEN: &str = "between";

/// Counters of what has no place, with its share of device time. A counter of nothing is left out. `contested` is the work
/// launched where ranges overlap without nesting.
pub(super) fn counters(
    timeline: &Timeline,
    attribution: &Attribution,
    ambiguous: u64,
    contested: Amount,
) -> Vec<QualityCounter> {
    let coverage = &attribution.coverage;
    let severity = |part: Amount| match coverage.share(part) {
        Some(share) if share >= WORTH_A_WARNING => Severity::Warning,
        _ => Severity::Info,
    };
    let of = |counter: Option<QualityCounter>, part: Amount| counter.map(|counter| counter.share(coverage.share(part)));
    let unmatched = coverage.without(coverage.launch);
    let unified = migrations(timeline, attribution);
    let unlaunched =
        Amount { count: unmatched.count.saturating_sub(unified.count), time: unmatched.time - unified.time };
    let launchless = |part: Amount| Facts::new().with_if("launchless", part == unmatched);
    // The launch of a graph launches its kernels, which have no operator each: nothing is missing there.
    let (missing, graphs) = (coverage.without(coverage.operator), coverage.graph_alone);
    let outside = if timeline.operators.is_empty() {
        Amount::default()
    } else {
        Amount { count: missing.count - graphs.count, time: missing.time - graphs.time }
    };
    let unplaced = coverage.without(coverage.stage());
    let refused = match &attribution.inference {
        Inference::Refused { reason } if unplaced != unmatched => Some(reason.clone()),
        _ => None,
    };
    let unplaced_facts = launchless(unplaced).with_known("reason", refused);
    let inferred = coverage.stage_inferred;
    let open = timeline.ranges.iter().filter(|range| range.end.is_none()).count() as u64;
    let crossing = attribution.projections.crossing();
    let counters = [
        of(QualityCounter::some("work_without_launch", severity(unlaunched), unlaunched.count), unlaunched)
            .map(|counter| counter.facts(before_recording(timeline, attribution))),
        QualityCounter::some("work_with_ambiguous_launch", Severity::Warning, ambiguous),
        of(QualityCounter::some("work_without_operator", severity(outside), outside.count), outside)
            .map(|counter| counter.facts(launchless(outside))),
        of(QualityCounter::some("work_without_stage", Severity::Info, unplaced.count), unplaced)
            .map(|counter| counter.facts(unplaced_facts)),
        of(QualityCounter::some("work_with_inferred_stage", Severity::Info, inferred.count), inferred),
        of(QualityCounter::some("ranges_open_at_end", Severity::Warning, open), clipped(timeline, attribution)),
        of(QualityCounter::some("ranges_crossing", Severity::Info, crossing), contested),
        undivided(timeline, attribution),
        unrecorded(timeline),
        without_work(timeline, attribution),
    ];
    counters.into_iter().flatten().collect()
}

/// Pages of unified memory that the driver moved on its own: no call launches them.
fn migrations(timeline: &Timeline, attribution: &Attribution) -> Amount {
    Amount::of(timeline, |place| {
        let work = &timeline.work[place];
        attribution.launch[place].is_none()
            && !attribution.is_aside(place)
            && is_migration(work.kind, timeline.name(work.name))
    })
}

/// Work that was launched before the recording, and for how long it ran.
fn before_recording(timeline: &Timeline, attribution: &Attribution) -> Facts {
    let backlog = Backlog::new(timeline, &attribution.launch);
    let lead = backlog.span.map(Span::length);
    let facts = Facts::new().with_if("calls", !timeline.calls.is_empty());
    facts.with_known("before", lead.map(|_| backlog.count())).with_known("lead", lead)
}

/// Work launched inside a range that was open when the trace ended: on its thread, everything from its start on.
fn clipped(timeline: &Timeline, attribution: &Attribution) -> Amount {
    let mut since: Vec<Option<Nanos>> = vec![None; timeline.threads.len()];
    for range in timeline.ranges.iter().filter(|range| range.end.is_none()) {
        let since = &mut since[range.thread.0 as usize];
        *since = Some(since.map_or(range.start, |earlier| earlier.min(range.start)));
    }
    Amount::of(timeline, |place| {
        let call = attribution.launch[place].map(|call| &timeline.calls[call as usize]);
        call.is_some_and(|call| since[call.thread.0 as usize].is_some_and(|since| since <= call.start))
    })
}

/// Launches in a trace of the host alone.
fn unrecorded(timeline: &Timeline) -> Option<QualityCounter> {
    let launches = if timeline.work.is_empty() { kernel_launches(timeline) } else { 0 };
    QualityCounter::some("launches_without_device_activity", Severity::Error, launches)
}

/// Launches of kernels and graphs without any work, in a recording that has some: it was cut off. What a capture launches does not
/// run, and the reader of our own records counts what is missing itself.
fn without_work(timeline: &Timeline, attribution: &Attribution) -> Option<QualityCounter> {
    let has_launches = attribution.launch.iter().any(Option::is_some);
    let has_capture = timeline.names.iter().any(|(_, name)| CaptureCall::of(name).is_some());
    if !has_launches || has_capture || timeline.format == TraceFormat::Wire {
        return None;
    }
    let is_launch: Vec<bool> = timeline.names.iter().map(|(_, name)| is_kernel_launch(name)).collect();
    let launched: HashSet<u32> = attribution.launch.iter().flatten().copied().collect();
    let launches = || timeline.calls.iter().enumerate().filter(|(_, call)| is_launch[call.name.index()]);
    let missing: Vec<Nanos> =
        launches().filter(|(row, _)| !launched.contains(&(*row as u32))).map(|(_, call)| call.start).collect();
    let all = launches().count() as f64;
    let part = share(missing.len() as f64, all).filter(|part| *part >= WORTH_A_WARNING)?;
    // A profiler that starts misses a few; behind the last launch that has work, the end is cut off.
    let starts = || launched.iter().map(|row| timeline.calls[*row as usize].start);
    let (first, last) = starts().min().zip(starts().max())?;
    let count = |which: &dyn Fn(Nanos) -> bool| missing.iter().filter(|start| which(**start)).count();
    let (between, behind) = (count(&|start| start > first && start < last), count(&|start| start > last));
    let misleads = |part: usize| share(part as f64, all).is_some_and(|part| part >= MISLEADS);
    let severity =
        if misleads(between) || misleads(behind) || part >= MOST { Severity::Error } else { Severity::Warning };
    let facts = Facts::new().with_known(BETWEEN, (between > 0).then_some(between));
    QualityCounter::some("launches_cut_off", severity, missing.len() as u64).map(|counter| counter.facts(facts))
}

impl Attribution {
    /// Whether so much launched work is missing between other work that idle time is not known.
    pub(crate) fn misses_kernels(&self) -> bool {
        let counter = self.quality.iter().find(|counter| counter.counter == "launches_cut_off");
        let missing = counter.and_then(|counter| counter.quantities.count(BETWEEN)).unwrap_or_default();
        let work = self.launch.iter().flatten().count() as u64;
        missing > 0 && missing as f64 >= MISLEADS * (missing + work) as f64
    }
}

/// Launches of graphs whose work nothing tells apart.
fn undivided(timeline: &Timeline, attribution: &Attribution) -> Option<QualityCounter> {
    let is_graph: Vec<bool> = timeline.names.iter().map(|(_, name)| graph::launches_graph(name)).collect();
    // Per launch: time of its work, and whether any of it has a captured range.
    let mut launches: HashMap<u32, (Nanos, bool)> = HashMap::new();
    let rows = timeline.work.iter().zip(&attribution.launch).zip(&attribution.captured).enumerate();
    let joined: HashSet<u32> = timeline.captured_operators.iter().map(|(row, _)| *row).collect();
    for (row, ((work, call), range)) in rows.filter(|(place, _)| !attribution.is_aside(*place)) {
        let Some(call) = call.filter(|call| is_graph[timeline.calls[*call as usize].name.index()]) else { continue };
        if work.kind != WorkKind::Graph {
            let (time, is_divided) = launches.entry(call).or_default();
            *time += work.duration;
            *is_divided |= range.is_some() || joined.contains(&(row as u32));
        }
    }
    let mut amount = Amount::default();
    for (time, _) in launches.values().filter(|(_, is_divided)| !is_divided) {
        amount.add(*time);
    }
    let counter = QualityCounter::some("graph_launches_undivided", Severity::Info, amount.count);
    counter.map(|counter| counter.share(attribution.coverage.share(amount)))
}

#[cfg(test)]
mod tests {
    use types::timeline::Correlation;

    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, call, timeline};

    #[test]
    fn a_recording_misses_kernels_where_launches_before_others_have_none() {
        let misses = |without: u64, from: i64| {
            let launches: Vec<_> = (0..18).map(|at| Launch::new(1_000 + 20 * at, 1_010 + 20 * at, 5)).collect();
            let mut timeline = timeline(2_000, &launches);
            (0..without).for_each(|at| {
                call(&mut timeline, "cudaLaunchKernel", from + 10 * at as i64, 5, Correlation::new(100 + at));
            });
            attribute(&timeline, &AttributionSettings::default()).misses_kernels()
        };
        assert_eq!([0, 1, 2, 30].map(|without| misses(without, 1_005)), [false, false, true, true]);
        assert!(!misses(30, 2_000), "a recording that is cut off knows what came before");
        assert!(!misses(30, 500), "a profiler that starts misses a few");
    }
}
