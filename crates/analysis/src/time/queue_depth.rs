//! Queue depth: work that the host has called for and the device has not started.

use std::collections::BTreeSet;

use types::Nanos;
use types::timeline::Timeline;

use super::span::Span;
use crate::statistics::share;

/// How much work lay waiting for a device in a window. A device whose queue is empty waits for its host.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueDepth {
    /// Mean over time.
    pub mean: f64,
    /// Most at one moment.
    pub max: u64,
    /// Share of time in which nothing waited.
    pub empty_share: f64,
}

/// Ordinals of the devices that have work, in order.
pub fn devices(timeline: &Timeline) -> Vec<u32> {
    let ordinals: BTreeSet<u32> =
        timeline.work.iter().map(|work| timeline.queues[work.queue.0 as usize].device).collect();
    ordinals.into_iter().collect()
}

/// Queue depth of a device in a window; `launch` has the call of each row of [`Timeline::work`]. Absent for an empty window and where no launch is known.
pub fn queue_depth(timeline: &Timeline, launch: &[Option<u32>], device: u32, window: Span) -> Option<QueueDepth> {
    let (mut called_for, mut started) = (Vec::new(), Vec::new());
    for (work, call) in timeline.work.iter().zip(launch) {
        let Some(call) = *call else { continue };
        if timeline.queues[work.queue.0 as usize].device != device {
            continue;
        }
        let called = timeline.calls[call as usize].start;
        // Clocks of host and device differ a little: work never starts before it is called for.
        let waits = Span::new(called, work.start.max(called)).intersect(window);
        if !waits.is_empty() {
            called_for.push(waits.start);
            started.push(waits.end);
        }
    }
    if called_for.is_empty() {
        return None;
    }
    // Each is in order but for a few rows, which a stable sort makes use of.
    called_for.sort();
    started.sort();
    let (mut depth, mut from, mut area, mut empty, mut max) = (0i64, window.start, 0.0, Nanos::ZERO, 0i64);
    let (mut called_for, mut started) = (called_for.into_iter().peekable(), started.into_iter().peekable());
    loop {
        // At one moment work starts before other work is called for.
        let next = called_for.peek().copied();
        let (moment, change) = match started.next_if(|start| next.is_none_or(|next| *start <= next)) {
            Some(start) => (start, -1),
            None => called_for.next().map_or((window.end, 0), |called| (called, 1)),
        };
        let time = moment - from;
        area += depth as f64 * time.get() as f64;
        if depth == 0 {
            empty += time;
        }
        depth += change;
        max = max.max(depth);
        from = moment;
        if change == 0 {
            break;
        }
    }
    let length = window.length().get() as f64;
    let (mean, empty_share) = (share(area, length)?, share(empty.get() as f64, length)?);
    Some(QueueDepth { mean, max: max.unsigned_abs(), empty_share })
}
