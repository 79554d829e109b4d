//! Lanes of the timeline that the page draws: stages and steps, streams of devices, when a device was idle and why, ranges,
//! operators and calls of threads.
//!
//! Where there are more events than a page should hold, neighbours too short to be seen apart are put together, and the page
//! says so.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{OperatorKind, ThreadId, Timeline, WorkKind};
use types::view::{NamedSpan, TimelineView};
use types::{IdleCause, Stage};

use super::columns::{Event, Lane, Lanes};
use super::details::Details;
use super::gather::{fewer, nested};
use super::names::Names;
use super::palette::Colour;
use crate::export::native_lanes;

/// Kinds of lanes, in the order in which they are shown: what ran, what the device did, then the host.
const KINDS: [&str; 8] = ["stages", "steps", "kernels", "copies", "idle", "ranges", "operators", "calls"];
const IDLE: &str = "idle";

/// Events up to which every one is kept.
pub const MOST_EVENTS: usize = 150_000;

/// Columns of a timeline for the page; absent where nothing happened. `reference` is the name of the run.
pub fn lanes(timeline: &Timeline, view: &TimelineView<'_>, most: usize, reference: &str) -> Option<String> {
    let mut names = Names::default();
    let mut details = Details::new(timeline);
    // Our own engine writes its stages down itself.
    let is_ours = native_lanes(timeline).is_some();
    let mut found = if is_ours { Vec::new() } else { marked(view, &mut names) };
    found.extend(device_lanes(timeline, view, &mut names, &mut details));
    found.extend(idle(timeline, view, &mut names));
    found.extend(host_lanes(timeline, &mut names));
    found.retain(|lane| !lane.events.is_empty());
    found.sort_by_key(|lane| KINDS.iter().position(|kind| *kind == lane.kind));
    let first = found.iter().flat_map(|lane| &lane.events).map(|event| event.start).min()?;
    let last = found.iter().flat_map(|lane| &lane.events).map(|event| event.start + event.length).max()?;
    for event in found.iter_mut().flat_map(|lane| &mut lane.events) {
        event.start -= first;
    }
    let recorded = |lane: &&Lane| ![IDLE, "stages", "steps"].contains(&lane.kind);
    let events: usize = found.iter().filter(recorded).map(|lane| lane.events.len()).sum();
    let is_much = found.iter().map(|lane| lane.events.len()).sum::<usize>() > most;
    let counts = if is_much { counts(&found, names.len()) } else { Vec::new() };
    let ranking = ranking(&found);
    fewer(&mut found, last - first, most);
    link(&mut found, view, timeline.calls.len());
    let (names, colours, classes) = names.finish();
    let lanes = Lanes {
        origin: first,
        span: last - first,
        names: names.iter().map(String::as_str).collect(),
        colours,
        classes,
        lanes: found,
        events,
        counts,
        texts: details.texts,
        details: details.details,
        ranking,
        reference,
    };
    lanes.encoded()
}

/// Stages and steps.
fn marked(view: &TimelineView<'_>, names: &mut Names) -> Vec<Lane> {
    let mut lane = |name: &str, kind, spans: &[NamedSpan]| {
        let event = |span: &NamedSpan| {
            let colour = Stage::from_range(None, &span.name).map_or(Colour::Kind("steps"), Colour::Stage);
            Event { name: names.text(&span.name, &colour), ..event(span.start.get(), span.length.get()) }
        };
        Lane { name: name.to_owned(), kind, events: nested(spans.iter().map(event).collect()), ..Lane::default() }
    };
    vec![lane("stages", "stages", &view.stages), lane("steps on the device", "steps", &view.steps)]
}

fn event(start: i64, length: i64) -> Event {
    Event { start, length, count: 1, busy: length, row: u32::MAX, ..Event::default() }
}

/// Streams of devices.
fn device_lanes(
    timeline: &Timeline,
    view: &TimelineView<'_>,
    names: &mut Names,
    details: &mut Details<'_>,
) -> Vec<Lane> {
    let mut queues = vec![(Vec::new(), true); timeline.queues.len()];
    for (row, work) in timeline.work.iter().enumerate() {
        let Some(place) = view.work.get(row) else { break };
        if let Some((events, only_copies)) = queues.get_mut(work.queue.0 as usize) {
            events.push(Event {
                name: names.of(timeline, work.name, &Colour::Family(place.family)),
                detail: details.of(work, &place),
                row: row as u32,
                ..event(work.start.get(), work.duration.get())
            });
            *only_copies &= !matches!(work.kind, WorkKind::Kernel | WorkKind::Graph);
        }
    }
    let lane = |(queue, (events, only_copies)): (&types::timeline::DeviceQueue, (Vec<Event>, bool))| {
        let stream = queue.stream.map_or("stream unknown".to_owned(), |stream| format!("stream {stream}"));
        Lane {
            name: format!("{}device {}, {stream}", of_rank(queue.rank), queue.device),
            kind: if only_copies { "copies" } else { "kernels" },
            device: Some(queue.device),
            events: nested(events),
            link: Vec::new(),
        }
    };
    timeline.queues.iter().zip(queues).map(lane).collect()
}

