//! What the host did while a device waited.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use types::timeline::{HostCall, HostOperator, NameId, OperatorKind, ThreadId, Timeline};
use types::{IdleCause, IdlePlace, Nanos};

use super::call::{CaptureCall, WaitKind, cause_of_call, cause_of_name, waits};
use super::span::{Span, Spans};
use super::waiting::Waiting;
use crate::numbered;
use crate::python::user_frame;

/// Without a call for as long as this, the host does not prepare a launch: a framework needs microseconds for one operator,
/// under a profiler some hundred.
const HOST_WORK: Nanos = Nanos::new(1_000_000);
/// An operator without a call inside that takes as long as this computes on the host; under a profiler too, one that only launches
/// takes some ten microseconds.
const HOST_OPERATOR: Nanos = Nanos::new(200_000);
/// A kernel's first launch that takes as long as this loads its module; launches take microseconds.
const FIRST_USE: Nanos = Nanos::new(1_000_000);
/// Work that starts later than this after its launch has returned waits for something else than its launch.
pub(crate) const LATENCY: Nanos = Nanos::new(100_000);
/// Work that had been launched before a gap of at most this follows the work before it as fast as the device goes on: one to a few
/// microseconds, up to 18 on an MI300X under a profiler.
const BETWEEN_KERNELS: Nanos = Nanos::new(20_000);

/// What a device waits for whose next work had been launched when it became idle.
pub(crate) fn behind_launch(gap: Nanos) -> IdleCause {
    if gap <= BETWEEN_KERNELS { IdleCause::BetweenKernels } else { IdleCause::Queued }
}

/// Spans in which a server has nothing to do, whatever its threads show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lulls<'a> {
    /// No request was due and unanswered.
    pub(crate) requests: &'a Spans,
    /// No step was in progress for long.
    pub(crate) steps: &'a Spans,
}

/// Gaps looked at for where the host was.
const PLACED_GAPS: usize = 200;
/// Places named.
const PLACES: usize = 3;

/// What the threads that launch work for a device did; the sets do not overlap.
#[derive(Debug)]
pub(crate) struct Host {
    known: Vec<(IdleCause, Spans)>,
    /// All of those.
    held: Spans,
    /// Without calls for long or in an operator that computes on the host, by what else is recorded of them; the sets do not overlap.
    quiet: [(IdleCause, Spans); 3],
    /// All of those.
    without_calls: Spans,
    /// Before the first record of these threads and after the last.
    recorded: Option<Span>,
    threads: Vec<bool>,
    /// Per call that launched more than one piece of work, by thread and start: when the first of them started.
    begun: HashMap<(ThreadId, Nanos), Nanos>,
}

