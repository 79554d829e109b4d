//! A timeline as Chrome's trace events, which <https://ui.perfetto.dev> and `chrome://tracing` open. Categories and arguments
//! are those of the torch profiler, so that tools for its traces find their way.
//!
//! Perfetto reads processes and threads as 32-bit numbers and times as doubles, in microseconds. Rows therefore have small
//! numbers, and times start at zero wherever the document can say when that was: a double has a quarter of a microsecond left
//! for times since 1970, which is enough for kernels to overlap that do not, and Perfetto drops those.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU64;

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use types::timeline::{CapturedRangeId, DeviceWork, OperatorKind, ThreadId, Timeline, WorkKind};
use types::view::{IdleStretch, NamedSpan, TimelineView};
use types::{DeviceId, IdleCause, Nanos, ShapeGroup, Stage};

use crate::ReportError;
use crate::words::idle;

/// Devices are shown as processes with numbers no process has: those of Linux stay below 2^22.
const DEVICES: u64 = 0x7000_0000;
/// The same for threads whose own number is an address.
const THREADS: u64 = 0x7100_0000;

/// Lanes that no source has: stages, steps, and why a device was idle.
const OURS: u64 = 0x7200_0000;
const STAGES: u64 = 1;
const STEPS: u64 = 2;
/// Lanes of idle time begin here, one for each device.
const IDLE: u64 = 16;
/// Lanes of what work takes beyond the roofline of its operator begin here, one for each stream.
const LOST: u64 = 0x1_0000;

/// The document, with what is known of its rows as arguments and as lanes of their own; `groups` say how far operators are from
/// their roofline. Events are made one by one while it is written.
pub fn perfetto_json(
    timeline: &Timeline,
    view: &TimelineView<'_>,
    groups: &[ShapeGroup],
) -> Result<String, ReportError> {
    let zero = timeline.clock.unix_ns_at_zero;
    // Without a zero of the clock, the times themselves are all that says when something was.
    let first = zero.and_then(|_| first(timeline)).unwrap_or(Nanos::ZERO);
    document(Events { timeline, view, groups, first }, zero.map(|zero| zero + first))
}

fn first(timeline: &Timeline) -> Option<Nanos> {
    let starts = [
        timeline.ranges.iter().map(|range| range.start).min(),
        timeline.calls.iter().map(|call| call.start).min(),
        timeline.operators.iter().map(|operator| operator.start).min(),
        timeline.work.iter().map(|work| work.start).min(),
    ];
    starts.into_iter().flatten().min()
}

/// Events as a document.
pub(super) fn document(trace_events: impl Serialize, zero: Option<Nanos>) -> Result<String, ReportError> {
    let base_time_nanoseconds = zero.map(Nanos::get);
    let trace = Trace { schema_version: 1, display_time_unit: "ns", base_time_nanoseconds, trace_events };
    serde_json::to_string(&trace)
        .map_err(|error| ReportError::NotWritable { format: "trace events", reason: error.to_string() })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trace<E> {
    schema_version: u32,
    display_time_unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_time_nanoseconds: Option<i64>,
    trace_events: E,
}

/// The events of a timeline, since the first.
struct Events<'a> {
    timeline: &'a Timeline,
    view: &'a TimelineView<'a>,
    groups: &'a [ShapeGroup],
    first: Nanos,
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { timeline, view, groups, first } = *self;
        let known = Known::new(timeline, view, groups);
        let captured = captured(timeline);
        let ranges = timeline.ranges.iter().map(|range| {
            let (name, domain) = (timeline.name(range.name), range.domain.map(|domain| timeline.name(domain)));
            let name = domain.map_or(name.into(), |domain| format!("{domain}@{name}").into());
            let duration = range.end.unwrap_or(range.start) - range.start;
            let row = Row::of_thread(timeline, range.thread);
            Event::complete("user_annotation", name, row, [range.start - first, duration], Arguments::default())
        });
        let calls = timeline.calls.iter().flat_map(|call| {
            let row = Row::of_thread(timeline, call.thread);
            let correlation = call.correlation.map(|number| number.0.get());
            let arguments = Arguments { correlation, ..Arguments::default() };
            let name = timeline.name(call.name).into();
            let event = Event::complete("cuda_runtime", name, row, [call.start - first, call.duration], arguments);
            std::iter::once(event).chain(correlation.map(|number| Event::flow("s", number, row, call.start - first)))
        });
        let operators = timeline.operators.iter().map(|operator| {
            let category = match operator.kind {
                OperatorKind::Framework => "cpu_op",
                OperatorKind::Python => "python_function",
            };
            let shapes = operator.signature.map(|signature| timeline.signatures.get(signature).shapes.as_slice());
            let arguments = Arguments { shapes, ..Arguments::default() };
            let (name, row) = (timeline.name(operator.name).into(), Row::of_thread(timeline, operator.thread));
            Event::complete(category, name, row, [operator.start - first, operator.duration], arguments)
        });
        let rows = timeline.work.iter().enumerate();
        let work =
            rows.clone().flat_map(|(row, work)| device_work(timeline, &captured, work, first, known.of(row, work)));
        let lost = rows.filter_map(|(row, work)| {
            let lost = known.lost(row, work)?;
            let lane = Row { process: OURS, thread: LOST + u64::from(work.queue.0) };
            let span = [work.end() - lost - first, lost];
            Some(Event::complete("lost", timeline.name(work.name).into(), lane, span, Arguments::default()))
        });
        let names = row_names(timeline).into_iter().chain(our_names(timeline, view, !known.shares.is_empty()));
        let events = names.chain(ours(view, first)).chain(ranges).chain(operators).chain(calls).chain(work);
        serializer.collect_seq(events.chain(lost))
    }
}