/// Ranges, operators and calls of each thread.
fn host_lanes(timeline: &Timeline, names: &mut Names) -> Vec<Lane> {
    let mut threads = vec![[const { Vec::new() }; 3]; timeline.threads.len()];
    let mut add = |thread: ThreadId, lane: usize, event: Event| {
        if let Some(lanes) = threads.get_mut(thread.0 as usize) {
            lanes[lane].push(event);
        }
    };
    for range in &timeline.ranges {
        if let Some(end) = range.end {
            let stage = Stage::from_range(None, timeline.name(range.name));
            let name = names.of(timeline, range.name, &stage.map_or(Colour::Kind("ranges"), Colour::Stage));
            add(range.thread, 0, Event { name, ..event(range.start.get(), (end - range.start).get()) });
        }
    }
    for one in timeline.operators.iter().filter(|one| one.kind == OperatorKind::Framework) {
        let name = names.of(timeline, one.name, &Colour::Kind("operators"));
        add(one.thread, 1, Event { name, ..event(one.start.get(), one.duration.get()) });
    }
    for (row, call) in timeline.calls.iter().enumerate() {
        let name = names.of(timeline, call.name, &Colour::Kind("calls"));
        add(call.thread, 2, Event { name, row: row as u32, ..event(call.start.get(), call.duration.get()) });
    }
    let is_hip = timeline.calls.iter().any(|call| timeline.name(call.name).starts_with("hip"));
    let calls = if is_hip { "HIP calls" } else { "CUDA calls" };
    let mut lanes = Vec::new();
    let own = native_lanes(timeline);
    for ((place, thread), events) in timeline.threads.iter().enumerate().zip(threads) {
        let who = thread.thread.map_or("thread unknown".to_owned(), thread_name);
        let own = own.as_ref().map(|names| names[place]);
        for ((what, kind), events) in
            [("ranges", "ranges"), ("operators", "operators"), (calls, "calls")].into_iter().zip(events)
        {
            let name = own.map_or_else(|| format!("{}{who}: {what}", of_rank(thread.rank)), str::to_owned);
            lanes.push(Lane { name, kind, events: nested(events), ..Lane::default() });
        }
    }
    lanes
}

/// A thread by its number. What no system gives a thread is an address, of which the end tells threads apart.
fn thread_name(number: u64) -> String {
    if number <= u64::from(u32::MAX) {
        format!("thread {number}")
    } else {
        format!("thread …{:06x}", number & 0xff_ffff)
    }
}

/// Devices while they were idle.
fn idle(timeline: &Timeline, view: &TimelineView<'_>, names: &mut Names) -> Vec<Lane> {
    let mut devices: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    for stretch in &view.idle {
        let name = names.text(&cause(stretch.cause), &Colour::Idle(stretch.cause));
        let found = Event { name, ..event(stretch.start.get(), stretch.length.get()) };
        devices.entry(stretch.device).or_default().push(found);
    }
    let lane = |(device, mut events): (u32, Vec<Event>)| {
        events.shrink_to_fit();
        let rank = timeline.queues.iter().find(|queue| queue.device == device).and_then(|queue| queue.rank);
        Lane {
            name: format!("{}device {device}: idle", of_rank(rank)),
            kind: IDLE,
            device: Some(device),
            events,
            link: Vec::new(),
        }
    };
    devices.into_iter().map(lane).collect()
}

/// Why nothing ran.
fn cause(cause: IdleCause) -> String {
    format!("idle: {}", crate::words::idle::cause(cause))
}

fn of_rank(rank: Option<u32>) -> String {
    rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default()
}

/// Events of each name.
fn counts(lanes: &[Lane], names: usize) -> Vec<u32> {
    let mut counts = vec![0; names];
    for event in lanes.iter().flat_map(|lane| &lane.events) {
        counts[event.name as usize] += 1;
    }
    counts
}

/// Names of device work with its time and calls, longest first.
fn ranking(lanes: &[Lane]) -> Vec<(u32, i64, u64)> {
    let mut sums: HashMap<u32, (i64, u64)> = HashMap::new();
    for event in lanes.iter().filter(|lane| ["kernels", "copies"].contains(&lane.kind)).flat_map(|lane| &lane.events) {
        let sum = sums.entry(event.name).or_default();
        *sum = (sum.0 + event.length, sum.1 + 1);
    }
    let mut ranking: Vec<_> = sums.into_iter().map(|(name, (time, calls))| (name, time, calls)).collect();
    ranking.sort_by_key(|(name, time, _)| (std::cmp::Reverse(*time), *name));
    ranking
}

/// Ties device work to the calls that are left after events were put together.
fn link(lanes: &mut [Lane], view: &TimelineView<'_>, calls: usize) {
    let mut numbers = vec![0u32; calls];
    let mut number = 0;
    for lane in &*lanes {
        for event in &lane.events {
            number += 1;
            if lane.kind == "calls" && event.count == 1 {
                numbers[event.row as usize] = number;
            }
        }
    }
    for lane in lanes.iter_mut().filter(|lane| ["kernels", "copies"].contains(&lane.kind)) {
        let launch = |event: &Event| {
            let place = view.work.get(event.row as usize).filter(|_| event.count == 1)?;
            numbers.get(place.launch? as usize).map(|number| i64::from(*number))
        };
        let found: Vec<i64> = lane.events.iter().map(|event| launch(event).unwrap_or_default()).collect();
        if found.iter().any(|number| *number > 0) {
            lane.link = found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_whose_number_is_an_address_has_a_short_name() {
        assert_eq!(thread_name(4711), "thread 4711");
        assert_eq!(thread_name(18_446_744_073_709_551_000), "thread …fffd98");
    }
}