impl Host {
    /// `launch` has the call of each row of [`Timeline::work`]; `rows` are those of the device.
    pub(crate) fn new(timeline: &Timeline, launch: &[Option<u32>], rows: &[u32], lulls: Lulls<'_>) -> Self {
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
        compiling.extend(first_calls(timeline, calls()));
        compiling.extend(trials(timeline, calls()));
        compiling.extend(first_uses(timeline, launch, rows));
        let busy = [IdleCause::Synchronising, IdleCause::Copying, IdleCause::Allocating];
        let busy = Spans::union(busy.iter().filter_map(|cause| spans.get(cause)).flatten().copied());
        let first = Spans::union(first_operators(timeline, launch, rows)).subtract(&busy);
        spans.entry(IdleCause::Compiling).or_default().extend(first.as_slice());
        named(timeline, &threads, &mut spans);
        spans.insert(IdleCause::NoRequest, lulls.requests.as_slice().to_vec());
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
        let computing = host_operators(timeline, &threads);
        let quiet = Spans::union(quiet.chain(computing.as_slice().iter().copied())).subtract(&taken);
        let parts = told_apart(timeline, &threads, &quiet, lulls.steps);
        let begun = begun(timeline, launch, rows);
        Self { known, held: taken, quiet: parts, without_calls: quiet, recorded, threads, begun }
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
        // Inside a graph the launch is over, even while its call has not returned.
        let is_inside = |call: &HostCall| {
            self.begun
                .get(&(call.thread, call.start))
                .is_some_and(|begun| call.start <= gap.start && *begun <= gap.start)
        };
        if next.is_some_and(|call| (call.end() <= gap.start && is_short(gap)) || is_inside(call)) {
            return take(behind_launch(gap.length()), gap);
        }
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
        self.held.for_each_gap(before, |rest| self.between_calls(rest, &mut take));
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

    /// Hands over the parts of a span between calls.
    fn between_calls(&self, span: Span, mut take: impl FnMut(IdleCause, Span)) {
        let recorded = self.recorded.map(|all| all.intersect(span)).filter(|shared| !shared.is_empty());
        let recorded = recorded.unwrap_or(Span::new(span.end, span.end));
        for unrecorded in [Span::new(span.start, recorded.start), Span::new(recorded.end, span.end)] {
            if !unrecorded.is_empty() {
                take(IdleCause::NotRecorded, unrecorded);
            }
        }
        for (cause, spans) in &self.quiet {
            spans.for_each_within(recorded, |part| take(*cause, part));
        }
        self.without_calls.for_each_gap(recorded, |part| take(IdleCause::Launching, part));
    }

    /// What the host did in a span, whether a device waited or not. `call` is what it was where a call takes the span.
    pub(crate) fn during(&self, span: Span, call: Option<IdleCause>) -> Waiting {
        let mut during = Waiting::default();
        for (cause, spans) in &self.known {
            during.add(*cause, spans.total_within(span));
        }
        self.held.for_each_gap(span, |rest| match call {
            Some(cause) => during.add(cause, rest.length()),
            None => self.between_calls(rest, |cause, part| during.add(cause, part.length())),
        });
        during
    }

    /// What the host mostly did between two calls beside launching, and for how long.
    pub(crate) fn doing(&self, between: Span) -> (IdleCause, Nanos) {
        let during = self.during(between, None);
        let causes = IdleCause::ALL.into_iter().map(|cause| (cause, during.of(cause)));
        let most = causes.filter(|(cause, _)| *cause != IdleCause::Launching).max_by_key(|(_, time)| *time);
        most.filter(|(_, time)| *time > Nanos::ZERO).unwrap_or((IdleCause::Launching, between.length()))
    }

    /// The part of a gap in which this is what is known of the host: without calls, or in what compiles or loads.
    pub(crate) fn known_within(&self, gap: Span, cause: IdleCause) -> Spans {
        let known = self.quiet.iter().chain(&self.known).find(|(known, _)| *known == cause);
        known.map_or(Spans::NONE, |(_, spans)| spans.within(gap))
    }

    /// Where the host was in the longest of these spans: the innermost range, long operator or Python frame of the user's around
    /// the middle of each.
    pub(crate) fn places(&self, timeline: &Timeline, mut spans: Vec<Span>) -> Vec<IdlePlace> {
        spans.sort_by_key(|span| std::cmp::Reverse(span.length()));
        spans.truncate(PLACED_GAPS);
        let on_host = |thread: u32| self.threads[thread as usize];
        let ranges = timeline.ranges.iter().filter(|range| on_host(range.thread.0));
        let ranges = ranges.map(|range| (range.name, Span::new(range.start, range.end.unwrap_or(range.start))));
        let ranges = ranges.filter(|(_, span)| span.length() >= HOST_WORK);
        let operators = timeline.operators.iter().filter(|operator| {
            let is_named =
                || operator.kind == OperatorKind::Framework || user_frame(timeline.name(operator.name)).is_some();
            operator.duration >= HOST_OPERATOR && on_host(operator.thread.0) && is_named()
        });
        let operators = operators.map(|operator| (operator.name, Span::new(operator.start, operator.end())));
        let around: Vec<(NameId, Span)> = ranges.chain(operators).collect();
        // Ranges that a program counts are one place.
        let place = |name: NameId| {
            let name = timeline.name(name);
            user_frame(name).unwrap_or_else(|| numbered::kind(name))
        };
        let mut sums: BTreeMap<String, (Nanos, BTreeSet<NameId>)> = BTreeMap::new();
        for span in spans {
            let middle = Nanos::new(span.start.get() + span.length().get() / 2);
            let holding = around.iter().filter(|(_, outer)| outer.contains(middle));
            if let Some((name, outer)) = holding.min_by_key(|(_, outer)| outer.length()) {
                let (sum, names) = sums.entry(place(*name)).or_default();
                *sum += span.intersect(*outer).length();
                names.insert(*name);
            }
        }
        let shown = |(kind, (ns, names)): (String, (Nanos, BTreeSet<NameId>))| {
            let only = names
                .first()
                .map(|name| timeline.name(*name))
                .filter(|name| names.len() == 1 && user_frame(name).is_none());
            IdlePlace { name: only.map_or(kind, str::to_owned), ns }
        };
        let mut places: Vec<_> = sums.into_iter().map(shown).collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.ns));
        places.truncate(PLACES);
        places
    }
}

fn is_short(gap: Span) -> bool {
    behind_launch(gap.length()) == IdleCause::BetweenKernels
}

