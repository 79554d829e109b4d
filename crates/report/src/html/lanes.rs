//! Lanes of the timeline that the page draws: streams of devices, when a device was idle and why, ranges, operators and calls of
//! threads.
//!
//! Where there are more events than a page should hold, neighbours too short to be seen apart are put together, and the page
//! says so.

use std::collections::{BTreeMap, HashMap};

use types::IdleCause;
use types::timeline::{NameId, OperatorKind, ThreadId, Timeline, WorkKind};
use types::view::IdleStretch;

use super::columns::{Event, Lane, Lanes};

/// The kind of lanes of what a device does when it does nothing.
const IDLE: &str = "idle";

/// Events up to which every one is kept.
pub const MOST_EVENTS: usize = 150_000;

/// Columns of a timeline for the page; absent where nothing happened.
pub fn lanes(timeline: &Timeline, stretches: &[IdleStretch], most: usize) -> Option<String> {
    let mut names = Names::default();
    let mut found = collect(timeline, &mut names);
    let first_cause = names.order.len() as u32;
    found.extend(idle(timeline, stretches, first_cause));
    let causes: Vec<String> = IdleCause::ALL.into_iter().map(cause).collect();
    // What the device did first, then ranges, then the host.
    found.sort_by_key(|lane| {
        ["kernels", "copies", "idle", "ranges", "operators", "calls"].iter().position(|kind| *kind == lane.kind)
    });
    let first = found.iter().flat_map(|lane| &lane.events).map(|event| event.start).min()?;
    let last = found.iter().flat_map(|lane| &lane.events).map(|event| event.start + event.length).max()?;
    for event in found.iter_mut().flat_map(|lane| &mut lane.events) {
        event.start -= first;
    }
    let events: usize = found.iter().filter(|lane| lane.kind != IDLE).map(|lane| lane.events.len()).sum();
    let mut resolution = (last - first) / 20_000;
    while found.iter().map(|lane| lane.events.len()).sum::<usize>() > most {
        for lane in &mut found {
            gather(&mut lane.events, resolution.max(1));
        }
        resolution = resolution.saturating_mul(2).max(1);
    }
    let lanes = Lanes {
        origin: first,
        span: last - first,
        names: names
            .order
            .iter()
            .map(|name| timeline.names.get(*name))
            .chain(causes.iter().map(String::as_str))
            .collect(),
        lanes: found,
        events,
        first_cause: Some(first_cause),
    };
    lanes.encoded()
}

/// Names in the order they are met.
#[derive(Default)]
struct Names {
    numbers: HashMap<NameId, u32>,
    order: Vec<NameId>,
}

impl Names {
    fn number(&mut self, name: NameId) -> u32 {
        *self.numbers.entry(name).or_insert_with(|| {
            self.order.push(name);
            self.order.len() as u32 - 1
        })
    }
}

/// Start, length and name of an event.
type Times = (i64, i64, u32);

fn collect(timeline: &Timeline, names: &mut Names) -> Vec<Lane> {
    let mut queues = vec![(Vec::new(), true); timeline.queues.len()];
    for work in &timeline.work {
        if let Some((events, only_copies)) = queues.get_mut(work.queue.0 as usize) {
            events.push((work.start.get(), work.duration.get(), names.number(work.name)));
            *only_copies &= !matches!(work.kind, WorkKind::Kernel | WorkKind::Graph);
        }
    }
    let mut lanes: Vec<Lane> = Vec::new();
    for (queue, (events, only_copies)) in timeline.queues.iter().zip(queues) {
        let stream = queue.stream.map_or("stream unknown".to_owned(), |stream| format!("stream {stream}"));
        let kind = if only_copies { "copies" } else { "kernels" };
        let name = format!("{}device {}, {stream}", of_rank(queue.rank), queue.device);
        lanes.push(Lane { name, kind, events: nested(events) });
    }
    let mut threads = vec![[const { Vec::new() }; 3]; timeline.threads.len()];
    let mut add = |thread: ThreadId, lane: usize, event: Times| {
        if let Some(lanes) = threads.get_mut(thread.0 as usize) {
            lanes[lane].push(event);
        }
    };
    for range in &timeline.ranges {
        if let Some(end) = range.end {
            add(range.thread, 0, (range.start.get(), (end - range.start).get(), names.number(range.name)));
        }
    }
    for one in timeline.operators.iter().filter(|one| one.kind == OperatorKind::Framework) {
        add(one.thread, 1, (one.start.get(), one.duration.get(), names.number(one.name)));
    }
    for call in &timeline.calls {
        add(call.thread, 2, (call.start.get(), call.duration.get(), names.number(call.name)));
    }
    let is_hip = timeline.calls.iter().any(|call| timeline.names.get(call.name).starts_with("hip"));
    let calls = if is_hip { "HIP calls" } else { "CUDA calls" };
    for (thread, events) in timeline.threads.iter().zip(threads) {
        let who = thread.thread.map_or("thread unknown".to_owned(), |thread| format!("thread {thread}"));
        let kinds = [("ranges", "ranges"), ("operators", "operators"), (calls, "calls")];
        for ((what, kind), events) in kinds.into_iter().zip(events) {
            let name = format!("{}{who}: {what}", of_rank(thread.rank));
            lanes.push(Lane { name, kind, events: nested(events) });
        }
    }
    lanes.retain(|lane| !lane.events.is_empty());
    lanes
}

