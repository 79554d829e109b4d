//! Device work: behind its launch, behind the work before it in its queue, and behind work of other queues.

use types::Nanos;
use types::timeline::Timeline;

use super::latency::{Latencies, SOON, UNEXPLAINED};
use super::node::{Behind, CallNode, NodePlace, WorkNode};
use super::queues::Queues;
use crate::attribution::Backlog;
use crate::time::Span;

/// One node for each row. `launched` has the call of each row.
pub(super) fn work(
    timeline: &Timeline,
    queues: &Queues,
    calls: &[CallNode],
    launched: &[Option<u32>],
    usual: &Latencies,
) -> Vec<WorkNode> {
    let node = |work: &types::timeline::DeviceWork| WorkNode {
        span: Span::new(work.start, work.end()),
        queue: work.queue.0,
        launch: None,
        stream: None,
        event: None,
    };
    let mut nodes: Vec<WorkNode> = timeline.work.iter().map(node).collect();
    let waits = event_waits(timeline, calls, launched);
    let backlog = Backlog::new(timeline, launched);
    for (queue, rows) in queues.rows.iter().enumerate() {
        let beside: Vec<usize> = Queues::beside(timeline, queue).collect();
        let mut before: Option<u32> = None;
        for row in rows.iter().copied() {
            let start = timeline.work[row as usize].start;
            let call = launched[row as usize];
            let called = call.map(|call| calls[call as usize].span.start);
            let ended = before.map(|before| timeline.work[before as usize].end());
            let is_late = called.is_none_or(|called| start - called > usual.launch.max(UNEXPLAINED))
                && ended.is_none_or(|ended| start - ended > SOON);
            let waited = waits.get(row as usize).copied().unwrap_or(false);
            let event =
                (is_late || waited).then(|| other(timeline, queues, &beside, calls, launched, &backlog, row)).flatten();
            // Work that is late by chance is near the end of some other; work that waited for an event is behind it anyhow.
            let event = event.filter(|event| waited || start - timeline.work[*event as usize].end() <= SOON);
            nodes[row as usize] = explained(timeline, usual, row, call.zip(called), before.zip(ended), event);
            // The end that later work waits for.
            let is_longest = |before: u32| timeline.work[before as usize].end() <= timeline.work[row as usize].end();
            if before.is_none_or(is_longest) {
                before = Some(row);
            }
        }
    }
    nodes
}

/// The lags of one piece of work: the usual ones where they fit, and one that explains its start.
fn explained(
    timeline: &Timeline,
    usual: &Latencies,
    row: u32,
    launch: Option<(u32, Nanos)>,
    stream: Option<(u32, Nanos)>,
    event: Option<u32>,
) -> WorkNode {
    let work = &timeline.work[row as usize];
    let event = event.map(|event| (event, timeline.work[event as usize].end()));
    let capped = |(node, from): (u32, Nanos), usual: Nanos| Behind {
        node: NodePlace::new(node),
        lag: (work.start - from).min(usual),
    };
    let mut node = WorkNode {
        span: Span::new(work.start, work.end()),
        queue: work.queue.0,
        launch: launch.map(|launch| capped(launch, usual.launch)),
        stream: stream.map(|stream| capped(stream, usual.follow)),
        event: event.map(|event| capped(event, usual.follow)),
    };
    // Whoever is the latest explains what is left.
    let from = [launch, stream, event].map(|one| one.map(|(_, from)| from));
    let latest = from.iter().flatten().max().copied();
    let edges = [&mut node.launch, &mut node.stream, &mut node.event];
    let explains = |edge: &&mut Option<Behind>, from: &Option<Nanos>| {
        edge.as_ref().zip(*from).is_some_and(|(behind, from)| from + behind.lag == work.start)
    };
    let is_explained = edges.iter().zip(&from).any(|(edge, from)| explains(edge, from));
    if !is_explained {
        for (edge, from) in edges.into_iter().zip(from) {
            if let (Some(edge), Some(from)) = (edge.as_mut(), from.filter(|from| Some(*from) == latest)) {
                edge.lag = work.start - from;
            }
        }
    }
    node
}

/// The work of other queues that had ended last when a row started, and had been launched before it. What was launched before the
/// recording comes before all that the recording launches, and of two such works the one that starts later may wait for the other.
fn other(
    timeline: &Timeline,
    queues: &Queues,
    beside: &[usize],
    calls: &[CallNode],
    launched: &[Option<u32>],
    backlog: &Backlog,
    row: u32,
) -> Option<u32> {
    let moment = |row: u32| launched[row as usize].map(|call| calls[call as usize].span.start);
    let (called, start) = (moment(row), timeline.work[row as usize].start);
    let is_earlier = |other: u32| match (moment(other), called) {
        (Some(moment), Some(called)) => moment <= called,
        (Some(_), None) => false,
        (None, Some(called)) => backlog.rows[other as usize] || timeline.work[other as usize].start <= called,
        (None, None) => true,
    };
    let ended = beside.iter().filter_map(|queue| queues.ended(timeline, *queue, start, is_earlier));
    ended.max_by_key(|other| timeline.work[*other as usize].end())
}

/// Per work: whether its thread called for a wait on an event since its launch before.
fn event_waits(timeline: &Timeline, calls: &[CallNode], launched: &[Option<u32>]) -> Vec<bool> {
    let is_wait: Vec<bool> = timeline.names.iter().map(|(_, name)| name.contains("StreamWaitEvent")).collect();
    if !is_wait.contains(&true) {
        return Vec::new();
    }
    let mut waited = vec![false; calls.len()];
    let mut open = false;
    for (place, call) in calls.iter().enumerate() {
        if call.before.is_none() {
            open = false;
        }
        open |= is_wait[timeline.calls[call.row as usize].name.index()];
        if call.launched > 0 {
            waited[place] = open;
            open = false;
        }
    }
    launched.iter().map(|call| call.is_some_and(|call| waited[call as usize])).collect()
}