/// When the work of each call started that launched several pieces.
fn begun(timeline: &Timeline, launch: &[Option<u32>], rows: &[u32]) -> HashMap<(ThreadId, Nanos), Nanos> {
    // Most calls launch one piece: those are counted, and only the others are looked up.
    let mut pieces = vec![0u8; timeline.calls.len()];
    for call in rows.iter().filter_map(|row| launch[*row as usize]) {
        pieces[call as usize] = pieces[call as usize].saturating_add(1);
    }
    let mut begun = HashMap::new();
    for row in rows {
        if let Some(call) = launch[*row as usize].filter(|call| pieces[*call as usize] > 1) {
            let (call, start) = (&timeline.calls[call as usize], timeline.work[*row as usize].start);
            let first = begun.entry((call.thread, call.start)).or_insert(start);
            *first = start.min(*first);
        }
    }
    begun
}

/// Divides spans without calls. Operators and Python functions show that the host worked, functions that wait that it did not. Between
/// two steps of a server only operators do: its loop polls for requests.
fn told_apart(timeline: &Timeline, threads: &[bool], quiet: &Spans, between_steps: &Spans) -> [(IdleCause, Spans); 3] {
    let kinds: Vec<_> = timeline.names.iter().map(|(_, name)| waits(name)).collect();
    let [mut operators, mut python, mut waits, mut unknown] = [const { Vec::new() }; 4];
    for operator in timeline.operators.iter().filter(|operator| threads[operator.thread.0 as usize]) {
        let found = match (kinds[operator.name.index()], operator.kind) {
            (Some(WaitKind::ForTime), _) => &mut waits,
            (Some(WaitKind::Unknown), _) => &mut unknown,
            (None, OperatorKind::Framework) => &mut operators,
            (None, OperatorKind::Python) => &mut python,
        };
        quiet.for_each_within(Span::new(operator.start, operator.end()), |part| found.push(part));
    }
    let operators = Spans::union(operators);
    let lulls = quiet.intersect(between_steps).subtract(&operators);
    // While one thread sleeps, an operator may run on another.
    let waits = Spans::union(waits.into_iter().chain(lulls.as_slice().iter().copied())).subtract(&operators);
    let python = Spans::union(python).subtract(&Spans::union(unknown));
    let works = Spans::union(operators.as_slice().iter().chain(python.as_slice()).copied()).subtract(&waits);
    let rest = quiet.subtract(&works).subtract(&waits);
    [(IdleCause::HostWork, works), (IdleCause::NoWork, waits), (IdleCause::HostUnknown, rest)]
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

/// Calls that are no launches, each the first of its function, that take as long as loading or initialising does. Libraries that
/// load call functions of allocation (`cudaFree`).
fn first_calls<'a>(timeline: &'a Timeline, calls: impl Iterator<Item = &'a HostCall>) -> Vec<Span> {
    let loads = |name: &str| matches!(cause_of_call(name), None | Some(IdleCause::Allocating));
    let is_plain: Vec<bool> =
        timeline.names.iter().map(|(_, name)| loads(name) && !is_launch_or_switch(name)).collect();
    let mut firsts: BTreeMap<NameId, Span> = BTreeMap::new();
    for call in calls.filter(|call| is_plain[call.name.index()]) {
        let span = Span::new(call.start, call.end());
        let first = firsts.entry(call.name).or_insert(span);
        if span.start < first.start {
            *first = span;
        }
    }
    firsts.into_values().filter(|span| span.length() >= FIRST_USE).collect()
}

/// Launches have a rule of their own, and a profiler that is switched on is no use of anything.
fn is_launch_or_switch(name: &str) -> bool {
    name.contains("Launch") || name.contains("Profiler")
}

/// Convolutions that wait for an event: cuDNN and MIOpen time every algorithm that they could use.
fn trials<'a>(timeline: &'a Timeline, calls: impl Iterator<Item = &'a HostCall>) -> Vec<Span> {
    let named = |sign: &str| timeline.names.iter().map(|(_, name)| name.contains(sign)).collect::<Vec<_>>();
    let (waits, convolves) = (named("EventSynchronize"), named("convolution"));
    let mut ends: Vec<_> =
        calls.filter(|call| waits[call.name.index()]).map(|call| (call.thread, call.start)).collect();
    ends.sort_unstable();
    let tries = |operator: &&HostOperator| {
        let next = ends.get(ends.partition_point(|end| *end < (operator.thread, operator.start)));
        convolves[operator.name.index()]
            && operator.kind == OperatorKind::Framework
            && next.is_some_and(|(thread, start)| *thread == operator.thread && *start < operator.end())
    };
    timeline.operators.iter().filter(tries).map(|operator| Span::new(operator.start, operator.end())).collect()
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

