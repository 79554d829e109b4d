//! Work of CUDA graphs inside the ranges its nodes were captured in.
//!
//! Stage and range are those of the launch. A captured range says what of the launch a piece of work is: it lies inside the
//! range around the launch, as if it had been opened there.

use std::collections::HashMap;

use types::timeline::{CapturedRange, CapturedRangeId, DeviceWork, Timeline, WorkKind};
use types::{Nanos, QualityCounter, Severity};

use super::{Amount, Attribution};

/// Per work: the innermost range that its node was captured in. Work without a launch in the trace has none, because there
/// is nothing that it could lie inside of.
pub(super) fn ranges(timeline: &Timeline, call_of_work: &[Option<u32>]) -> Vec<Option<CapturedRangeId>> {
    let rows = timeline.graph_nodes.iter();
    let nodes: HashMap<_, _> = rows.map(|row| ((row.process, row.node), row.range)).collect();
    let range = |(work, call): (&DeviceWork, &Option<u32>)| {
        call.as_ref()?;
        let process = timeline.queues[work.queue.0 as usize].process;
        nodes.get(&(process, work.graph_node?)).copied()
    };
    timeline.work.iter().zip(call_of_work).map(range).collect()
}

/// A captured range and those around it, innermost first.
pub(crate) fn with_parents(
    timeline: &Timeline,
    range: CapturedRangeId,
) -> impl Iterator<Item = (CapturedRangeId, &CapturedRange)> {
    let row = |id: CapturedRangeId| timeline.captured_ranges.get(id.0 as usize).map(|row| (id, row));
    // A range stands behind the one around it, so that this comes to an end whatever a timeline holds.
    std::iter::successors(row(range), move |(id, inner)| inner.parent.filter(|parent| parent < id).and_then(row))
}

/// Whether a call launches a CUDA graph.
pub(crate) fn launches_graph(name: &str) -> bool {
    name.contains("GraphLaunch")
}

/// Launches of graphs whose work nothing tells apart.
pub(super) fn undivided(timeline: &Timeline, attribution: &Attribution) -> Option<QualityCounter> {
    let is_graph: Vec<bool> = timeline.names.iter().map(|(_, name)| launches_graph(name)).collect();
    // Per launch: time of its work, and whether any of it has a captured range.
    let mut launches: HashMap<u32, (Nanos, bool)> = HashMap::new();
    let rows = timeline.work.iter().zip(&attribution.launch).zip(&attribution.captured).enumerate();
    for (_, ((work, call), range)) in rows.filter(|(place, _)| !attribution.is_aside(*place)) {
        let Some(call) = call.filter(|call| is_graph[timeline.calls[*call as usize].name.index()]) else { continue };
        if work.kind != WorkKind::Graph {
            let (time, is_divided) = launches.entry(call).or_default();
            *time += work.duration;
            *is_divided |= range.is_some();
        }
    }
    let undivided = launches.values().filter(|(_, is_divided)| !is_divided);
    let amount =
        undivided.fold(Amount::default(), |sum, (time, _)| Amount { count: sum.count + 1, time: sum.time + *time });
    (amount.count > 0).then(|| QualityCounter {
        counter: "graph_launches_undivided".to_owned(),
        value: amount.count,
        share: attribution.coverage.share(amount),
        severity: Severity::Info,
        remedy: "no ranges were open inside the capture of these CUDA graphs, or it was not recorded; put NVTX ranges around \
                 layers in the code that is captured, and record from before the capture on"
            .to_owned(),
    })
}
