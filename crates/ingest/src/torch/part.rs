//! A stretch of a trace as rows: what events become.
//!
//! Large traces are read in several stretches at once. Each is a timeline of its own whose tables keep the order in which
//! values were first seen, so that stretches put together in the order of the file are what one reading from beginning to
//! end would have given.
//!
//! A trace repeats itself: the same names, threads and signatures come in millions of events. They are recognised by the
//! bytes of their tokens, and looked at once.

use hashbrown::HashMap;
use types::timeline::{
    CopyDirection, Correlation, DeviceQueue, DeviceWork, HostCall, HostOperator, HostThread, MemoryEvent, NameId,
    OperatorCallId, OperatorKind, OperatorSignature, QueueId, Range, RangeStyle, SignatureId, ThreadId, Timeline,
    TraceFormat, WorkKind,
};
use types::{Bytes, Clock, ClockId, ClockKind, LaunchShape, Nanos};

use super::category::Category;
use super::census::{Census, Fault};
use super::event::{Arguments, Event};
use super::lexer::{inside, text};
use super::number::{NotATime, integer, nanoseconds, whole};
use super::signature::{annotated, collective, list, signature};

/// Rows of one stretch.
pub(crate) struct Part {
    pub(crate) timeline: Timeline,
    pub(crate) census: Census,
    /// Annotations around collectives that say what was sent, as operators.
    pub(crate) collectives: Vec<HostOperator>,
    /// Tokens of process and thread, one pair for each of the timeline's threads.
    thread_keys: Vec<Box<[u8]>>,
    threads: HashMap<Box<[u8]>, ThreadId>,
    queues: HashMap<DeviceQueue, QueueId>,
    names: HashMap<Box<[u8]>, Named>,
    signatures: HashMap<Box<[u8]>, Option<SignatureId>>,
    /// For keys of several tokens.
    scratch: Vec<u8>,
    latest_thread: Option<ThreadId>,
}

/// What a name was found to be.
#[derive(Clone, Copy)]
struct Named {
    id: NameId,
    /// Whether the work of an operator of this name depends on arguments that are no tensors.
    takes_values: bool,
}

/// An event that is kept, or why it is skipped.
type EventResult<T> = Result<T, Fault>;

impl Part {
    pub(crate) fn new() -> Self {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        Self {
            timeline: Timeline::new(TraceFormat::TorchProfiler, clock),
            census: Census::default(),
            collectives: Vec::new(),
            thread_keys: Vec::new(),
            threads: HashMap::new(),
            queues: HashMap::new(),
            names: HashMap::new(),
            signatures: HashMap::new(),
            scratch: Vec::new(),
            latest_thread: None,
        }
    }

