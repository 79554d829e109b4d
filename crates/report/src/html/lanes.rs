//! Lanes of the timeline that the page draws: stages and steps, streams of devices, when a device was idle and why, ranges,
//! operators and calls of threads.
//!
//! Where there are more events than a page should hold, neighbours too short to be seen apart are put together, and the page
//! says so.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{OperatorKind, ThreadId, Timeline, WorkKind};
use types::view::{NamedSpan, RankClock, TimelineView};
use types::{ClockBasis, IdleCause, Stage};

use super::columns::{Event, Lane, Lanes, json};
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

/// Ranks up to which their host threads are drawn too.
const RANKS_WITH_HOSTS: usize = 4;

/// What the page of a run draws of its timelines.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Columns of the timeline.
    pub(super) lanes: String,
    /// Columns of the flame graph of what launched the device's work, and of the same inverted.
    pub(super) stacks: Option<[String; 2]>,
}

/// Every event of the timelines of a run, for pages that draw them.
#[derive(Debug)]
pub struct Drawn {
    lanes: Lanes,
    stacks: Option<[String; 2]>,
}

impl Drawn {
    /// Of the timelines of a run, one for each rank, on one clock; absent where nothing happened. `reference` is the name of the run.
    pub fn new(
        ranks: &[(&Timeline, &TimelineView<'_>)],
        clock: &RankClock,
        most: usize,
        reference: &str,
    ) -> Option<Self> {
        // One after the other: both take room for every event.
        let stacks = super::flame::stacks(ranks);
        Some(Self { lanes: lanes(ranks, clock, most, reference)?, stacks })
    }

    /// What a page holds of it: at most so many events.
    pub fn recorded(mut self, most: usize) -> Option<Recorded> {
        fewer(&mut self.lanes.lanes, self.lanes.span, most);
        Some(Recorded { lanes: self.lanes.encoded()?, stacks: self.stacks })
    }

    /// The same, and it is kept.
    pub fn overview(&self, most: usize) -> Option<Recorded> {
        let mut lanes = self.lanes.clone();
        fewer(&mut lanes.lanes, lanes.span, most);
        Some(Recorded { lanes: lanes.encoded()?, stacks: self.stacks.clone() })
    }

    /// The events of a time, since the first, as JSON: at most as many as a page holds.
    pub fn events(&self, from: i64, to: i64) -> String {
        let inside = |event: &&Event| event.start <= to && event.start + event.length >= from;
        let cut = |lane: &Lane| Lane { events: lane.events.iter().filter(inside).copied().collect(), ..lane.empty() };
        let mut lanes: Vec<Lane> = self.lanes.lanes.iter().map(cut).collect();
        fewer(&mut lanes, to.saturating_sub(from).max(1), MOST_EVENTS);
        json(&lanes)
    }
}

/// Every lane, with every event.
fn lanes(ranks: &[(&Timeline, &TimelineView<'_>)], clock: &RankClock, most: usize, reference: &str) -> Option<Lanes> {
    let (mut names, mut details, mut found) = (Names::default(), Details::default(), Vec::new());
    for (source, (timeline, view)) in ranks.iter().enumerate() {
        let shift = clock.shifts.get(source).copied().unwrap_or_default().get();
        names.next_timeline();
        details.next_timeline();
        let mut of_rank = of_timeline(timeline, view, &mut names, &mut details, ranks.len() <= RANKS_WITH_HOSTS);
        for lane in &mut of_rank {
            lane.source = source;
            lane.events.iter_mut().for_each(|event| event.start += shift);
        }
        found.extend(of_rank);
    }
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
    let (names, colours, classes) = names.finish();
    Some(Lanes {
        origin: first,
        span: last - first,
        names,
        colours,
        classes,
        lanes: found,
        events,
        counts,
        texts: details.texts,
        details: details.details,
        ranking,
        reference: reference.to_owned(),
        note: note(ranks.len(), clock),
    })
}

/// On which clock ranks are drawn, and what is not.
fn note(ranks: usize, clock: &RankClock) -> String {
    if ranks < 2 {
        return String::new();
    }
    let basis = match (clock.basis, clock.within) {
        (ClockBasis::Collectives, Some(within)) => {
            format!("Ranks are on one clock, aligned on collective end times, to {within}.")
        }
        (ClockBasis::Collectives, None) => "Ranks are on one clock, aligned on collective end times.".to_owned(),
        (ClockBasis::WallClock, _) => {
            "Ranks are on the wall clocks of their hosts, whose error is unknown: do not compare when they arrive."
                .to_owned()
        }
        (ClockBasis::None, _) => {
            "The ranks share no clock: each starts with the first. Do not compare when they arrive.".to_owned()
        }
    };
    let hosts =
        if ranks > RANKS_WITH_HOSTS { " Host threads are not drawn; import a rank alone to see them." } else { "" };
    format!("{basis}{hosts}")
}

/// The lanes of one timeline, in the order in which they are shown.
fn of_timeline(
    timeline: &Timeline,
    view: &TimelineView<'_>,
    names: &mut Names,
    details: &mut Details,
    with_host: bool,
) -> Vec<Lane> {
    // Our own engine writes its stages down itself.
    let is_ours = native_lanes(timeline).is_some();
    let rank = timeline.queues.iter().find_map(|queue| queue.rank);
    let mut found = if is_ours { Vec::new() } else { marked(view, rank, names) };
    found.extend(device_lanes(timeline, view, names, details));
    found.extend(idle(timeline, view, names));
    if with_host {
        found.extend(host_lanes(timeline, names));
    }
    found.retain(|lane| !lane.events.is_empty());
    found.sort_by_key(|lane| KINDS.iter().position(|kind| *kind == lane.kind));
    found
}

/// Stages and steps.
fn marked(view: &TimelineView<'_>, rank: Option<u32>, names: &mut Names) -> Vec<Lane> {
    let mut lane = |name: &str, kind, spans: &[NamedSpan]| {
        let event = |span: &NamedSpan| {
            let colour = Stage::from_range(None, &span.name).map_or(Colour::Kind("steps"), Colour::Stage);
            Event { name: names.text(&span.name, &colour), ..event(span.start.get(), span.length.get()) }
        };
        let name = format!("{}{name}", of_rank(rank));
        Lane { name, kind, events: nested(spans.iter().map(event).collect()), ..Lane::default() }
    };
    vec![lane("stages", "stages", &view.stages), lane("steps on the device", "steps", &view.steps)]
}

fn event(start: i64, length: i64) -> Event {
    Event { start, length, count: 1, busy: length, row: u32::MAX, ..Event::default() }
}

/// Streams of devices.
fn device_lanes(timeline: &Timeline, view: &TimelineView<'_>, names: &mut Names, details: &mut Details) -> Vec<Lane> {
    let mut queues = vec![(Vec::new(), true); timeline.queues.len()];
    for (row, work) in timeline.work.iter().enumerate() {
        let Some(place) = view.work.get(row) else { break };
        if let Some((events, only_copies)) = queues.get_mut(work.queue.0 as usize) {
            events.push(Event {
                name: names.of(timeline, work.name, &Colour::Family(place.family)),
                detail: details.of(timeline, work, &place, view.modules.and_then(|modules| modules.of(row))),
                row: place.launch.unwrap_or(u32::MAX),
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
            ..Lane::default()
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
    let mut known = BTreeMap::new();
    for stretch in &view.idle {
        let text = || names.text(&cause(stretch.cause), &Colour::Idle(stretch.cause));
        let name = *known.entry(stretch.cause).or_insert_with(text);
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
            ..Lane::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_whose_number_is_an_address_has_a_short_name() {
        assert_eq!(thread_name(4711), "thread 4711");
        assert_eq!(thread_name(18_446_744_073_709_551_000), "thread …fffd98");
    }
}
