//! Operators of CUDA graphs, from another trace of the job that holds the capture.
//!
//! A serving engine captures its graphs while it starts and replays them when it serves; a profiler sees the operators in the
//! one trace and the kernels in the other. Nodes are captured in the order in which a stream would run them, so that a graph
//! captured on one stream replays its kernels in that order. Equal numbers are not enough to believe it: the same operator with
//! the same arguments has to have launched the same kernel wherever it comes.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{HostCall, HostOperator, NameId, OperatorKind, SignatureId, ThreadId, Timeline, WorkKind};
use types::{Facts, Nanos, Remark};

use super::correlation::Join;
use super::graph::launches_graph;
use super::nesting::{ByThread, Open};
use crate::time::CaptureCall;

/// Share of the nodes whose operator has to launch the same kernel each time.
const CONSISTENT: f64 = 0.95;
/// Share of the nodes whose operator has to come more than once, or nothing is checked.
const CHECKED: f64 = 0.5;

/// Whether a timeline captures graphs and launches none, which is what it is recorded for.
pub fn is_capture(timeline: &Timeline) -> bool {
    let mut captures = false;
    for call in &timeline.calls {
        let name = timeline.name(call.name);
        if launches_graph(name) {
            return false;
        }
        captures |= CaptureCall::of(name).is_some();
    }
    captures
}