    /// Counts an event and keeps what it says.
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        match event.phase() {
            Some(b'X') => self.add_span(event),
            Some(b's' | b't' | b'f') => self.census.add(Category::Flow),
            Some(b'i' | b'I' | b'R' | b'n') => {
                if inside(event.name) == b"[memory]" {
                    self.census.add(Category::Memory);
                    let memory = self.memory(event);
                    let kept = memory.map(|memory| self.timeline.memory.push(memory));
                    self.note(kept);
                } else {
                    self.census.add(Category::Instant);
                }
            }
            Some(b'M') => self.census.add(Category::Metadata),
            _ => self.census.add_fault(Fault::Phase),
        }
    }

    fn add_span(&mut self, event: &Event<'_>) {
        let Some(category) = Category::of_span(inside(event.category)) else {
            self.census.add_unknown(&text(event.category));
            return;
        };
        self.census.add(category);
        let kept = match category {
            Category::Operator => self.add_operator(event, OperatorKind::Framework),
            Category::PythonFunction => self.add_operator(event, OperatorKind::Python),
            Category::UserAnnotation => self.add_range(event),
            Category::RuntimeCall | Category::DriverCall => self.add_call(event),
            Category::Kernel | Category::Copy | Category::Memset => self.add_work(event, category),
            _ => Ok(()),
        };
        self.note(kept);
    }

    fn note(&mut self, kept: EventResult<()>) {
        if let Err(fault) = kept {
            self.census.add_fault(fault);
        }
    }

    fn add_operator(&mut self, event: &Event<'_>, kind: OperatorKind) -> EventResult<()> {
        let (start, duration) = span(event)?;
        let Named { id: name, takes_values } = self.name(event)?;
        let operator = HostOperator {
            kind,
            name,
            thread: self.thread(event),
            signature: self.signature(event, takes_values),
            start,
            duration,
            call: operator_call(&event.arguments),
        };
        self.timeline.operators.push(operator);
        Ok(())
    }

    fn add_range(&mut self, event: &Event<'_>) -> EventResult<()> {
        let (start, duration) = span(event)?;
        let name = self.name(event)?.id;
        let thread = self.thread(event);
        let end = Some(start + duration);
        if let Some(signature) = self.annotated_collective(event) {
            let (kind, call) = (OperatorKind::Framework, operator_call(&event.arguments));
            let signature = Some(signature);
            self.collectives.push(HostOperator { kind, name, thread, signature, start, duration, call });
        }
        self.timeline.ranges.push(Range { style: RangeStyle::PushPop, name, domain: None, thread, start, end });
        Ok(())
    }

    fn add_call(&mut self, event: &Event<'_>) -> EventResult<()> {
        let (start, duration) = span(event)?;
        let name = self.name(event)?.id;
        let thread = self.thread(event);
        let correlation = whole(event.arguments.correlation).and_then(Correlation::new);
        self.timeline.calls.push(HostCall { name, thread, start, duration, correlation });
        Ok(())
    }

    fn add_work(&mut self, event: &Event<'_>, category: Category) -> EventResult<()> {
        let (start, duration) = span(event)?;
        let arguments = &event.arguments;
        let kind = match category {
            Category::Kernel => WorkKind::Kernel,
            Category::Copy => WorkKind::Copy(direction(inside(event.name))),
            _ => WorkKind::Fill,
        };
        let queue = self.queue(event)?;
        let name = self.name(event)?.id;
        let launch = launch_shape(arguments).filter(|_| kind == WorkKind::Kernel);
        let work = DeviceWork {
            kind,
            name,
            queue,
            launch: launch.map(|shape| self.timeline.launch_shapes.place_owned(shape)),
            start,
            duration,
            correlation: whole(arguments.correlation).and_then(Correlation::new),
            operator: operator_call(arguments),
            bytes: whole(arguments.bytes).map(Bytes::new),
            graph_node: whole(arguments.graph_node).and_then(std::num::NonZeroU64::new),
        };
        self.timeline.work.push(work);
        Ok(())
    }

    fn memory(&mut self, event: &Event<'_>) -> EventResult<MemoryEvent> {
        let time = time(event.time)?;
        let bytes = integer(event.arguments.bytes).ok_or(Fault::Incomplete)?;
        // The framework numbers kinds of devices; zero is the host.
        let device = match whole(event.arguments.device_type).ok_or(Fault::Incomplete)? {
            0_u32 => None,
            _ => Some(whole(event.arguments.device).ok_or(Fault::Incomplete)?),
        };
        let arguments = &event.arguments;
        let [allocated, reserved] = [arguments.allocated, arguments.reserved].map(|total| whole(total).map(Bytes::new));
        Ok(MemoryEvent { time, thread: self.thread(event), bytes, device, allocated, reserved })
    }

    fn name(&mut self, event: &Event<'_>) -> EventResult<Named> {
        if let Some(name) = self.names.get(event.name) {
            return Ok(*name);
        }
        if !event.name.starts_with(b"\"") {
            return Err(Fault::Incomplete);
        }
        let id = self.timeline.names.place(&*text(event.name));
        let named = Named { id, takes_values: depends_on_values(event.name) };
        self.names.insert(event.name.into(), named);
        Ok(named)
    }

    /// The thread of an event. One without a number is still a thread of its own, told apart by its label.
    fn thread(&mut self, event: &Event<'_>) -> ThreadId {
        self.scratch.clear();
        self.scratch.extend_from_slice(event.process);
        self.scratch.push(0);
        self.scratch.extend_from_slice(event.thread);
        if let Some(latest) = self.latest_thread
            && *self.thread_keys[latest.0 as usize] == *self.scratch
        {
            return latest;
        }
        let thread = match self.threads.get(&*self.scratch) {
            Some(thread) => *thread,
            None => {
                let thread = integer(event.thread).map(|number| number as u64).or_else(|| whole(event.thread));
                let described = HostThread { process: whole(event.process), rank: None, thread };
                self.add_thread(self.scratch.as_slice().into(), described)
            }
        };
        self.latest_thread = Some(thread);
        thread
    }

    fn add_thread(&mut self, key: Box<[u8]>, thread: HostThread) -> ThreadId {
        // A thread takes tens of bytes of the file, so that 32 bits do for files up to a hundred gigabytes.
        let id = ThreadId(u32::try_from(self.timeline.threads.len()).unwrap_or(u32::MAX));
        self.timeline.threads.push(thread);
        self.thread_keys.push(key.clone());
        self.threads.insert(key, id);
        id
    }

    /// The queue of an event. Where its arguments do not say, the profiler's rows do: a process stands for a device there,
    /// a thread for a stream.
    fn queue(&mut self, event: &Event<'_>) -> EventResult<QueueId> {
        let arguments = &event.arguments;
        let device = whole(arguments.device).or_else(|| whole(event.process)).ok_or(Fault::Incomplete)?;
        let stream = whole(arguments.stream).or_else(|| whole(event.thread));
        let context = whole(arguments.context);
        Ok(self.place_queue(DeviceQueue { process: None, rank: None, device, context, stream }))
    }

    fn place_queue(&mut self, queue: DeviceQueue) -> QueueId {
        if let Some(place) = self.queues.get(&queue) {
            return *place;
        }
        let place = QueueId(u32::try_from(self.timeline.queues.len()).unwrap_or(u32::MAX));
        self.timeline.queues.push(queue.clone());
        self.queues.insert(queue, place);
        place
    }

    fn signature(&mut self, event: &Event<'_>, takes_values: bool) -> Option<SignatureId> {
        let arguments = &event.arguments;
        // Of all operators these would make too many signatures: a value may differ in every call.
        let values = if takes_values { arguments.values } else { &[] };
        let tokens = [arguments.shapes, arguments.types, arguments.strides, values];
        let Arguments { collective: called, input_elements, output_elements, .. } = *arguments;
        let Arguments { group_size, group, members, element_type, .. } = *arguments;
        let communicated = [called, input_elements, output_elements, group_size, group, members, element_type];
        let communicated = if called.is_empty() { &[][..] } else { &communicated[..] };
        if communicated.is_empty() && tokens.iter().all(|token| token.is_empty()) {
            return None;
        }
        self.scratch.clear();
        for token in tokens.iter().chain(communicated) {
            self.scratch.extend_from_slice(token);
            self.scratch.push(0);
        }
        let known = self.signatures.get(&*self.scratch).copied();
        let place = known.unwrap_or_else(|| {
            let [shapes, types, strides, values] = tokens;
            let found = signature(shapes, types, strides, values)
                .map(|found| OperatorSignature { collective: collective(arguments), ..found });
            let place = found.map(|found| self.timeline.signatures.place_owned(found));
            self.signatures.insert(self.scratch.as_slice().into(), place);
            place
        });
        if place.is_none() {
            self.census.add_fault(Fault::Signature);
        }
        place
    }

    /// The collective that a framework's annotation is around, `nccl:all_to_all` with the shape of its input.
    fn annotated_collective(&mut self, event: &Event<'_>) -> Option<SignatureId> {
        let name = inside(event.name).strip_prefix(b"nccl:")?;
        let arguments = &event.arguments;
        if arguments.shapes.is_empty() {
            return None;
        }
        let found = signature(arguments.shapes, arguments.types, b"", b"")?;
        let called = annotated(&String::from_utf8_lossy(name), &found);
        Some(self.timeline.signatures.place_owned(OperatorSignature { collective: Some(called), ..found }))
    }

    /// Adds the stretch that follows this one in the file.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.census.absorb(other.census);
        let other_timeline = other.timeline;
        let names = self.timeline.names.absorb(other_timeline.names);
        let shapes = self.timeline.launch_shapes.absorb(other_timeline.launch_shapes);
        let signatures = self.timeline.signatures.absorb(other_timeline.signatures);
        let threads: Vec<_> = other
            .thread_keys
            .into_iter()
            .zip(other_timeline.threads)
            .map(|(key, thread)| match self.threads.get(&key) {
                Some(place) => *place,
                None => self.add_thread(key, thread),
            })
            .collect();
        let queues: Vec<_> = other_timeline.queues.into_iter().map(|queue| self.place_queue(queue)).collect();
        let thread = |old: ThreadId| threads[old.0 as usize];
        let operator = |operator: HostOperator| HostOperator {
            name: names[operator.name.index()],
            thread: thread(operator.thread),
            signature: operator.signature.map(|signature| signatures[signature.index()]),
            ..operator
        };
        self.collectives.extend(other.collectives.into_iter().map(operator));
        let timeline = &mut self.timeline;
        timeline.work.extend(other_timeline.work.into_iter().map(|work| DeviceWork {
            name: names[work.name.index()],
            queue: queues[work.queue.0 as usize],
            launch: work.launch.map(|launch| shapes[launch.index()]),
            ..work
        }));
        timeline.calls.extend(other_timeline.calls.into_iter().map(|call| HostCall {
            name: names[call.name.index()],
            thread: thread(call.thread),
            ..call
        }));
        timeline.operators.extend(other_timeline.operators.into_iter().map(operator));
        timeline.ranges.extend(other_timeline.ranges.into_iter().map(|range| Range {
            name: names[range.name.index()],
            thread: thread(range.thread),
            ..range
        }));
        let memory = other_timeline.memory.into_iter();
        timeline.memory.extend(memory.map(|event| MemoryEvent { thread: thread(event.thread), ..event }));
    }
}

