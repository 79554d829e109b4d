//! The wall time of stages: a stage ends when its device work ends, not when the host has launched it.
//!
//! One starts where its host part starts, or where the one before it ends on the device: work of an earlier run that nobody
//! waited for still occupies the device, and that time is its own, as is that of an engine's step in no stage and of work
//! launched before the recording. Engines launch a step while the one before still runs; where that one is not in the trace, the
//! wait behind it shows as a gap before work that was launched long ago.

use std::collections::BTreeMap;

use types::Nanos;
use types::timeline::{ThreadId, Timeline};

use super::backlog::{Backlog, LONG};
use super::engine::EngineStep;
use super::stage::{StageInstance, StageOrigin};
use crate::time::{Span, Spans};

/// Fills in the wall of all instances, which are in order of their start, parents before children.
pub(super) fn fill(timeline: &Timeline, launch: &[Option<u32>], steps: &[EngineStep], stages: &mut [StageInstance]) {
    let (behind, mixed) = if stages.iter().any(|stage| stage.origin == StageOrigin::Engine) {
        (behind_others(timeline, launch), without_stage(timeline, launch, steps))
    } else {
        Default::default()
    };
    let backlog = Backlog::new(timeline, launch);
    let mut until: BTreeMap<(ThreadId, Option<u32>), Nanos> = BTreeMap::new();
    for place in 0..stages.len() {
        let StageInstance { parent, host, device, thread, .. } = stages[place];
        let key = (thread, parent);
        let begin = until.get(&key).map_or(host.start, |until| host.start.max(*until));
        let lane = mixed.get(&thread).map_or(&[][..], Vec::as_slice);
        let before = lane[..lane.partition_point(|(step, _)| step.start < host.start)].last();
        let begin = before.map_or(begin, |(_, end)| begin.max(*end));
        let begin = backlog.until(device).map_or(begin, |end| begin.max(end));
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

/// Steps in no stage by thread, such as those with prompts and decoding sequences, each with the end of its work on the device.
fn without_stage(
    timeline: &Timeline,
    launch: &[Option<u32>],
    steps: &[EngineStep],
) -> BTreeMap<ThreadId, Vec<(Span, Nanos)>> {
    let mut lanes: BTreeMap<ThreadId, Vec<(Span, Nanos)>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.stage.is_none()) {
        lanes.entry(step.thread).or_default().push((step.host, step.host.end));
    }
    for (work, call) in timeline.work.iter().zip(launch) {
        let Some(call) = call.map(|call| &timeline.calls[call as usize]) else { continue };
        let Some(lane) = lanes.get_mut(&call.thread) else { continue };
        let before = lane.partition_point(|(host, _)| host.start <= call.start);
        if let Some((_, end)) = lane[..before].last_mut().filter(|(host, _)| host.contains(call.start)) {
            *end = work.end().max(*end);
        }
    }
    lanes
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