/// One event. Which fields there are depends on its phase.
#[derive(Default, Serialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "ph")]
    phase: &'static str,
    #[serde(rename = "cat", skip_serializing_if = "Option::is_none")]
    category: Option<&'static str>,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(rename = "pid")]
    process: u64,
    #[serde(rename = "tid", skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
    #[serde(rename = "ts", skip_serializing_if = "Option::is_none", serialize_with = "micros")]
    start: Option<Nanos>,
    #[serde(rename = "dur", skip_serializing_if = "Option::is_none", serialize_with = "micros")]
    duration: Option<Nanos>,
    #[serde(rename = "bp", skip_serializing_if = "Option::is_none")]
    binding_point: Option<&'static str>,
    #[serde(rename = "args", skip_serializing_if = "Option::is_none")]
    arguments: Option<Arguments<'a>>,
}

/// What an event says beyond its time.
#[derive(Default, Serialize)]
pub(super) struct Arguments<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(rename = "graph node id", skip_serializing_if = "Option::is_none")]
    graph_node: Option<NonZeroU64>,
    #[serde(rename = "captured in", skip_serializing_if = "Option::is_none")]
    captured_in: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grid: Option<[u32; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<[u32; 3]>,
    #[serde(rename = "registers per thread", skip_serializing_if = "Option::is_none")]
    registers: Option<u32>,
    #[serde(rename = "Input Dims", skip_serializing_if = "Option::is_none")]
    shapes: Option<&'a [Vec<u64>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<&'a str>,
    #[serde(rename = "kernel family", skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    #[serde(rename = "idle before", skip_serializing_if = "Option::is_none")]
    idle_before: Option<String>,
    #[serde(rename = "beyond roofline", skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

impl<'a> Arguments<'a> {
    /// Of a call in a module.
    pub(super) fn of_call(module: Option<&'a str>, class: Option<&'a str>, shapes: Option<&'a [Vec<u64>]>) -> Self {
        Self { module, class, shapes, ..Self::default() }
    }
}

/// The row an event is shown in.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) process: u64,
    pub(super) thread: u64,
}

impl Row {
    fn of_thread(timeline: &Timeline, thread: ThreadId) -> Self {
        let found = &timeline.threads[thread.0 as usize];
        let number = found.thread.unwrap_or(0);
        let is_small = u32::try_from(number).is_ok();
        let number = if is_small { number } else { THREADS + u64::from(thread.0) };
        Self { process: found.process.map_or(0, u64::from), thread: number }
    }
}

impl<'a> Event<'a> {
    pub(super) fn complete(
        category: &'static str,
        name: Cow<'a, str>,
        Row { process, thread }: Row,
        [start, duration]: [Nanos; 2],
        arguments: Arguments<'a>,
    ) -> Self {
        Self {
            phase: "X",
            category: Some(category),
            name,
            process,
            thread: Some(thread),
            start: Some(start),
            duration: Some(duration),
            arguments: Some(arguments),
            ..Self::default()
        }
    }

    /// One end of the arrow from a launch to what it launched.
    fn flow(phase: &'static str, number: u64, Row { process, thread }: Row, time: Nanos) -> Self {
        Self {
            phase,
            category: Some("ac2g"),
            name: "ac2g".into(),
            id: Some(number),
            process,
            thread: Some(thread),
            start: Some(time),
            binding_point: (phase == "f").then_some("e"),
            ..Self::default()
        }
    }

    pub(super) fn row_name(name: &'static str, process: u64, thread: Option<u64>, label: String) -> Self {
        let arguments = Some(Arguments { name: Some(label), ..Arguments::default() });
        Self { phase: "M", name: name.into(), process, thread, arguments, ..Self::default() }
    }
}

