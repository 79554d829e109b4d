//! The wall time of stages: a stage ends when its device work ends, not when the host has launched it.
//!
//! One starts where its host part starts, or where the one before it ends on the device: work of an earlier run that nobody
//! waited for still occupies the device, and that time is its own. Engines launch a step while the one before still runs;
//! where that one is not in the trace, the wait behind it shows as a gap before work that was launched long ago.

use std::collections::BTreeMap;

use types::Nanos;
use types::timeline::{ThreadId, Timeline};

use super::stage::{StageInstance, StageOrigin};
use crate::time::{Span, Spans};

/// Work that starts later than this after its launch waits behind something.
const LONG: Nanos = Nanos::new(1_000_000);

/// Fills in the wall of all instances, which are in order of their start, parents before children.
pub(super) fn fill(timeline: &Timeline, launch: &[Option<u32>], stages: &mut [StageInstance]) {
    let behind = if stages.iter().any(|stage| stage.origin == StageOrigin::Engine) {
        behind_others(timeline, launch)
    } else {
        Spans::default()
    };
    let mut until: BTreeMap<(ThreadId, Option<u32>), Nanos> = BTreeMap::new();
    for place in 0..stages.len() {
        let StageInstance { parent, host, device, thread, .. } = stages[place];
        let key = (thread, parent);
        let begin = until.get(&key).map_or(host.start, |until| host.start.max(*until));
        let end = device.map_or(host.end, |device| device.end.max(host.end)).max(begin);
        let mut wall = Span::new(begin, end);
        if let Some(parent) = parent.map(|parent| stages[parent as usize].wall) {
            wall = Span::new(wall.start.clamp(parent.start, parent.end), wall.end.clamp(parent.start, parent.end));
        }
        until.insert(key, wall.end);
        stages[place].wall = wall;
        if stages[place].origin == StageOrigin::Engine {
            stages[place].behind = behind.within(wall);
        }
    }
}

/// When every device had nothing to do although its next work had been launched, for a millisecond and longer.
pub(crate) fn behind_others(timeline: &Timeline, launch: &[Option<u32>]) -> Spans {
    let mut devices: BTreeMap<u32, Vec<(Span, Option<u32>)>> = BTreeMap::new();
    for (work, call) in timeline.work.iter().zip(launch) {
        let device = timeline.queues[work.queue.0 as usize].device;
        devices.entry(device).or_default().push((Span::new(work.start, work.end()), *call));
    }
    let of_device = |mut rows: Vec<(Span, Option<u32>)>| {
        rows.sort();
        let (mut waits, mut reached) = (Vec::new(), Nanos::new(i64::MIN));
        for (span, call) in rows {
            let launched = call.map(|call| timeline.calls[call as usize].end());
            waits.extend(launched.map(|launched| Span::new(launched.max(reached), span.start)));
            reached = reached.max(span.end);
        }
        Spans::union(waits.into_iter().filter(|wait| wait.length() >= LONG))
    };
    devices.into_values().map(of_device).reduce(|one, other| one.intersect(&other)).unwrap_or_default()
}
