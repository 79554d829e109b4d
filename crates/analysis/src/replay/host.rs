//! Threads of the host: their calls in order, what was done between them, and threads that wait for each other.

use types::timeline::Timeline;
use types::{IdleCause, Nanos};

use super::node::{CallNode, NodePlace};
use crate::time::{Host, Span, cause_of_call};

/// A thread that makes no call for this long while another makes some is taken to wait for it, as the main thread of PyTorch
/// does for the backward pass.
const HANDED_OVER: Nanos = Nanos::new(200_000);
/// A launch that loads what it launches takes this long at least.
const LOADS: Nanos = Nanos::new(1_000_000);

/// Calls by thread, in order, and for each row of [`Timeline::calls`] the node it is part of.
pub(super) fn calls(timeline: &Timeline, launch: &[Option<u32>], host: &Host) -> (Vec<CallNode>, Vec<u32>) {
    let mut rows: Vec<u32> = (0..timeline.calls.len() as u32).collect();
    rows.sort_by_key(|row| {
        let call = &timeline.calls[*row as usize];
        (call.thread, call.start, std::cmp::Reverse(call.end()))
    });
    let kinds: Vec<_> = timeline.names.iter().map(|(_, name)| cause_of_call(name)).collect();
    let mut nodes: Vec<CallNode> = Vec::with_capacity(rows.len());
    let mut of_row = vec![0u32; rows.len()];
    for row in rows {
        let call = &timeline.calls[row as usize];
        let same = nodes.last().filter(|last| timeline.calls[last.row as usize].thread == call.thread);
        if let Some(end) = same.map(|last| last.span.end)
            && call.start < end
        {
            // A call of the driver inside one of the runtime.
            let place = nodes.len() - 1;
            of_row[row as usize] = place as u32;
            nodes[place].span.end = end.max(call.end());
            nodes[place].own = nodes[place].span.length();
            continue;
        }
        let before = same.map(|last| (nodes.len() as u32 - 1, call.start - last.span.end));
        of_row[row as usize] = nodes.len() as u32;
        nodes.push(CallNode {
            row,
            span: Span::new(call.start, call.end()),
            before: before.map(|(place, _)| NodePlace::new(place)),
            handed_over: None,
            gap: before.map_or(Nanos::ZERO, |(_, gap)| gap),
            doing: IdleCause::Launching,
            doing_ns: Nanos::ZERO,
            kind: kinds[call.name.index()],
            first_use: false,
            own: call.duration,
            wait: None,
            launched: 0,
            scope: None,
        });
    }
    for row in launch.iter().flatten() {
        nodes[of_row[*row as usize] as usize].launched += 1;
    }
    hand_over(timeline, &mut nodes);
    name_gaps(host, &mut nodes);
    for node in nodes.iter_mut().filter(|node| node.launched > 0 && node.kind.is_none() && node.span.length() >= LOADS)
    {
        let loads = host.known_within(node.span, IdleCause::Compiling).total();
        node.first_use = 2 * loads.get() > node.span.length().get();
    }
    (nodes, of_row)
}

/// Threads that launch, and were quiet while another one was not.
fn hand_over(timeline: &Timeline, nodes: &mut [CallNode]) {
    let thread_of = |node: &CallNode| timeline.calls[node.row as usize].thread.0 as usize;
    let mut launching = vec![false; timeline.threads.len()];
    for node in nodes.iter().filter(|node| node.launched > 0) {
        launching[thread_of(node)] = true;
    }
    if launching.iter().filter(|launches| **launches).count() < 2 {
        return;
    }
    let mut places: Vec<u32> = (0..nodes.len() as u32).collect();
    places.retain(|place| launching[thread_of(&nodes[*place as usize])]);
    places.sort_by_key(|place| nodes[*place as usize].span.start);
    // The call that ended last so far, of each process.
    let mut last: Vec<(Option<u32>, u32)> = Vec::new();
    for place in places {
        let thread = thread_of(&nodes[place as usize]);
        let (process, span) = (timeline.threads[thread].process, nodes[place as usize].span);
        let known = last.iter().position(|(of, _)| *of == process);
        if let Some((_, other)) = known.map(|known| last[known]) {
            let (other_end, gap) = (nodes[other as usize].span.end, nodes[place as usize].gap);
            let is_other = thread_of(&nodes[other as usize]) != thread;
            let is_quiet = nodes[place as usize].before.is_none() || gap >= HANDED_OVER;
            let began = nodes[place as usize].before.map(|before| nodes[before.index()].span.end);
            if is_other && is_quiet && other_end <= span.start && began.is_none_or(|began| other_end > began) {
                nodes[place as usize].handed_over = Some(NodePlace::new(other));
                nodes[place as usize].gap = span.start - other_end;
            }
        }
        match known {
            Some(known) if nodes[last[known].1 as usize].span.end <= span.end => last[known].1 = place,
            Some(_) => {}
            None => last.push((process, place)),
        }
    }
}

/// What the host did between calls.
fn name_gaps(host: &Host, nodes: &mut [CallNode]) {
    for node in nodes.iter_mut().filter(|node| node.gap > Nanos::ZERO) {
        (node.doing, node.doing_ns) = host.doing(Span::new(node.span.start - node.gap, node.span.start));
    }
}
