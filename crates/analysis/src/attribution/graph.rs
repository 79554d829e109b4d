//! Work of CUDA graphs inside the ranges its nodes were captured in.
//!
//! Stage and range are those of the launch. A captured range says which part of the launch a kernel is: it lies inside the
//! range around the launch, as if it had been opened there.

use std::collections::HashMap;

use types::timeline::{CapturedRange, CapturedRangeId, DeviceWork, Timeline};

/// Per work: the innermost range that its node was captured in. Work without a launch in the trace has none, because there
/// is nothing that it could lie inside of.
pub(super) fn captured_ranges(timeline: &Timeline, call_of_work: &[Option<u32>]) -> Vec<Option<CapturedRangeId>> {
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
