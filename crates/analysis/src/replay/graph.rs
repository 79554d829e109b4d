//! What waited for what.
//!
//! Nodes are calls of the host (those inside others are part of them) and device work. Every node has at most a handful of
//! predecessors, each of which may hold it back by a fixed lag behind its own start or end. The lags are chosen so that
//! at least one of them explains the recorded start exactly: what nothing explains is kept as latency behind the latest
//! predecessor. So an unchanged replay gives back the recording, as far as clocks of host and device agree.

use std::collections::HashMap;

use types::Nanos;
use types::timeline::Timeline;

use super::blocking;
use super::device_order;
use super::host;
use super::latency::Latencies;
use super::node::{CallNode, Node, WorkNode};
use super::queues::Queues;
use super::refusal::Refusal;
use crate::attribution::Attribution;
use crate::scope::Scope;
use crate::time::{Host, Span};

/// All of it.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Calls, by thread and then in order.
    pub(crate) calls: Vec<CallNode>,
    /// One node for each row of [`Timeline::work`].
    pub(crate) work: Vec<WorkNode>,
    /// Every node behind all that it waits for.
    pub(crate) order: Vec<Node>,
    /// What is usual in this trace.
    pub(crate) latencies: Latencies,
    /// Number of queues.
    pub(crate) queues: usize,
    /// Per call that waits for all queues: the last work of each.
    pub(crate) waits_for_all: HashMap<u32, Vec<u32>>,
    /// From the first record to the last.
    pub(crate) span: Span,
    /// What the host did when.
    pub(crate) host: Host,
}

impl Graph {
    /// The graph of a timeline. `scopes` says which part of the run a moment on the host counts for: spans in order that
    /// do not overlap.
    pub(crate) fn new(
        timeline: &Timeline,
        attribution: &Attribution,
        scopes: &[(Span, Scope)],
    ) -> Result<Self, Refusal> {
        let launch = &attribution.launch;
        if let Some(refusal) = Refusal::of(timeline, launch) {
            return Err(refusal);
        }
        let rows: Vec<u32> = (0..timeline.work.len() as u32).collect();
        let host = Host::new(timeline, launch, &rows, attribution.lulls());
        let (mut calls, of_row) = host::calls(timeline, launch, &host);
        for call in &mut calls {
            let place = scopes.partition_point(|(span, _)| span.start <= call.span.start);
            let around = place.checked_sub(1).map(|place| scopes[place]);
            call.scope = around.filter(|(span, _)| span.contains(call.span.start)).map(|(_, scope)| scope);
        }
        let launched: Vec<Option<u32>> = launch.iter().map(|row| row.map(|row| of_row[row as usize])).collect();
        let queues = Queues::new(timeline);
        let latencies = Latencies::new(timeline, &queues, &calls, &launched);
        let work = device_order::work(timeline, &queues, &calls, &launched, &latencies);
        let waits_for_all = blocking::fill(timeline, &queues, &mut calls, &launched, &latencies);
        let span = span(&calls, &work);
        let order = order(timeline, &queues, &calls, &work);
        let mut graph =
            Self { calls, work, order, latencies, queues: timeline.queues.len(), waits_for_all, span, host };
        graph.anchor();
        Ok(graph)
    }

    /// The first call of a thread, and work that nothing is known before, stay at their distance from the start.
    fn anchor(&mut self) {
        for call in &mut self.calls {
            if call.before.is_none() && call.handed_over.is_none() {
                call.gap = call.span.start - self.span.start;
            }
        }
    }
}

fn span(calls: &[CallNode], work: &[WorkNode]) -> Span {
    let all = calls.iter().map(|call| call.span).chain(work.iter().map(|work| work.span));
    all.reduce(Span::hull).unwrap_or(Span::new(Nanos::ZERO, Nanos::ZERO))
}

/// Nodes by their recorded start, where work never stands before its launch nor before the work ahead in its queue: clocks
/// of host and device differ a little. A call is left when the next of its thread starts, and by then what it waited for has.
fn order(timeline: &Timeline, queues: &Queues, calls: &[CallNode], work: &[WorkNode]) -> Vec<Node> {
    let mut nodes: Vec<(Nanos, Node)> = Vec::with_capacity(calls.len() + work.len());
    nodes.extend(calls.iter().enumerate().map(|(place, call)| (call.span.start, Node::Call(place as u32))));
    for rows in &queues.rows {
        let mut reached = Nanos::new(i64::MIN);
        for row in rows {
            let called = work[*row as usize].launch.map(|launch| calls[launch.node.index()].span.start);
            reached = reached.max(timeline.work[*row as usize].start).max(called.unwrap_or(reached));
            nodes.push((reached, Node::Work(*row)));
        }
    }
    // Stable: at the same moment calls come before work, and work in the order of its queue.
    nodes.sort_by_key(|(moment, _)| *moment);
    nodes.into_iter().map(|(_, node)| node).collect()
}
