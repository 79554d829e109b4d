//! What the host did while a device waited.

use std::collections::{BTreeMap, HashSet};

use types::timeline::{HostCall, NameId, OperatorKind, Timeline};
use types::{IdleCause, IdlePlace, Nanos};

use super::call::{CaptureCall, cause_of_call, cause_of_name};
use super::span::{Span, Spans};
use super::waiting::Waiting;
use crate::python::user_frame;

/// Without a call for as long as this, the host does not prepare a launch: a framework needs microseconds for one operator,
/// under a profiler some hundred.
const HOST_WORK: Nanos = Nanos::new(1_000_000);
/// A kernel's first launch that takes as long as this loads its module; launches take microseconds.
const FIRST_USE: Nanos = Nanos::new(1_000_000);
/// Work that starts later than this after its launch has returned waits for something else than its launch.
const LATENCY: Nanos = Nanos::new(100_000);
/// Gaps looked at for where the host was.
const PLACED_GAPS: usize = 200;
/// Places named.
const PLACES: usize = 3;

/// What the threads that launch work for a device did; the sets do not overlap.
pub(crate) struct Host {
    known: Vec<(IdleCause, Spans)>,
    /// All of those.
    held: Spans,
    /// Without calls.
    quiet: Spans,
    /// Before the first record of these threads and after the last.
    recorded: Option<Span>,
    threads: Vec<bool>,
}

impl Host {
    /// `launch` has the call of each row of [`Timeline::work`]; `rows` are those of the device.
    pub(crate) fn new(timeline: &Timeline, launch: &[Option<u32>], rows: &[u32], without_requests: &Spans) -> Self {
        let mut threads = vec![false; timeline.threads.len()];
        for call in rows.iter().filter_map(|row| launch[*row as usize]) {
            threads[timeline.calls[call as usize].thread.0 as usize] = true;
        }
        let calls = || timeline.calls.iter().filter(|call| threads[call.thread.0 as usize]);
        let mut spans: BTreeMap<IdleCause, Vec<Span>> = BTreeMap::new();
        let causes: Vec<_> = timeline.names.iter().map(|(_, name)| cause_of_call(name)).collect();
        for call in calls() {
            if let Some(cause) = causes[call.name.index()] {
                spans.entry(cause).or_default().push(Span::new(call.start, call.end()));
            }
        }
        let compiling = spans.entry(IdleCause::Compiling).or_default();
        compiling.extend(captures(timeline, calls()));
        compiling.extend(first_uses(timeline, launch, rows));
        named(timeline, &threads, &mut spans);
        spans.insert(IdleCause::NoRequest, without_requests.as_slice().to_vec());
        let mut taken = Spans::default();
        let mut known = Vec::new();
        for (cause, spans) in spans {
            let own = Spans::union(spans).subtract(&taken);
            taken = Spans::union(taken.as_slice().iter().chain(own.as_slice()).copied());
            known.push((cause, own));
        }
        let recorded = recorded(timeline, &threads);
        let called = called(timeline.threads.len(), calls());
        let between = recorded.map(|all| called.gaps(all)).unwrap_or_default();
        let quiet = between.as_slice().iter().filter(|span| span.length() >= HOST_WORK).copied();
        let quiet = Spans::union(quiet).subtract(&taken);
        Self { known, held: taken, quiet, recorded, threads }
    }

    /// Divides a gap. `next` is the call that launched the work behind it.
    pub(crate) fn divide(&self, gap: Span, next: Option<&HostCall>) -> Waiting {
        let mut waiting = Waiting::default();
        self.for_each_part(gap, next, |cause, span| waiting.add(cause, span.length()));
        waiting
    }

    /// The parts of a gap in order, neighbours of one cause as one.
    pub(crate) fn parts(&self, gap: Span, next: Option<&HostCall>) -> Vec<(IdleCause, Span)> {
        let mut parts = Vec::new();
        self.for_each_part(gap, next, |cause, span| parts.push((cause, span)));
        parts.sort_by_key(|(_, span)| span.start);
        parts.dedup_by(|next, last| {
            let is_one = next.0 == last.0 && last.1.end == next.1.start;
            if is_one {
                last.1.end = next.1.end;
            }
            is_one
        });
        parts
    }

