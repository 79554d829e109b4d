//! Launches in one graph: which of them a graph can hold, and what stays with the host.
//!
//! A graph holds the launches of one thread between two places that it cannot hold: calls that wait for the device, captures and
//! other first uses, data loaders, a host that does something else for a millisecond or longer, the start of a step. What
//! the host does before the first launch of such a section, and after its last, stays. The launch of a graph stays as it is, and
//! ends a section too.

use types::{IdleCause, Nanos};

use super::bound::Bound;
use super::costs::Costs;
use super::graph::Graph;
use super::node::CallNode;
use super::setting::Setting;
use crate::attribution::graph::launches_graph;
use crate::scope::Scope;

/// Host time of launching a graph, and of each of its nodes: 2 us and 200 ns in CUDA 11.8, 2.5 us and about 1 ns in CUDA 12.6
/// (NVIDIA, "Constant Time Launch for Straight-Line CUDA Graphs", 2024).
const LAUNCH: [Nanos; 2] = [Nanos::new(2_000), Nanos::new(2_500)];
/// Nanoseconds for each node.
const NODE: [i64; 2] = [200, 1];
/// Other doings of the host that are shorter than this come with launching.
const MOMENTS: Nanos = Nanos::new(100_000);
/// Fewer launches than this are not worth a graph.
const FEWEST: usize = 4;

/// Puts the launches of a scope into graphs.
pub(super) fn capture(setting: &Setting<'_>, costs: &mut Costs, scope: Option<Scope>, bound: Bound) {
    let (graph, marks) = (setting.graph, setting.steps);
    let is_graph: Vec<bool> = setting.timeline.names.iter().map(|(_, name)| launches_graph(name)).collect();
    let holds = |call: &CallNode| holds(call) && !is_graph[setting.timeline.calls[call.row as usize].name.index()];
    let mut captured = vec![false; graph.calls.len()];
    let mut section: Vec<usize> = Vec::new();
    for (place, call) in graph.calls.iter().enumerate() {
        let is_same = section.last().is_some_and(|last| call.before.is_some_and(|before| before.index() == *last));
        let is_marked = is_same && {
            let before = graph.calls[place - 1].span.start;
            marks.partition_point(|mark| *mark <= before) < marks.partition_point(|mark| *mark <= call.span.start)
        };
        let is_meant = scope.is_none_or(|scope| call.scope == Some(scope));
        if !is_same || is_marked || !is_meant || breaks(call) || !holds(call) {
            close(graph, costs, &mut section, &mut captured, bound);
        }
        if is_meant && holds(call) {
            section.push(place);
        }
    }
    close(graph, costs, &mut section, &mut captured, bound);
    for (row, work) in graph.work.iter().enumerate() {
        if work.launch.is_some_and(|launch| captured[launch.node.index()]) {
            costs.launch[row] = costs.launch[row].min(graph.latencies.launch);
            costs.stream[row] = costs.stream[row].min(graph.latencies.follow);
        }
    }
}

/// Whether the time before a call ends a section. What takes moments before each launch, such as the look into a cache of compiled
/// kernels, is part of preparing it.
fn breaks(call: &CallNode) -> bool {
    let is_other = call.doing != IdleCause::Launching && call.doing_ns >= MOMENTS;
    is_other || call.handed_over.is_some()
}

/// Whether a graph can hold a call.
fn holds(call: &CallNode) -> bool {
    let is_free = call.wait.is_none_or(|wait| !wait.until_end);
    is_free && !call.first_use && !matches!(call.kind, Some(IdleCause::Synchronising | IdleCause::Compiling))
}

fn close(graph: &Graph, costs: &mut Costs, section: &mut Vec<usize>, captured: &mut [bool], bound: Bound) {
    let launches = |place: &usize| graph.calls[*place].launched > 0;
    let ends = section.iter().position(launches).zip(section.iter().rposition(launches));
    let held = ends.map(|(first, last)| &section[first..=last]).unwrap_or_default();
    let count: u32 = held.iter().map(|place| graph.calls[*place].launched).sum();
    if held.iter().filter(|place| launches(place)).count() >= FEWEST {
        let [slow, quick] = [0, 1].map(|side| LAUNCH[side] + Nanos::new(NODE[side] * i64::from(count)));
        for (number, place) in held.iter().enumerate() {
            captured[*place] = true;
            let cost = match number {
                0 => bound.pick(slow, quick),
                _ => Nanos::ZERO,
            };
            costs.own[*place] = cost;
            costs.waits[*place] = false;
            if number > 0 {
                costs.gap[*place] = Nanos::ZERO;
            }
        }
    }
    section.clear();
}
