//! A timeline as Chrome's trace events, which <https://ui.perfetto.dev> and `chrome://tracing` open. Categories and arguments
//! are those of the torch profiler, so that tools for its traces find their way.

use std::collections::HashMap;
use std::fmt::Write;
use std::num::NonZeroU64;

use types::Nanos;
use types::timeline::{CapturedRangeId, DeviceWork, Timeline, WorkKind};

/// Devices are shown as processes with numbers no process has.
const DEVICES: u64 = 1 << 32;

/// The document.
pub fn perfetto_json(timeline: &Timeline) -> String {
    let mut out = String::from("{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",");
    if let Some(zero) = timeline.clock.unix_ns_at_zero {
        let _ = write!(out, "\"baseTimeNanoseconds\":{},", zero.get());
    }
    out.push_str("\"traceEvents\":[");
    let mut events = Events { out, first: true };
    names(&mut events, timeline);
    for range in &timeline.ranges {
        let thread = &timeline.threads[range.thread.0 as usize];
        let end = range.end.unwrap_or(range.start);
        let domain = range.domain.map(|domain| timeline.name(domain));
        let name = timeline.name(range.name);
        let shown = domain.map_or_else(|| name.to_owned(), |domain| format!("{domain}@{name}"));
        let (process, thread) = (thread.process.map_or(0, u64::from), thread.thread.unwrap_or(0));
        events.complete("user_annotation", &shown, process, thread, range.start, end - range.start, "");
    }
    for call in &timeline.calls {
        let thread = &timeline.threads[call.thread.0 as usize];
        let (process, thread) = (thread.process.map_or(0, u64::from), thread.thread.unwrap_or(0));
        let arguments = call.correlation.map(|number| format!("\"correlation\":{}", number.0)).unwrap_or_default();
        events.complete(
            "cuda_runtime",
            timeline.name(call.name),
            process,
            thread,
            call.start,
            call.duration,
            &arguments,
        );
        if let Some(number) = call.correlation {
            events.flow('s', number.0.get(), process, thread, call.start);
        }
    }
    let captured = captured(timeline);
    for work in &timeline.work {
        device_work(&mut events, timeline, &captured, work);
    }
    events.out.push_str("]}\n");
    events.out
}

/// Ranges that nodes of graphs were captured in, outermost first, by process and node.
type Captured = HashMap<(Option<u32>, NonZeroU64), String>;

fn captured(timeline: &Timeline) -> Captured {
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

fn device_work(events: &mut Events, timeline: &Timeline, captured: &Captured, work: &DeviceWork) {
    let queue = &timeline.queues[work.queue.0 as usize];
    let category = match work.kind {
        WorkKind::Kernel => "kernel",
        WorkKind::Copy(_) => "gpu_memcpy",
        WorkKind::Fill => "gpu_memset",
        WorkKind::Graph => "cuda_graph",
    };
    let mut arguments = format!("\"device\":{}", queue.device);
    for (key, value) in [("context", queue.context), ("stream", queue.stream)] {
        if let Some(value) = value {
            let _ = write!(arguments, ",\"{key}\":{value}");
        }
    }
    if let Some(number) = work.correlation {
        let _ = write!(arguments, ",\"correlation\":{}", number.0);
    }
    if let Some(bytes) = work.bytes {
        let _ = write!(arguments, ",\"bytes\":{}", bytes.get());
    }
    if let Some(node) = work.graph_node {
        let _ = write!(arguments, ",\"graph node id\":{node}");
        if let Some(ranges) = captured.get(&(queue.process, node)) {
            let _ = write!(arguments, ",\"captured in\":{}", quoted(ranges));
        }
    }
    if let Some(shape) = work.launch.map(|shape| timeline.launch_shapes.get(shape)) {
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let _ = write!(arguments, ",\"grid\":[{gx},{gy},{gz}],\"block\":[{bx},{by},{bz}]");
        if let Some(registers) = shape.registers {
            let _ = write!(arguments, ",\"registers per thread\":{registers}");
        }
    }
    let (device, stream) = (DEVICES + u64::from(queue.device), queue.stream.map_or(0, u64::from));
    events.complete(category, timeline.name(work.name), device, stream, work.start, work.duration, &arguments);
    if let Some(number) = work.correlation {
        events.flow('f', number.0.get(), device, stream, work.start);
    }
}

/// What rows are called.
fn names(events: &mut Events, timeline: &Timeline) {
    for device in &timeline.devices {
        let number = device.id.as_str().strip_prefix("cuda:").and_then(|number| number.parse::<u64>().ok());
        if let Some(number) = number {
            let label = format!("{} ({})", device.id, device.name);
            events.name("process_name", DEVICES + number, None, &label);
        }
    }
    let mut streams: Vec<_> = timeline.queues.iter().map(|queue| (queue.device, queue.stream)).collect();
    streams.sort_unstable();
    streams.dedup();
    for (device, stream) in streams {
        let label = stream.map_or_else(|| "stream".to_owned(), |stream| format!("stream {stream}"));
        events.name("thread_name", DEVICES + u64::from(device), Some(stream.map_or(0, u64::from)), &label);
    }
    let mut processes: Vec<_> = timeline.threads.iter().filter_map(|thread| thread.process).collect();
    processes.sort_unstable();
    processes.dedup();
    for process in processes {
        events.name("process_name", process.into(), None, &format!("process {process}"));
    }
}

/// Events while they are written.
struct Events {
    out: String,
    first: bool,
}

impl Events {
    fn begin(&mut self) {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        self.out.push('\n');
    }

    #[allow(clippy::too_many_arguments, reason = "one event, field by field")]
    fn complete(
        &mut self,
        category: &str,
        name: &str,
        process: u64,
        thread: u64,
        start: Nanos,
        duration: Nanos,
        arguments: &str,
    ) {
        self.begin();
        let _ = write!(
            self.out,
            "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{},\"pid\":{process},\"tid\":{thread},\"ts\":{},\"dur\":{},\
             \"args\":{{{arguments}}}}}",
            quoted(name),
            micros(start),
            micros(duration)
        );
    }

    fn flow(&mut self, phase: char, number: u64, process: u64, thread: u64, time: Nanos) {
        self.begin();
        let end = if phase == 'f' { ",\"bp\":\"e\"" } else { "" };
        let _ = write!(
            self.out,
            "{{\"ph\":\"{phase}\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":{number},\"pid\":{process},\"tid\":{thread},\
             \"ts\":{}{end}}}",
            micros(time)
        );
    }

    fn name(&mut self, what: &str, process: u64, thread: Option<u64>, label: &str) {
        self.begin();
        let thread = thread.map(|thread| format!(",\"tid\":{thread}")).unwrap_or_default();
        let _ = write!(
            self.out,
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{process}{thread},\"args\":{{\"name\":{}}}}}",
            quoted(label)
        );
    }
}

/// Microseconds, with every nanosecond.
fn micros(time: Nanos) -> String {
    let nanoseconds = time.get();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let size = nanoseconds.unsigned_abs();
    format!("{sign}{}.{:03}", size / 1000, size % 1000)
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}