/// One node of a captured graph.
#[derive(Clone, Copy)]
struct Node {
    kind: NodeKind,
    /// In the capturing timeline.
    operator: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeKind {
    Kernel,
    Copy,
    Fill,
}

/// Gives the kernels of graphs that `replay` launches the operators of their capture, and says how many got one; or why the
/// capture is of none of these graphs.
pub fn join_capture(replay: &mut Timeline, captured: &Timeline) -> Result<u64, Remark> {
    let captures = captures(captured);
    let launches = graph_launches(replay);
    if launches.is_empty() {
        return Err(Remark::new("capture.no-launch", Facts::new()));
    }
    let mut joined = 0;
    let mut why = Vec::new();
    for (call, rows) in &launches {
        let kinds: Vec<_> = rows.iter().filter_map(|row| kind(&replay.work[*row as usize].kind)).collect();
        let same = |nodes: &&Vec<Node>| nodes.iter().map(|node| node.kind).eq(kinds.iter().copied());
        let Some(nodes) = captures.iter().find(same) else {
            let sizes: Vec<_> = captures.iter().map(|nodes| Facts::new().with("nodes", nodes.len())).collect();
            let facts = Facts::new().with("replayed", kinds.len());
            let facts = facts.with_known("captured", (!sizes.is_empty()).then_some(sizes));
            why.push(Remark::new("capture.other-size", facts));
            continue;
        };
        match consistent(replay, captured, rows, nodes) {
            Ok(()) => joined += graft(replay, captured, *call, rows, nodes),
            Err(reason) => why.push(reason),
        }
    }
    if joined > 0 { Ok(joined) } else { Err(why.into_iter().next().unwrap_or_default()) }
}

/// Nodes of each capture, in order.
fn captures(timeline: &Timeline) -> Vec<Vec<Node>> {
    let (mut found, mut open): (Vec<Vec<Node>>, Vec<Option<Vec<u32>>>) =
        (Vec::new(), vec![None; timeline.threads.len()]);
    let mut calls: Vec<u32> = (0..timeline.calls.len() as u32).collect();
    let call = |place: u32| &timeline.calls[place as usize];
    calls.sort_by_key(|place| (call(*place).start, std::cmp::Reverse(call(*place).end())));
    let mut until: Vec<Nanos> = vec![Nanos::new(i64::MIN); timeline.threads.len()];
    for place in calls {
        let HostCall { name, thread, start, .. } = *call(place);
        let (name, thread) = (timeline.name(name), thread.0 as usize);
        match CaptureCall::of(name) {
            Some(CaptureCall::Begin) => open[thread] = Some(Vec::new()),
            Some(CaptureCall::End) => {
                if let Some(launches) = open[thread].take() {
                    found.push(nodes(timeline, ThreadId(thread as u32), &launches));
                }
            }
            // A driver call inside a runtime call is the same launch.
            None if launched_kind(name).is_some() && start >= until[thread] => {
                until[thread] = call(place).end();
                if let Some(launches) = &mut open[thread] {
                    launches.push(place);
                }
            }
            None => {}
        }
    }
    found
}

/// Captured launches with the innermost operator around each.
fn nodes(timeline: &Timeline, thread: ThreadId, launches: &[u32]) -> Vec<Node> {
    let row = |place: u32| &timeline.operators[place as usize];
    let rows = timeline.operators.iter().enumerate();
    let rows = rows.filter(|(_, row)| row.kind == OperatorKind::Framework && row.thread == thread);
    let rows = rows.map(|(place, row)| (place as u32, row.thread.0));
    let order =
        ByThread::new(timeline.threads.len(), rows, |place| (row(place).start, std::cmp::Reverse(row(place).end())));
    let mut open = Open::default();
    let mut next = order.of(thread.0 as usize).iter().peekable();
    let node = |place: &u32| {
        let call = &timeline.calls[*place as usize];
        while let Some(operator) = next.next_if(|operator| row(**operator).start <= call.start) {
            open.open(*operator, row(*operator).start, row(*operator).end());
        }
        let kind = launched_kind(timeline.name(call.name)).unwrap_or(NodeKind::Kernel);
        Node { kind, operator: open.innermost(call.start) }
    };
    launches.iter().map(node).collect()
}

/// What a call adds to a graph that is captured.
fn launched_kind(name: &str) -> Option<NodeKind> {
    let has = |part: &str| name.contains(part);
    if has("LaunchKernel") || has("LaunchCooperative") {
        return Some(NodeKind::Kernel);
    }
    if has("Memcpy") {
        return Some(NodeKind::Copy);
    }
    has("Memset").then_some(NodeKind::Fill)
}

fn kind(kind: &WorkKind) -> Option<NodeKind> {
    match kind {
        WorkKind::Kernel => Some(NodeKind::Kernel),
        WorkKind::Copy(_) => Some(NodeKind::Copy),
        WorkKind::Fill => Some(NodeKind::Fill),
        WorkKind::Graph => None,
    }
}

/// Work of each launch of a graph, in the order it ran.
fn graph_launches(timeline: &Timeline) -> BTreeMap<u32, Vec<u32>> {
    let mut launches: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (row, call) in Join::new(timeline).call.into_iter().enumerate() {
        let is_graph = |call: &u32| launches_graph(timeline.name(timeline.calls[*call as usize].name));
        if let Some(call) = call.filter(is_graph) {
            launches.entry(call).or_default().push(row as u32);
        }
    }
    launches.retain(|_, rows| rows.iter().all(|row| timeline.work[*row as usize].kind != WorkKind::Graph));
    for rows in launches.values_mut() {
        rows.sort_by_key(|row| timeline.work[*row as usize].start);
    }
    launches
}

/// Whether operators that come more than once launched the same kernel each time.
fn consistent(replay: &Timeline, captured: &Timeline, rows: &[u32], nodes: &[Node]) -> Result<(), Remark> {
    let mut kernels: HashMap<(NameId, Option<SignatureId>), HashMap<NameId, u64>> = HashMap::new();
    for (row, node) in rows.iter().zip(nodes) {
        let Some(operator) = node.operator.map(|place| &captured.operators[place as usize]) else { continue };
        let key = (operator.name, operator.signature);
        *kernels.entry(key).or_default().entry(replay.work[*row as usize].name).or_default() += 1;
    }
    let (mut checked, mut agreeing) = (0, 0);
    for counts in kernels.values().filter(|counts| counts.values().sum::<u64>() > 1) {
        checked += counts.values().sum::<u64>();
        // An operator may launch several kernels, each as often as the others.
        let most = counts.values().copied().max().unwrap_or(0);
        agreeing += counts.values().filter(|count| **count == most && most > 1).sum::<u64>();
    }
    if (checked as f64) < CHECKED * nodes.len() as f64 {
        return Err(Remark::new("capture.unchecked", Facts::new().with("nodes", nodes.len())));
    }
    if (agreeing as f64) < CONSISTENT * checked as f64 {
        let facts = Facts::new().with("nodes", nodes.len());
        let facts = facts.with("differing", checked - agreeing).with("checked", checked);
        return Err(Remark::new("capture.other-kernels", facts));
    }
    Ok(())
}

/// Puts the operators of the nodes where the graph is launched; they took no time there.
fn graft(replay: &mut Timeline, captured: &Timeline, call: u32, rows: &[u32], nodes: &[Node]) -> u64 {
    let HostCall { thread, start, .. } = replay.calls[call as usize];
    let mut placed: HashMap<u32, u32> = HashMap::new();
    let mut joined = 0;
    for (row, node) in rows.iter().zip(nodes) {
        let Some(place) = node.operator else { continue };
        let operator = *placed.entry(place).or_insert_with(|| {
            let original = &captured.operators[place as usize];
            let signature = original.signature.map(|id| captured.signatures.get(id).clone());
            replay.operators.push(HostOperator {
                kind: OperatorKind::Framework,
                name: replay.names.place(captured.name(original.name)),
                thread,
                signature: signature.map(|signature| replay.signatures.place_owned(signature)),
                start,
                duration: Nanos::ZERO,
                call: None,
            });
            replay.operators.len() as u32 - 1
        });
        replay.captured_operators.push((*row, operator));
        joined += 1;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, call, timeline};

    /// Layers of two operators, captured at the given moments.
    fn capture_of(layers: i64) -> Timeline {
        let mut timeline = timeline(1_000_000, &[]);
        call(&mut timeline, "cudaStreamBeginCapture", 10, 5, None);
        for node in 0..layers * 2 {
            let start = 100 + node * 100;
            let name = timeline.names.place(["aten::mm", "aten::add"][node as usize % 2]);
            timeline.operators.push(HostOperator {
                kind: OperatorKind::Framework,
                name,
                thread: ThreadId(0),
                signature: None,
                start: Nanos::new(start),
                duration: Nanos::new(50),
                call: None,
            });
            call(&mut timeline, "cudaLaunchKernel", start + 10, 10, None);
            call(&mut timeline, "cuLaunchKernel", start + 12, 5, None);
        }
        call(&mut timeline, "cudaStreamEndCapture", 900_000, 5, None);
        timeline
    }

    /// One launch of a graph with these kernels.
    fn replay_of(names: &[&'static str]) -> Timeline {
        let launches: Vec<_> =
            (0..).zip(names).map(|(place, name)| Launch::new(1_000, 2_000 + place * 100, 50).named(name)).collect();
        let mut timeline = timeline(1_000_000, &launches);
        let graph = timeline.names.place("cudaGraphLaunch");
        let first = timeline.calls[0].correlation;
        timeline.calls.truncate(1);
        timeline.calls[0].name = graph;
        for work in &mut timeline.work {
            work.correlation = first;
        }
        timeline
    }

    #[test]
    fn kernels_of_a_graph_get_the_operators_of_its_capture() {
        let mut replay = replay_of(&["gemm", "add", "gemm", "add"]);
        let captured = capture_of(2);
        assert!(is_capture(&captured) && !is_capture(&replay));
        assert_eq!(join_capture(&mut replay, &captured), Ok(4));
        let attribution = attribute(&replay, &AttributionSettings::default());
        let names: Vec<_> =
            attribution.operator.iter().map(|row| replay.name(replay.operators[row.unwrap() as usize].name)).collect();
        assert_eq!(names, ["aten::mm", "aten::add", "aten::mm", "aten::add"]);
    }

    #[test]
    fn another_graph_is_told_by_its_size_or_its_kernels() {
        let why = join_capture(&mut replay_of(&["gemm", "add"]), &capture_of(2)).unwrap_err();
        let captured = vec![Facts::new().with("nodes", 4_u64)];
        let facts = Facts::new().with("replayed", 2_u64).with("captured", captured);
        assert_eq!(why, Remark::new("capture.other-size", facts));
        let mut other = replay_of(&["gemm", "add", "softmax", "copy"]);
        let why = join_capture(&mut other, &capture_of(2)).unwrap_err();
        let facts = Facts::new().with("nodes", 4_u64).with("differing", 4_u64).with("checked", 4_u64);
        assert_eq!(why, Remark::new("capture.other-kernels", facts));
        assert!(other.operators.is_empty(), "nothing is grafted");
    }
}
