//! Data-quality counters of attribution: what has no place, and what to do about it.

use std::collections::{HashMap, HashSet};

use types::timeline::{Timeline, WorkKind};
use types::{Nanos, QualityCounter, Severity};

use super::amount::Amount;
use super::stage::Inference;
use super::{Attribution, graph};

/// From this share of device time on, what is missing may change a conclusion.
const WORTH_A_WARNING: f64 = 0.02;

/// Counters of what has no place, with its share of device time. A counter of nothing is left out. `contested` is the work
/// launched where ranges overlap without nesting.
pub(super) fn counters(
    timeline: &Timeline,
    attribution: &Attribution,
    ambiguous: u64,
    contested: Amount,
) -> Vec<QualityCounter> {
    let coverage = &attribution.coverage;
    let mut counters = Vec::new();
    let mut add = |counter: &str, value: u64, share: Option<f64>, severity: Severity, remedy: &str| {
        if value > 0 {
            let (counter, remedy) = (counter.to_owned(), remedy.to_owned());
            counters.push(QualityCounter { counter, value, share, severity, remedy, quantities: Default::default() });
        }
    };
    let by_share = |part: Amount| match coverage.share(part) {
        Some(share) if share >= WORTH_A_WARNING => Severity::Warning,
        _ => Severity::Info,
    };
    let unmatched = coverage.without(coverage.launch);
    let remedy = "record the CUDA runtime calls too, and warm up before the profiler starts: work launched before it \
                  has no launch in the trace";
    add("work_without_launch", unmatched.count, coverage.share(unmatched), by_share(unmatched), remedy);
    let remedy = "import the processes apart: the same launch number belongs to several of them";
    add("work_with_ambiguous_launch", ambiguous, None, Severity::Warning, remedy);
    let launchless = "their launch is not in the trace, see work_without_launch";
    if !timeline.operators.is_empty() {
        let outside = coverage.without(coverage.operator);
        let remedy = match outside == unmatched {
            true => launchless,
            false => "work launched outside any recorded operator; profile with CPU activities on",
        };
        add("work_without_operator", outside.count, coverage.share(outside), by_share(outside), remedy);
    }
    let unplaced = coverage.without(coverage.stage());
    let remedy = match &attribution.inference {
        _ if unplaced == unmatched => launchless.to_owned(),
        Inference::Refused { reason } => {
            format!("there is no stage: {reason}; ranges around parts of the program would divide it")
        }
        _ => "launched outside of every stage".to_owned(),
    };
    add("work_without_stage", unplaced.count, coverage.share(unplaced), Severity::Info, &remedy);
    let inferred = coverage.stage_inferred;
    let remedy = "stages follow from tokens that one pass chooses and the next looks up; NVTX ranges around them would mark them";
    add("work_with_inferred_stage", inferred.count, coverage.share(inferred), Severity::Info, remedy);
    let open = timeline.ranges.iter().filter(|range| range.end.is_none()).count() as u64;
    let remedy =
        "these ranges were open when the trace ended and count until its end; stop the profiler after they close";
    add("ranges_open_at_end", open, coverage.share(clipped(timeline, attribution)), Severity::Warning, remedy);
    let crossing = attribution.projections.crossing();
    let remedy = "ranges of one thread overlap without nesting; work in both counts for both, and is shown under the \
                  one opened last";
    add("ranges_crossing", crossing, coverage.share(contested), Severity::Info, remedy);
    counters.extend(undivided(timeline, attribution));
    counters
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
    (amount.count > 0).then(|| QualityCounter {
        quantities: Default::default(),
        counter: "graph_launches_undivided".to_owned(),
        value: amount.count,
        share: attribution.coverage.share(amount),
        severity: Severity::Info,
        remedy: "no ranges were open inside the capture of these CUDA graphs, or it was not recorded; put NVTX ranges around \
                 layers in the code that is captured, and record from before the capture on"
            .to_owned(),
    })
}