/// Ranges that nodes of graphs were captured in, outermost first, by process and node.
type CaptureRanges = HashMap<(Option<u32>, NonZeroU64), String>;

fn captured(timeline: &Timeline) -> CaptureRanges {
    let path = |innermost: CapturedRangeId| {
        let mut names = Vec::new();
        let mut next = Some(innermost);
        while let Some(range) = next.and_then(|id| timeline.captured_ranges.get(id.0 as usize)) {
            names.push(timeline.name(range.name));
            // A range stands behind the one it lies in, so that this ends.
            next = range.parent.filter(|parent| next.is_some_and(|id| *parent < id));
        }
        names.reverse();
        names.join(" / ")
    };
    timeline.graph_nodes.iter().map(|node| ((node.process, node.node), path(node.range))).collect()
}

fn device_work<'a>(
    timeline: &'a Timeline,
    captured: &'a CaptureRanges,
    work: &DeviceWork,
    first: Nanos,
    known: Arguments<'a>,
) -> impl Iterator<Item = Event<'a>> {
    let queue = &timeline.queues[work.queue.0 as usize];
    let category = match work.kind {
        WorkKind::Kernel => "kernel",
        WorkKind::Copy(_) => "gpu_memcpy",
        WorkKind::Fill => "gpu_memset",
        WorkKind::Graph => "cuda_graph",
    };
    let shape = work.launch.map(|shape| timeline.launch_shapes.get(shape));
    let ranges = work.graph_node.and_then(|node| captured.get(&(queue.process, node)));
    let arguments = Arguments {
        name: None,
        device: Some(queue.device),
        context: queue.context,
        stream: queue.stream,
        correlation: work.correlation.map(|number| number.0.get()),
        bytes: work.bytes.map(|bytes| bytes.get()),
        graph_node: work.graph_node,
        captured_in: ranges.map(String::as_str),
        grid: shape.map(|shape| shape.grid),
        block: shape.map(|shape| shape.block),
        registers: shape.and_then(|shape| shape.registers),
        ..known
    };
    let row = Row { process: DEVICES + u64::from(queue.device), thread: queue.stream.map_or(0, u64::from) };
    let launch = arguments.correlation.map(|number| Event::flow("f", number, row, work.start - first));
    let name = timeline.name(work.name).into();
    let event = Event::complete(category, name, row, [work.start - first, work.duration], arguments);
    std::iter::once(event).chain(launch)
}

/// What is known of rows beyond what their source says.
struct Known<'a> {
    timeline: &'a Timeline,
    view: &'a TimelineView<'a>,
    /// Idle time by device and end.
    idle: HashMap<(u32, Nanos), (IdleCause, Nanos)>,
    /// Which part of the time of an operator's work its roofline is, by name and shapes; unknown where element types differ.
    shares: HashMap<(&'a str, &'a [Vec<u64>]), Option<f64>>,
}

impl<'a> Known<'a> {
    fn new(timeline: &'a Timeline, view: &'a TimelineView<'a>, groups: &'a [ShapeGroup]) -> Self {
        let ended = |one: &IdleStretch| ((one.device, one.start + one.length), (one.cause, one.length));
        let mut shares = HashMap::new();
        for group in groups {
            let share = group.roofline_share.filter(|share| (0.0..=1.0).contains(share));
            let of_group = (group.name.as_str(), group.shapes.as_slice());
            shares.entry(of_group).and_modify(|share| *share = None).or_insert(share);
        }
        Self { timeline, view, idle: view.idle.iter().map(ended).collect(), shares }
    }

    /// What a row takes beyond the roofline of its operator.
    fn lost(&self, row: usize, work: &DeviceWork) -> Option<Nanos> {
        let operator = self.timeline.operators.get(self.view.work.get(row)?.operator? as usize)?;
        let shapes = &self.timeline.signatures.get(operator.signature?).shapes;
        // Arguments that are no tensors have no shape.
        let last = shapes.iter().rposition(|shape| !shape.is_empty()).map_or(0, |last| last + 1);
        let share = (*self.shares.get(&(self.timeline.name(operator.name), &shapes[..last]))?)?;
        let lost = Nanos::new((work.duration.get() as f64 * (1.0 - share)).round() as i64);
        (lost > Nanos::ZERO).then_some(lost)
    }