    /// Hands over the parts of a gap with their causes, in no order. They do not overlap and make up the gap.
    fn for_each_part(&self, gap: Span, next: Option<&HostCall>, mut take: impl FnMut(IdleCause, Span)) {
        // Until the call for what runs next, the host is to blame; from there on, the launch.
        let called = next.map_or(gap.end, |call| call.start.clamp(gap.start, gap.end));
        let launched = next.map_or(gap.end, |call| call.end().clamp(called, gap.end));
        let before = Span::new(gap.start, called);
        for (cause, spans) in &self.known {
            let within = match cause {
                // The annotation holds whoever has launched what.
                IdleCause::DataLoading => gap,
                // A first launch is slow itself.
                IdleCause::Compiling => Span::new(gap.start, launched),
                _ => before,
            };
            spans.for_each_within(within, |span| take(*cause, span));
        }
        let Some(call) = next else {
            return self.held.for_each_gap(before, |rest| take(IdleCause::NotRecorded, rest));
        };
        self.held.for_each_gap(before, |rest| {
            let recorded = self.recorded.map(|all| all.intersect(rest)).filter(|shared| !shared.is_empty());
            let recorded = recorded.unwrap_or(Span::new(rest.end, rest.end));
            for unrecorded in [Span::new(rest.start, recorded.start), Span::new(recorded.end, rest.end)] {
                if !unrecorded.is_empty() {
                    take(IdleCause::NotRecorded, unrecorded);
                }
            }
            self.quiet.for_each_within(recorded, |span| take(IdleCause::HostWork, span));
            self.quiet.for_each_gap(recorded, |span| take(IdleCause::Launching, span));
        });
        let late = gap.end - launched;
        let behind = if call.end() <= gap.start || late > LATENCY { IdleCause::Queued } else { IdleCause::Launching };
        let (loading, compiling) = (self.of(IdleCause::DataLoading), self.of(IdleCause::Compiling));
        loading.for_each_gap(Span::new(called, launched), |span| {
            compiling.for_each_gap(span, |span| take(IdleCause::Launching, span));
        });
        loading.for_each_gap(Span::new(launched, gap.end), |span| take(behind, span));
    }

    fn of(&self, cause: IdleCause) -> &Spans {
        static NONE: Spans = Spans::NONE;
        self.known.iter().find(|(known, _)| *known == cause).map_or(&NONE, |(_, spans)| spans)
    }

    /// What the host mostly did between two calls, and for how long.
    pub(crate) fn doing(&self, between: Span) -> (IdleCause, Nanos) {
        const NAMED: [IdleCause; 5] =
            [IdleCause::NoRequest, IdleCause::Profiling, IdleCause::DataLoading, IdleCause::Compiling, IdleCause::Peer];
        let named = self.known.iter().filter(|(cause, _)| NAMED.contains(cause));
        let named = named.map(|(cause, spans)| (*cause, spans.total_within(between)));
        match named.max_by_key(|(_, time)| *time).filter(|(_, time)| *time > Nanos::ZERO) {
            Some(named) => named,
            None if between.length() >= HOST_WORK => (IdleCause::HostWork, between.length()),
            None => (IdleCause::Launching, between.length()),
        }
    }

    /// The part of a gap in which the host did other work.
    pub(crate) fn quiet_within(&self, gap: Span) -> Spans {
        self.quiet.within(gap)
    }

    /// Where the host was in the longest of these spans: the innermost range, long operator or Python frame of the user's around
    /// the middle of each.
    pub(crate) fn places(&self, timeline: &Timeline, mut spans: Vec<Span>) -> Vec<IdlePlace> {
        spans.sort_by_key(|span| std::cmp::Reverse(span.length()));
        spans.truncate(PLACED_GAPS);
        let on_host = |thread: u32| self.threads[thread as usize];
        let ranges = timeline.ranges.iter().filter(|range| on_host(range.thread.0));
        let ranges = ranges.map(|range| (range.name, Span::new(range.start, range.end.unwrap_or(range.start))));
        let operators = timeline.operators.iter().filter(|operator| {
            let is_named =
                || operator.kind == OperatorKind::Framework || user_frame(timeline.name(operator.name)).is_some();
            operator.duration >= HOST_WORK && on_host(operator.thread.0) && is_named()
        });
        let operators = operators.map(|operator| (operator.name, Span::new(operator.start, operator.end())));
        let around: Vec<(NameId, Span)> =
            ranges.chain(operators).filter(|(_, span)| span.length() >= HOST_WORK).collect();
        let mut sums: BTreeMap<NameId, Nanos> = BTreeMap::new();
        for span in spans {
            let middle = Nanos::new(span.start.get() + span.length().get() / 2);
            let holding = around.iter().filter(|(_, outer)| outer.contains(middle));
            if let Some((name, outer)) = holding.min_by_key(|(_, outer)| outer.length()) {
                *sums.entry(*name).or_default() += span.intersect(*outer).length();
            }
        }
        let shown = |name: &str| user_frame(name).unwrap_or_else(|| name.to_owned());
        let place = |(name, ns)| IdlePlace { name: shown(timeline.name(name)), ns };
        let mut places: Vec<_> = sums.into_iter().map(place).collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.ns));
        places.truncate(PLACES);
        places
    }
}