/// Start and duration.
fn span(event: &Event<'_>) -> EventResult<(Nanos, Nanos)> {
    let (start, duration) = (time(event.time)?, time(event.duration)?);
    if duration < Nanos::ZERO {
        return Err(Fault::Negative);
    }
    if Timeline::time((start + duration).get()).is_none() {
        return Err(Fault::OutOfRange);
    }
    Ok((start, duration))
}

fn time(token: &[u8]) -> EventResult<Nanos> {
    nanoseconds(token).map_err(|reason| match reason {
        NotATime::NotANumber => Fault::Incomplete,
        NotATime::TooLarge => Fault::OutOfRange,
    })
}

/// Whether the work of an operator of this name depends on arguments that are no tensors: strides, masks.
fn depends_on_values(name: &[u8]) -> bool {
    [&b"conv"[..], b"attention", b"attn"].iter().any(|word| memchr::memmem::find(name, word).is_some())
}

fn operator_call(arguments: &Arguments<'_>) -> Option<OperatorCallId> {
    whole(arguments.external_id).and_then(OperatorCallId::new)
}

/// How a kernel was launched, where grid and block are there.
fn launch_shape(arguments: &Arguments<'_>) -> Option<LaunchShape> {
    let three = |token: &[u8]| {
        let (mut sizes, mut count) = ([0; 3], 0);
        list(token, 0, |size| {
            *sizes.get_mut(count)? = whole(size)?;
            count += 1;
            Some(())
        })?;
        (count == 3).then_some(sizes)
    };
    Some(LaunchShape {
        grid: three(arguments.grid)?,
        block: three(arguments.block)?,
        registers: whole(arguments.registers),
        shared_static_bytes: None,
        shared_dynamic_bytes: None,
        shared_total_bytes: whole(arguments.shared_memory),
    })
}

/// The direction in a name such as `Memcpy HtoD (Pageable -> Device)`.
fn direction(name: &[u8]) -> CopyDirection {
    let rest = name.strip_prefix(b"Memcpy ").unwrap_or_default();
    match rest.get(..4).unwrap_or_default() {
        b"HtoD" => CopyDirection::HostToDevice,
        b"DtoH" => CopyDirection::DeviceToHost,
        b"DtoD" => CopyDirection::DeviceToDevice,
        b"PtoP" => CopyDirection::PeerToPeer,
        b"HtoH" => CopyDirection::HostToHost,
        _ => CopyDirection::Unknown,
    }
}