/// Why nothing ran.
fn cause(cause: IdleCause) -> String {
    format!("idle: {}", crate::words::idle::cause(cause))
}

/// Devices while they were idle; names of causes start at a number.
fn idle(timeline: &Timeline, stretches: &[IdleStretch], first_cause: u32) -> Vec<Lane> {
    let mut devices: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    for stretch in stretches {
        let name = first_cause + stretch.cause as u32;
        let (start, length) = (stretch.start.get(), stretch.length.get());
        devices.entry(stretch.device).or_default().push(Event { start, length, name, depth: 0, count: 1 });
    }
    let lane = |(device, events)| {
        let rank = timeline.queues.iter().find(|queue| queue.device == device).and_then(|queue| queue.rank);
        Lane { name: format!("{}device {device}: idle", of_rank(rank)), kind: IDLE, events }
    };
    devices.into_iter().map(lane).collect()
}

fn of_rank(rank: Option<u32>) -> String {
    rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default()
}

/// Events by start, with how many of the others they lie in.
fn nested(mut events: Vec<Times>) -> Vec<Event> {
    events.sort_by_key(|(start, length, _)| (*start, std::cmp::Reverse(*length)));
    let mut open: Vec<i64> = Vec::new();
    let place = |(start, length, name): Times| {
        open.retain(|end| *end > start);
        let depth = open.len() as u32;
        open.push(start + length);
        Event { start, length: length.max(0), name, depth, count: 1 }
    };
    events.into_iter().map(place).collect()
}

/// Puts neighbours at one depth together that are short and near each other.
fn gather(events: &mut Vec<Event>, resolution: i64) {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len() / 2);
    let mut last: HashMap<u32, usize> = HashMap::new();
    for event in events.drain(..) {
        let before = last.get(&event.depth).copied();
        let near = before.filter(|index| {
            let before: &Event = &kept[*index];
            let gap = event.start - (before.start + before.length);
            event.length < resolution && gap < resolution && before.length + event.length + gap.max(0) < 4 * resolution
        });
        match near {
            Some(index) => {
                let before = &mut kept[index];
                before.length = before.length.max(event.start + event.length - before.start);
                before.count += event.count;
            }
            None => {
                last.insert(event.depth, kept.len());
                kept.push(event);
            }
        }
    }
    *events = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_and_gathering_keep_every_event() {
        let events = nested(vec![(0, 100, 0), (10, 20, 1), (40, 5, 2), (120, 1, 3)]);
        assert_eq!(events.iter().map(|event| event.depth).collect::<Vec<_>>(), [0, 1, 1, 0]);
        let mut many = nested((0..1000).map(|index| (index * 10, 5, 0)).collect());
        gather(&mut many, 50);
        assert!(many.len() < 100, "{}", many.len());
        assert_eq!(many.iter().map(|event| event.count).sum::<u32>(), 1000);
        assert!(many.windows(2).all(|pair| pair[0].start + pair[0].length <= pair[1].start));
    }
}
