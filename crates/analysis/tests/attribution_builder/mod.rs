//! Small timelines made by hand.
//!
//! Threads 0 and 1 and queues 0 and 1 (device 0) belong to process 1, thread 2 and queue 2 (device 1) to process 2.
#![allow(dead_code, reason = "each test crate makes its own")]

use types::timeline::{
    Correlation, DeviceQueue, DeviceWork, HostCall, HostOperator, HostThread, OperatorCallId, OperatorKind,
    OperatorSignature, QueueId, Range, RangeStyle, ThreadId, Timeline, TraceFormat, WorkKind,
};
use types::{Clock, ClockId, ClockKind, Nanos};

/// No rows yet.
pub(crate) fn empty() -> Timeline {
    let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
    let mut timeline = Timeline::new(TraceFormat::Wire, clock);
    for (number, process, device) in [(0, 1, 0), (1, 1, 0), (2, 2, 1)] {
        let process = Some(process);
        timeline.threads.push(HostThread { process, rank: None, thread: Some(number) });
        let stream = Some(number as u32);
        timeline.queues.push(DeviceQueue { process, rank: None, device, context: None, stream });
    }
    timeline
}

/// A call with a correlation number; 0 for none.
pub(crate) fn call(timeline: &mut Timeline, thread: u32, name: &str, start: i64, duration: i64, number: u64) {
    let name = timeline.names.place(name);
    timeline.calls.push(HostCall {
        name,
        thread: ThreadId(thread),
        start: Nanos::new(start),
        duration: Nanos::new(duration),
        correlation: Correlation::new(number),
    });
}

/// A kernel with a correlation number; 0 for none.
pub(crate) fn kernel(timeline: &mut Timeline, queue: u32, name: &str, start: i64, duration: i64, number: u64) {
    let name = timeline.names.place(name);
    timeline.work.push(DeviceWork {
        kind: WorkKind::Kernel,
        name,
        queue: QueueId(queue),
        launch: None,
        start: Nanos::new(start),
        duration: Nanos::new(duration),
        correlation: Correlation::new(number),
        operator: None,
        bytes: None,
        graph_node: None,
    });
}

/// A kernel and the call that launches it, ten nanoseconds before.
pub(crate) fn launched(timeline: &mut Timeline, thread: u32, name: &str, start: i64, duration: i64) {
    let number = timeline.calls.len() as u64 + 1;
    call(timeline, thread, "cudaLaunchKernel", start - 10, 2, number);
    kernel(timeline, thread, name, start, duration, number);
}

/// A pushed range; without an end it is still open.
pub(crate) fn range(
    timeline: &mut Timeline,
    thread: u32,
    domain: Option<&str>,
    name: &str,
    start: i64,
    end: Option<i64>,
) {
    let (name, domain) = (timeline.names.place(name), domain.map(|domain| timeline.names.place(domain)));
    timeline.ranges.push(Range {
        style: RangeStyle::PushPop,
        name,
        domain,
        thread: ThreadId(thread),
        start: Nanos::new(start),
        end: end.map(Nanos::new),
    });
}

/// A framework operator with the shapes of its arguments.
pub(crate) fn operator(timeline: &mut Timeline, name: &str, shapes: &[&[u64]], start: i64, duration: i64) {
    let name = timeline.names.place(name);
    let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
    let signature = timeline.signatures.place_owned(OperatorSignature { shapes, ..OperatorSignature::default() });
    timeline.operators.push(HostOperator {
        kind: OperatorKind::Framework,
        name,
        thread: ThreadId(0),
        signature: Some(signature),
        start: Nanos::new(start),
        duration: Nanos::new(duration),
        call: OperatorCallId::new(timeline.operators.len() as u64 + 1),
    });
}
