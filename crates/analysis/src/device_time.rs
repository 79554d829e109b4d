//! How the time of each device divides, exactly and without stages: computing, exposed communication, exposed copies, and
//! idle time by what the host did meanwhile.
//!
//! Sets of moments decide, so the parts make up the whole: compute first, then communication without compute, then copies and
//! memsets without either, then nothing. Everything else that is said of a trace is a view on this division.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{DeviceWork, HostCall, QueueId, Timeline, WorkKind};
use types::view::IdleStretch;
use types::{Bytes, CopyTime, DeviceTime, IdleCause, IdlePlace, IdleTime, Nanos};

use crate::attribution::Attribution;
use crate::evidence::PlacedTimeline;
use crate::kernel::{self, Family};
use crate::time::{Host, Span, Spans};

/// Late kernels named.
const LATE: usize = 3;
/// Work starts microseconds after its launch where nothing holds it up.
const LATE_START: Nanos = Nanos::new(1_000_000);
/// One in so many of a gap is hardly any time.
const HARDLY: i64 = 100;

/// Every device of every timeline, in order.
pub fn device_times(timelines: &[PlacedTimeline<'_>]) -> Vec<DeviceTime> {
    let of_timeline = |placed: &PlacedTimeline<'_>| {
        let rows = rows_by_device(placed.timeline);
        // A device of which only some work is known has no idle time that is.
        let rows = if placed.timeline.graphs_only { BTreeMap::new() } else { rows };
        rows.into_iter().filter_map(|(ordinal, rows)| of_device(placed, ordinal, &rows)).collect::<Vec<_>>()
    };
    timelines.iter().flat_map(of_timeline).collect()
}

/// Every stretch in which a device of a timeline was idle, with its cause: by device, then by start. Those of one device and cause
/// are what [`device_times`] sums up.
pub fn idle_stretches(timeline: &Timeline, attribution: &Attribution) -> Vec<IdleStretch> {
    let communicates = communicates(timeline);
    let mut stretches = Vec::new();
    if timeline.graphs_only {
        return stretches;
    }
    for (device, rows) in rows_by_device(timeline) {
        let Some(activity) = Activity::new(timeline, attribution, &rows, &communicates) else { continue };
        let rows = activity.rows(timeline, &rows);
        let host = Host::new(timeline, &attribution.launch, &rows, attribution.lulls());
        for gap in activity.busy.gaps(activity.window).as_slice() {
            let (_, next) = behind(timeline, attribution, &rows, *gap);
            let parts = host.parts(*gap, next);
            stretches.extend(parts.into_iter().map(|(cause, span)| IdleStretch {
                device,
                start: span.start,
                length: span.length(),
                cause,
            }));
        }
    }
    stretches
}

/// Rows of each device, ordered by start.
fn rows_by_device(timeline: &Timeline) -> BTreeMap<u32, Vec<u32>> {
    let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (row, work) in timeline.work.iter().enumerate() {
        rows.entry(timeline.queues[work.queue.0 as usize].device).or_default().push(row as u32);
    }
    for rows in rows.values_mut() {
        let start = |row: &u32| timeline.work[*row as usize].start;
        if !rows.is_sorted_by_key(start) {
            rows.sort_by_key(start);
        }
    }
    rows
}

/// When a device did what, in the window of the work that is meant: loading and warming up do not stretch it.
struct Activity {
    window: Span,
    compute: Spans,
    /// The part of it that does not wait for communication.
    awake: Spans,
    communication: Spans,
    copies: Spans,
    busy: Spans,
}

impl Activity {
    fn new(timeline: &Timeline, attribution: &Attribution, rows: &[u32], communicates: &[bool]) -> Option<Self> {
        let span = |row: &u32| {
            let work = &timeline.work[*row as usize];
            Span::new(work.start, work.end())
        };
        let meant = rows.iter().filter(|row| !attribution.is_aside(**row as usize));
        let window = meant.map(span).reduce(Span::hull)?;
        let of = |which: &dyn Fn(&DeviceWork) -> bool| {
            let chosen = rows.iter().filter(|row| which(&timeline.work[**row as usize]));
            Spans::union(chosen.map(|row| span(row).intersect(window)))
        };
        let is_kernel = |work: &DeviceWork| matches!(work.kind, WorkKind::Kernel | WorkKind::Graph);
        let compute = of(&|work| is_kernel(work) && !communicates[work.name.index()]);
        let awake = Spans::union(awake(timeline, rows, communicates).map(|span| span.intersect(window)));
        let communication = of(&|work| is_kernel(work) && communicates[work.name.index()]);
        let copies = of(&|work| !is_kernel(work));
        let all = compute.as_slice().iter().chain(communication.as_slice()).chain(copies.as_slice());
        let busy = Spans::union(all.copied());
        Some(Self { window, compute, awake, communication, copies, busy })
    }