/// When threads were in calls, short pauses between two calls of one thread left out. No pause of [`HOST_WORK`] or longer that all
/// threads share is lost by that: each of them has one around it. A trace has millions of calls and few such pauses.
fn called<'a>(threads: usize, calls: impl Iterator<Item = &'a HostCall>) -> Spans {
    let mut latest: Vec<Option<Span>> = vec![None; threads];
    let mut spans = Vec::new();
    for call in calls {
        let span = Span::new(call.start, call.end());
        match &mut latest[call.thread.0 as usize] {
            Some(known) if span.start >= known.start && span.start < known.end + HOST_WORK => *known = known.hull(span),
            known => spans.extend(known.replace(span)),
        }
    }
    spans.extend(latest.into_iter().flatten());
    Spans::union(spans)
}

/// Captures of graphs, from the call that opens one to that which closes it.
fn captures<'a>(timeline: &Timeline, calls: impl Iterator<Item = &'a HostCall>) -> Vec<Span> {
    let kinds: Vec<_> = timeline.names.iter().map(|(_, name)| CaptureCall::of(name)).collect();
    let mut marks: Vec<_> =
        calls.filter_map(|call| Some((call.thread, call.start, call.end(), kinds[call.name.index()]?))).collect();
    marks.sort_by_key(|(thread, start, ..)| (*thread, *start));
    let closed = |pair: &[(_, Nanos, Nanos, CaptureCall)]| {
        (pair[0].3, pair[1].3) == (CaptureCall::Begin, CaptureCall::End) && pair[0].0 == pair[1].0
    };
    marks.windows(2).filter(|pair| closed(pair)).map(|pair| Span::new(pair[0].1, pair[1].2)).collect()
}

/// Launches that load what they launch.
fn first_uses(timeline: &Timeline, launch: &[Option<u32>], rows: &[u32]) -> Vec<Span> {
    let mut seen: HashSet<NameId> = HashSet::new();
    let mut firsts: Vec<_> = Vec::new();
    let mut launches: Vec<_> =
        rows.iter().filter_map(|row| Some((timeline.work[*row as usize].name, launch[*row as usize]?))).collect();
    launches.retain(|(_, call)| timeline.calls[*call as usize].duration >= FIRST_USE);
    if launches.is_empty() {
        return firsts;
    }
    // A slow launch counts for a name that no quick one came before.
    let mut order: Vec<_> =
        rows.iter().filter_map(|row| Some((launch[*row as usize]?, timeline.work[*row as usize].name))).collect();
    order.sort_by_key(|(call, _)| timeline.calls[*call as usize].start);
    for (call, name) in order {
        let call = &timeline.calls[call as usize];
        let function = timeline.name(call.name);
        // A graph is launched at the cost of its nodes, each time.
        let is_plain = cause_of_call(function).is_none() && !function.contains("GraphLaunch");
        if seen.insert(name) && call.duration >= FIRST_USE && is_plain {
            firsts.push(Span::new(call.start, call.end()));
        }
    }
    firsts
}

/// What ranges and operators around the host say.
fn named(timeline: &Timeline, threads: &[bool], spans: &mut BTreeMap<IdleCause, Vec<Span>>) {
    let causes: Vec<_> = timeline.names.iter().map(|(_, name)| cause_of_name(name)).collect();
    for range in &timeline.ranges {
        if let (Some(cause), Some(end)) = (causes[range.name.index()], range.end) {
            spans.entry(cause).or_default().push(Span::new(range.start, end));
        }
    }
    for operator in timeline.operators.iter().filter(|operator| threads[operator.thread.0 as usize]) {
        if let Some(cause) = causes[operator.name.index()] {
            spans.entry(cause).or_default().push(Span::new(operator.start, operator.end()));
        }
    }
}

/// From the first record of these threads to the last.
fn recorded(timeline: &Timeline, threads: &[bool]) -> Option<Span> {
    let on_host = |thread: u32| threads[thread as usize];
    let calls = timeline.calls.iter().filter(|call| on_host(call.thread.0));
    let operators = timeline.operators.iter().filter(|operator| on_host(operator.thread.0));
    let calls = calls.map(|call| Span::new(call.start, call.end()));
    let operators = operators.map(|operator| Span::new(operator.start, operator.end()));
    calls.chain(operators).reduce(Span::hull)
}
