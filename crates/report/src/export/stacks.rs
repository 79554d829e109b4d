//! A timeline as stacks over time, which is how sampling profilers see a program.
//!
//! On a host thread the stack is the ranges, operators and calls that are open; ranges that are started and ended by handle may
//! overlap others and are left out. On a stream it is the kernel beneath the stack that launched it, so that device time is
//! summed by the code that asked for it. What overlaps on one stream is cut to the end of what came before.

use std::collections::HashMap;
use std::num::NonZeroU64;

use types::Nanos;
use types::timeline::{NameId, RangeStyle, Timeline};

/// A frame and the frames around it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    pub(crate) outer: Option<u32>,
    pub(crate) name: NameId,
}

/// A time in which one stack stood.
pub(crate) struct Span {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) stack: u32,
}

/// A thread or a stream, with its spans in order of time.
pub(crate) struct Track {
    pub(crate) name: String,
    pub(crate) is_device: bool,
    pub(crate) spans: Vec<Span>,
}

/// Every track, and the stacks that they share.
#[derive(Default)]
pub(crate) struct Stacks {
    pub(crate) table: Vec<Stack>,
    pub(crate) tracks: Vec<Track>,
    numbers: HashMap<Stack, u32>,
}

/// An event of a thread, with the number that ties it to what it launched.
struct HostEvent {
    start: Nanos,
    end: Nanos,
    name: NameId,
    launch: Option<NonZeroU64>,
}

/// Stack of the code that launched something, by process and correlation.
type Launches = HashMap<(Option<u32>, u64), Option<u32>>;

impl Stacks {
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let mut stacks = Self::default();
        let mut launches = Launches::new();
        // The host of a device's work is in the stacks of that.
        let with_host = timeline.work.is_empty();
        let mut host = Vec::new();
        for (thread, events) in timeline.threads.iter().zip(host_events(timeline)) {
            let rank = thread.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
            let number = thread.thread.map_or("thread unknown".to_owned(), |number| format!("thread {number}"));
            host.push(Track {
                name: format!("{rank}{number}"),
                is_device: false,
                spans: stacks.host_spans(events, thread.process, &mut launches, with_host),
            });
        }
        stacks.tracks = stacks.device_tracks(timeline, &launches);
        stacks.tracks.extend(host);
        stacks.tracks.retain(|track| !track.spans.is_empty());
        stacks
    }

    /// The frames of a stack, outermost first.
    pub(crate) fn frames(&self, stack: u32) -> Vec<NameId> {
        let mut names = Vec::new();
        let mut next = Some(stack);
        while let Some(one) = next.and_then(|number| self.table.get(number as usize)) {
            names.push(one.name);
            next = one.outer;
        }
        names.reverse();
        names
    }

    fn number(&mut self, stack: Stack) -> u32 {
        let table = &mut self.table;
        *self.numbers.entry(stack).or_insert_with(|| {
            table.push(stack);
            table.len() as u32 - 1
        })
    }

    fn host_spans(
        &mut self,
        events: Vec<HostEvent>,
        process: Option<u32>,
        launches: &mut Launches,
        are_kept: bool,
    ) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut open: Vec<(Nanos, u32)> = Vec::new();
        let mut at = Nanos::new(i64::MIN / 2);
        let mut stood = |at: &mut Nanos, until: Nanos, stack: u32| {
            if until > *at {
                spans.extend(are_kept.then_some(Span { start: *at, end: until, stack }));
                *at = until;
            }
        };
        for event in events {
            while let Some((end, stack)) = open.last().copied().filter(|(end, _)| *end <= event.start) {
                stood(&mut at, end, stack);
                open.pop();
            }
            match open.last() {
                Some((_, stack)) => stood(&mut at, event.start, *stack),
                None => at = at.max(event.start),
            }
            let outer = open.last().map(|(_, stack)| *stack);
            if let Some(number) = event.launch {
                launches.insert((process, number.get()), outer);
            }
            let end = open.last().map_or(event.end, |(end, _)| event.end.min(*end));
            let stack = self.number(Stack { outer, name: event.name });
            open.push((end, stack));
        }
        while let Some((end, stack)) = open.pop() {
            stood(&mut at, end, stack);
        }
        spans
    }

    fn device_tracks(&mut self, timeline: &Timeline, launches: &Launches) -> Vec<Track> {
        let mut rows: Vec<Vec<_>> = timeline.queues.iter().map(|_| Vec::new()).collect();
        for work in &timeline.work {
            if let Some(row) = rows.get_mut(work.queue.0 as usize) {
                row.push(work);
            }
        }
        let mut tracks = Vec::new();
        for (queue, mut works) in timeline.queues.iter().zip(rows) {
            works.sort_by_key(|work| work.start);
            let mut spans = Vec::new();
            let mut at = Nanos::new(i64::MIN / 2);
            for work in works {
                let key = work.correlation.map(|number| (queue.process, number.0.get()));
                let outer = key.and_then(|key| launches.get(&key).copied().flatten());
                let stack = self.number(Stack { outer, name: work.name });
                let start = work.start.max(at);
                if work.end() > start {
                    spans.push(Span { start, end: work.end(), stack });
                    at = work.end();
                }
            }
            let rank = queue.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
            let stream = queue.stream.map_or("stream unknown".to_owned(), |stream| format!("stream {stream}"));
            tracks.push(Track { name: format!("{rank}device {}, {stream}", queue.device), is_device: true, spans });
        }
        tracks
    }
}

/// Events of each thread by start, those around others first.
fn host_events(timeline: &Timeline) -> Vec<Vec<HostEvent>> {
    // There may be millions: no room to grow.
    let mut counts = vec![0; timeline.threads.len()];
    let of_ranges = timeline.ranges.iter().map(|range| range.thread);
    let of_operators = timeline.operators.iter().map(|operator| operator.thread);
    for thread in of_ranges.chain(of_operators).chain(timeline.calls.iter().map(|call| call.thread)) {
        counts.get_mut(thread.0 as usize).into_iter().for_each(|count| *count += 1);
    }
    let mut threads: Vec<Vec<HostEvent>> = counts.into_iter().map(Vec::with_capacity).collect();
    let mut add = |thread: types::timeline::ThreadId, event: HostEvent| {
        if let Some(events) = threads.get_mut(thread.0 as usize) {
            events.push(event);
        }
    };
    for range in timeline.ranges.iter().filter(|range| range.style == RangeStyle::PushPop) {
        if let Some(end) = range.end {
            add(range.thread, HostEvent { start: range.start, end, name: range.name, launch: None });
        }
    }
    for one in &timeline.operators {
        let (start, end) = (one.start, one.start + one.duration);
        add(one.thread, HostEvent { start, end, name: one.name, launch: None });
    }
    for call in &timeline.calls {
        let launch = call.correlation.map(|number| number.0);
        add(call.thread, HostEvent { start: call.start, end: call.end(), name: call.name, launch });
    }
    for events in &mut threads {
        // The sort is stable: of two with the same times, a range is around an operator and that around a call.
        events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
    }
    threads
}