    fn of(&self, row: usize, work: &DeviceWork) -> Arguments<'a> {
        let (timeline, place) = (self.timeline, self.view.work.get(row));
        let operator = place.and_then(|place| timeline.operators.get(place.operator? as usize));
        let range = place.and_then(|place| timeline.ranges.get(place.range? as usize));
        let device = timeline.queues[work.queue.0 as usize].device;
        let idle = self.idle.get(&(device, work.start));
        let signature = operator.and_then(|one| one.signature).map(|one| timeline.signatures.get(one));
        Arguments {
            stage: place.and_then(|place| place.stage).map(Stage::name),
            family: place.map(|place| place.family),
            operator: operator.map(|one| timeline.name(one.name)),
            shapes: signature.map(|one| one.shapes.as_slice()),
            range: range.map(|one| timeline.name(one.name)),
            module: self.view.modules.and_then(|modules| modules.of(row)),
            idle_before: idle.map(|(cause, time)| format!("{time}: {}", idle::cause(*cause))),
            lost: self.lost(row, work).map(|lost| format!("{lost} of {}", work.duration)),
            ..Arguments::default()
        }
    }
}

/// Stages, steps and idle time as events.
fn ours<'a>(view: &'a TimelineView<'a>, first: Nanos) -> impl Iterator<Item = Event<'a>> {
    let lane = move |category, thread, spans: &[NamedSpan]| {
        let event = |span: &NamedSpan| {
            let row = Row { process: OURS, thread };
            Event::complete(
                category,
                span.name.clone().into(),
                row,
                [span.start - first, span.length],
                Arguments::default(),
            )
        };
        spans.iter().map(event).collect::<Vec<_>>()
    };
    let idle = view.idle.iter().map(move |one| {
        let row = Row { process: OURS, thread: IDLE + u64::from(one.device) };
        let arguments = Arguments { device: Some(one.device), ..Arguments::default() };
        Event::complete("idle", idle::cause(one.cause).into(), row, [one.start - first, one.length], arguments)
    });
    lane("stage", STAGES, &view.stages).into_iter().chain(lane("step", STEPS, &view.steps)).chain(idle)
}

/// What our lanes are called, those that there are.
fn our_names(timeline: &Timeline, view: &TimelineView<'_>, with_lost: bool) -> Vec<Event<'static>> {
    let mut names = Vec::new();
    let mut add = |thread, name: String| names.push(Event::row_name("thread_name", OURS, Some(thread), name));
    if !view.stages.is_empty() {
        add(STAGES, "stages".to_owned());
    }
    if !view.steps.is_empty() {
        add(STEPS, "steps on the device".to_owned());
    }
    let devices: BTreeSet<u32> = view.idle.iter().map(|one| one.device).collect();
    for device in devices {
        add(IDLE + u64::from(device), format!("device {device}: idle, by cause"));
    }
    for (queue, of) in timeline.queues.iter().enumerate().filter(|_| with_lost) {
        let stream = of.stream.map_or("stream unknown".to_owned(), |stream| format!("stream {stream}"));
        add(LOST + queue as u64, format!("device {}, {stream}: time beyond the roofline", of.device));
    }
    if !names.is_empty() {
        names.insert(0, Event::row_name("process_name", OURS, None, "llm-perf".to_owned()));
    }
    names
}

/// What rows are called.
fn row_names(timeline: &Timeline) -> Vec<Event<'_>> {
    let mut events = Vec::new();
    for ordinal in timeline.queues.iter().map(|queue| queue.device).collect::<BTreeSet<_>>() {
        // What ROCm lists may be numbered in another way than its work.
        let listed = timeline.devices.iter().find(|device| device.id == DeviceId::cuda(ordinal));
        let name = listed.map(|device| format!(" ({})", device.name)).unwrap_or_default();
        let process = DEVICES + u64::from(ordinal);
        events.push(Event::row_name("process_name", process, None, format!("device {ordinal}{name}")));
    }
    let mut streams: Vec<_> = timeline.queues.iter().map(|queue| (queue.device, queue.stream)).collect();
    streams.sort_unstable();
    streams.dedup();
    for (device, stream) in streams {
        let label = stream.map_or_else(|| "stream".to_owned(), |stream| format!("stream {stream}"));
        let (process, thread) = (DEVICES + u64::from(device), stream.map_or(0, u64::from));
        events.push(Event::row_name("thread_name", process, Some(thread), label));
    }
    let mut processes: Vec<_> = timeline.threads.iter().filter_map(|thread| thread.process).collect();
    processes.sort_unstable();
    processes.dedup();
    for process in processes {
        events.push(Event::row_name("process_name", process.into(), None, format!("process {process}")));
    }
    events
}

/// Microseconds, with every nanosecond: a double has too few digits for times since 1970.
fn micros<S: Serializer>(time: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    let nanoseconds = time.map_or(0, Nanos::get);
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let size = nanoseconds.unsigned_abs();
    let number = RawValue::from_string(format!("{sign}{}.{:03}", size / 1000, size % 1000)).map_err(Error::custom)?;
    number.serialize(serializer)
}