    /// Rows of the window.
    fn rows(&self, timeline: &Timeline, rows: &[u32]) -> Vec<u32> {
        let in_window = |row: &&u32| {
            let work = &timeline.work[**row as usize];
            work.start < self.window.end && work.end() >= self.window.start
        };
        rows.iter().filter(in_window).copied().collect()
    }
}

/// Kernels that compute, each from when it could. With programmatic dependent launch a kernel starts while the one before it on its
/// stream still runs, waits for its end, and ends after it: below communication it does not compute. One that ends earlier did.
fn awake<'a>(timeline: &'a Timeline, rows: &'a [u32], communicates: &'a [bool]) -> impl Iterator<Item = Span> + 'a {
    let mut until: HashMap<QueueId, Nanos> = HashMap::new();
    rows.iter().filter_map(move |row| {
        let work = &timeline.work[*row as usize];
        let until = until.entry(work.queue).or_insert(work.start);
        match work.kind {
            WorkKind::Kernel if communicates[work.name.index()] => {
                *until = work.end().max(*until);
                None
            }
            WorkKind::Kernel if work.end() >= *until => Some(Span::new(work.start.max(*until), work.end())),
            WorkKind::Kernel | WorkKind::Graph => Some(Span::new(work.start, work.end())),
            WorkKind::Copy(_) | WorkKind::Fill => None,
        }
    })
}

/// Names that are kernels of communication.
fn communicates(timeline: &Timeline) -> Vec<bool> {
    timeline.names.iter().map(|(_, name)| kernel::family(name) == Family::Communication).collect()
}

fn of_device(placed: &PlacedTimeline<'_>, ordinal: u32, rows: &[u32]) -> Option<DeviceTime> {
    let PlacedTimeline { timeline, attribution, .. } = placed;
    let communicates = communicates(timeline);
    let activity = Activity::new(timeline, attribution, rows, &communicates)?;
    let rows = activity.rows(timeline, rows);
    let Activity { window, compute, awake, communication, copies, busy } = activity;
    let exposed = communication.subtract(&compute);
    let copied = copies.subtract(&compute).subtract(&communication);
    let works = || rows.iter().map(|row| &timeline.work[*row as usize]);
    let gaps = busy.gaps(window);
    let host = Host::new(timeline, &attribution.launch, &rows, attribution.lulls());
    let late_start = late_start(timeline, attribution, &host, &rows, window, gaps.as_slice().first().copied());
    Some(DeviceTime {
        device: placed.device(ordinal),
        rank: placed.rank,
        span_ns: window.length(),
        busy_ns: busy.total(),
        idle_ns: window.length() - busy.total(),
        late_start_ns: late_start.unwrap_or_default(),
        compute_ns: compute.total(),
        communication_ns: communication.total(),
        communication_exposed_ns: exposed.total(),
        communication_awaited_ns: communication.subtract(&awake).total() - exposed.total(),
        copies_exposed_ns: copied.total(),
        copies: copy_times(works(), window, copied),
        idle: idle_times(placed, &host, &rows, &gaps),
    })
}

/// How long a device did nothing at the start of its window although work was launched. Where that is long, the queue of before the
/// recording ran.
fn late_start(
    timeline: &Timeline,
    attribution: &Attribution,
    host: &Host,
    rows: &[u32],
    window: Span,
    first: Option<Span>,
) -> Option<Nanos> {
    let gap = first.filter(|gap| (gap.start - window.start).get() <= gap.length().get() / HARDLY)?;
    let (_, next) = behind(timeline, attribution, rows, gap);
    let waited = host.divide(gap, next).of(IdleCause::Queued);
    (waited >= LATE_START).then_some(waited)
}