/// Operators that launch work, each the first of its name and shapes, that take five milliseconds or longer and many times as long as
/// the others: they load libraries, try algorithms, build plans for a shape or set up communicators.
fn first_operators(timeline: &Timeline, launch: &[Option<u32>], rows: &[u32]) -> Vec<Span> {
    /// A thread that pauses, or one kernel that is loaded, takes less.
    const SLOW: Nanos = Nanos::new(5_000_000);
    /// Other calls that there must be.
    const OTHERS: usize = 3;
    /// How many times as long as their median the first takes.
    const SLOWER: i64 = 10;
    let operators = || timeline.operators.iter().filter(|operator| operator.kind == OperatorKind::Framework);
    // By name: a trace has millions of operators and few names.
    let mut slow_names = vec![false; timeline.names.len()];
    operators().filter(|one| one.duration >= SLOW).for_each(|one| slow_names[one.name.index()] = true);
    let operators = || operators().filter(|operator| slow_names[operator.name.index()]);
    let shaped = |operator: &HostOperator| (operator.name, operator.signature);
    let mut firsts: HashMap<_, &HostOperator> = HashMap::new();
    for operator in operators() {
        let first = firsts.entry(shaped(operator)).or_insert(operator);
        if operator.start < first.start {
            *first = operator;
        }
    }
    firsts.retain(|_, first| first.duration >= SLOW);
    let is_first = |one: &HostOperator| firsts.get(&shaped(one)).is_some_and(|first| std::ptr::eq(*first, one));
    let mut others: HashMap<NameId, Vec<Nanos>> = HashMap::new();
    for operator in operators().filter(|operator| !is_first(operator)) {
        others.entry(operator.name).or_default().push(operator.duration);
    }
    let mut launches: BTreeMap<ThreadId, Vec<Nanos>> = BTreeMap::new();
    if !firsts.is_empty() {
        for call in rows.iter().filter_map(|row| launch[*row as usize]).map(|call| &timeline.calls[call as usize]) {
            launches.entry(call.thread).or_default().push(call.start);
        }
        launches.values_mut().for_each(|starts| starts.sort_unstable());
    }
    let launches_work = |operator: &HostOperator| {
        let starts = launches.get(&operator.thread).map_or(&[][..], Vec::as_slice);
        starts.get(starts.partition_point(|start| *start < operator.start)).is_some_and(|start| *start < operator.end())
    };
    let usual: HashMap<NameId, Nanos> = others
        .into_iter()
        .filter(|(_, times)| times.len() >= OTHERS)
        .map(|(name, mut times)| {
            let middle = times.len() / 2;
            (name, *times.select_nth_unstable(middle).1)
        })
        .collect();
    let is_slow =
        |first: &HostOperator| usual.get(&first.name).is_some_and(|usual| first.duration.get() >= SLOWER * usual.get());
    let slow = firsts.into_values().filter(|first| is_slow(first) && launches_work(first));
    slow.map(|first| Span::new(first.start, first.end())).collect()
}

/// Operators that compute on the host: long ones without another operator or a call inside.
fn host_operators(timeline: &Timeline, threads: &[bool]) -> Spans {
    let on_host = |thread: ThreadId| threads[thread.0 as usize];
    let is_long = |one: &&HostOperator| {
        one.kind == OperatorKind::Framework && one.duration >= HOST_OPERATOR && on_host(one.thread)
    };
    let mut long: Vec<_> =
        timeline.operators.iter().filter(is_long).map(|one| (one.thread, one.start, one.end())).collect();
    // Of those that start together the innermost stays; the others have it inside.
    long.sort_unstable();
    long.dedup_by_key(|(thread, start, _)| (*thread, *start));
    let mut is_plain = vec![true; long.len()];
    let calls = timeline.calls.iter().map(|call| (call.thread, call.start));
    let operators = timeline.operators.iter().filter(|one| one.kind == OperatorKind::Framework);
    for (thread, start) in operators.map(|one| (one.thread, one.start)).chain(calls) {
        // The last to start before it is the innermost around it, if one is.
        let before = long.partition_point(|one| (one.0, one.1) < (thread, start));
        let Some(place) = before.checked_sub(1) else { continue };
        if long[place].0 == thread && start < long[place].2 {
            is_plain[place] = false;
        }
    }
    let plain = long.iter().zip(is_plain).filter(|(_, is_plain)| *is_plain);
    Spans::union(plain.map(|((_, start, end), _)| Span::new(*start, *end)))
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
