//! Timelines for tests: one prefill on one thread and one stream, with nothing in it that a test did not ask for.

use types::timeline::{
    Correlation, DeviceQueue, DeviceWork, HostCall, HostOperator, HostThread, OperatorKind, QueueId, Range, RangeStyle,
    ThreadId, Timeline, TraceFormat, WorkKind,
};
use types::{Bytes, Clock, ClockId, ClockKind, Nanos, Stage};

use super::WorkGroup;
use crate::kernel::Family;
use crate::scope::Scope;

/// One kernel and the call that launched it, which takes five nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) name: &'static str,
    pub(crate) operator: Option<&'static str>,
    pub(crate) kind: WorkKind,
    pub(crate) call: i64,
    pub(crate) start: i64,
    pub(crate) duration: i64,
}

impl Launch {
    /// A kernel launched at `call` that runs from `start` on.
    pub(crate) fn new(call: i64, start: i64, duration: i64) -> Self {
        Self { name: "kernel", operator: None, kind: WorkKind::Kernel, call, start, duration }
    }

    /// The same under another name.
    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

/// A trace with a range `prefill` from 0 to `end` around all launches.
pub(crate) fn timeline(end: i64, launches: &[Launch]) -> Timeline {
    let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
    let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
    timeline.threads.push(HostThread { process: Some(1), rank: None, thread: Some(1) });
    timeline.queues.push(DeviceQueue { process: Some(1), rank: None, device: 0, context: Some(1), stream: Some(7) });
    range(&mut timeline, "prefill", 0, end);
    for (place, launch) in launches.iter().enumerate() {
        let correlation = Correlation::new(place as u64 + 1);
        call(&mut timeline, "cudaLaunchKernel", launch.call, 5, correlation);
        if let Some(operator) = launch.operator {
            let name = timeline.names.place(operator);
            timeline.operators.push(HostOperator {
                kind: OperatorKind::Framework,
                name,
                thread: ThreadId(0),
                signature: None,
                start: Nanos::new(launch.call),
                duration: Nanos::new(5),
                call: None,
            });
        }
        let name = timeline.names.place(launch.name);
        timeline.work.push(DeviceWork {
            kind: launch.kind,
            name,
            queue: QueueId(0),
            launch: None,
            start: Nanos::new(launch.start),
            duration: Nanos::new(launch.duration),
            correlation,
            operator: None,
            bytes: None,
            graph_node: None,
        });
    }
    timeline
}

/// Adds a range.
pub(crate) fn range(timeline: &mut Timeline, name: &str, start: i64, end: i64) {
    let name = timeline.names.place(name);
    timeline.ranges.push(Range {
        style: RangeStyle::PushPop,
        name,
        domain: None,
        thread: ThreadId(0),
        start: Nanos::new(start),
        end: Some(Nanos::new(end)),
    });
}

/// Adds a call.
pub(crate) fn call(timeline: &mut Timeline, name: &str, start: i64, duration: i64, correlation: Option<Correlation>) {
    let name = timeline.names.place(name);
    let (start, duration) = (Nanos::new(start), Nanos::new(duration));
    timeline.calls.push(HostCall { name, thread: ThreadId(0), start, duration, correlation });
}

/// A group of one kernel that the device does not wait for.
pub(crate) fn group(stage: Stage, name: &str, family: Family, run: i64) -> WorkGroup {
    WorkGroup {
        scope: Scope::of(stage),
        kind: WorkKind::Kernel,
        name: name.to_owned(),
        family,
        dtype: None,
        casts: None,
        operator: None,
        calls: 1,
        time: Nanos::new(run),
        run: Nanos::new(run),
        wait: Nanos::ZERO,
        bytes: Bytes::ZERO,
        blocks: None,
    }
}