/// Copies by direction, and memsets. `exposed` is when any ran and no kernel did.
fn copy_times<'a>(works: impl Iterator<Item = &'a DeviceWork>, window: Span, exposed: Spans) -> Vec<CopyTime> {
    let mut sums: BTreeMap<&'static str, (u64, Nanos, Option<Bytes>)> = BTreeMap::new();
    let mut spans: BTreeMap<&'static str, Vec<Span>> = BTreeMap::new();
    for work in works {
        let Some(kind) = work.kind.copy_name() else { continue };
        let (calls, ns, bytes) = sums.entry(kind).or_default();
        spans.entry(kind).or_default().push(Span::new(work.start, work.end()).intersect(window));
        *calls += 1;
        *ns += work.duration;
        *bytes = bytes.map(|all| all + work.bytes.unwrap_or_default()).or(work.bytes);
    }
    let row = |(kind, (calls, ns, bytes)): (&str, _)| CopyTime {
        kind: kind.to_owned(),
        calls,
        ns,
        exposed_ns: Nanos::ZERO,
        bytes,
    };
    let mut copies: Vec<_> = sums.into_iter().map(row).collect();
    copies.sort_by_key(|copy| std::cmp::Reverse(copy.ns));
    let mut left = exposed;
    for copy in &mut copies {
        let own = Spans::union(spans.remove(copy.kind.as_str()).unwrap_or_default());
        let rest = left.subtract(&own);
        copy.exposed_ns = left.total() - rest.total();
        left = rest;
    }
    copies
}

/// Gaps by cause.
fn idle_times(placed: &PlacedTimeline<'_>, host: &Host, rows: &[u32], gaps: &Spans) -> Vec<IdleTime> {
    let timeline = placed.timeline;
    let mut sums: BTreeMap<IdleCause, (Nanos, Nanos)> = BTreeMap::new();
    const PLACED: [IdleCause; 4] =
        [IdleCause::HostWork, IdleCause::HostUnknown, IdleCause::Compiling, IdleCause::DataLoading];
    let mut placed_spans = PLACED.map(|_| Vec::new());
    const LAUNCHED: [IdleCause; 3] = [IdleCause::BetweenKernels, IdleCause::Queued, IdleCause::HostUnknown];
    let mut launched = LAUNCHED.map(|_| BTreeMap::<&str, Nanos>::new());
    for gap in gaps.as_slice() {
        let (row, next) = behind(timeline, placed.attribution, rows, *gap);
        let waiting = host.divide(*gap, next);
        for cause in IdleCause::ALL {
            let time = waiting.of(cause);
            let (all, longest) = sums.entry(cause).or_default();
            *all += time;
            *longest = time.max(*longest);
        }
        for (cause, launched) in LAUNCHED.iter().zip(&mut launched) {
            let late = waiting.of(*cause);
            if let Some(row) = row.filter(|_| late > Nanos::ZERO) {
                *launched.entry(timeline.name(timeline.work[row as usize].name)).or_default() += late;
            }
        }
        for (cause, spans) in
            PLACED.iter().zip(&mut placed_spans).filter(|(cause, _)| waiting.of(**cause) > Nanos::ZERO)
        {
            spans.extend_from_slice(host.known_within(*gap, *cause).as_slice());
        }
    }
    let [works, unknown, compiling, loading] = placed_spans.map(|spans| host.places(timeline, spans));
    let [between, queued, after_unknown] = launched.map(before);
    let row = |(cause, (ns, longest_ns))| {
        let inside = match cause {
            IdleCause::HostWork => works.clone(),
            // Without a range around it, what comes behind it is all that is known.
            IdleCause::HostUnknown if unknown.is_empty() => after_unknown.clone(),
            IdleCause::HostUnknown => unknown.clone(),
            IdleCause::Compiling => compiling.clone(),
            IdleCause::DataLoading => loading.clone(),
            IdleCause::BetweenKernels => between.clone(),
            IdleCause::Queued => queued.clone(),
            _ => Vec::new(),
        };
        IdleTime { cause, ns, longest_ns, inside }
    };
    let mut idle: Vec<_> = sums.into_iter().filter(|(_, (ns, _))| *ns > Nanos::ZERO).map(row).collect();
    idle.sort_by_key(|idle| std::cmp::Reverse(idle.ns));
    idle
}

/// The work behind a gap, and the call that launched it.
fn behind<'a>(
    timeline: &'a Timeline,
    attribution: &Attribution,
    rows: &[u32],
    gap: Span,
) -> (Option<u32>, Option<&'a HostCall>) {
    // Work without length cannot end a gap, but it is what the host called for.
    let row = rows.get(rows.partition_point(|row| timeline.work[*row as usize].start < gap.end)).copied();
    let call = row.and_then(|row| attribution.launch[row as usize]);
    (row, call.map(|call| &timeline.calls[call as usize]))
}

/// What came late, the longest first.
fn before(late: BTreeMap<&str, Nanos>) -> Vec<IdlePlace> {
    // Copies and memsets have names of their own.
    let short = |name: &str| if name.starts_with("Mem") { name.to_owned() } else { kernel::short_name(name) };
    let place = |(name, ns)| IdlePlace::before(&short(name), ns);
    let mut places: Vec<_> = late.into_iter().map(place).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.ns));
    places.truncate(LATE);
    places
}

#[cfg(test)]
mod tests;
