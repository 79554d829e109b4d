//! Small timelines for tests, put through the real attribution.

use types::timeline::{
    Correlation, DeviceQueue, DeviceWork, HostCall, HostOperator, HostThread, MemoryEvent, OperatorKind,
    OperatorSignature, QueueId, Range, RangeStyle, ThreadId, Timeline, TraceFormat, WorkKind,
};
use types::{Clock, ClockId, ClockKind, Nanos};

/// A timeline that grows row by row, on one thread and one device.
pub(super) struct Builder(pub(super) Timeline);

impl Builder {
    pub(super) fn new() -> Self {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
        timeline.threads.push(HostThread { process: Some(1), rank: None, thread: Some(1) });
        for stream in [7, 8] {
            let (process, device, context) = (Some(1), 0, Some(1));
            timeline.queues.push(DeviceQueue { process, rank: None, device, context, stream: Some(stream) });
        }
        Self(timeline)
    }

    pub(super) fn range(mut self, name: &str, start: i64, end: i64) -> Self {
        let name = self.0.names.place(name);
        let (start, end) = (Nanos::new(start), Some(Nanos::new(end)));
        self.0.ranges.push(Range { style: RangeStyle::PushPop, name, domain: None, thread: ThreadId(0), start, end });
        self
    }

    pub(super) fn operator(mut self, name: &str, start: i64, end: i64, shapes: &[&[u64]]) -> Self {
        let name = self.0.names.place(name);
        let shapes: Vec<_> = shapes.iter().map(|shape| shape.to_vec()).collect();
        let types = vec!["c10::BFloat16".to_owned(); shapes.len()];
        let signature =
            self.0.signatures.place_owned(OperatorSignature { shapes, types, ..OperatorSignature::default() });
        self.0.operators.push(HostOperator {
            kind: OperatorKind::Framework,
            name,
            thread: ThreadId(0),
            signature: Some(signature),
            start: Nanos::new(start),
            duration: Nanos::new(end - start),
            call: None,
        });
        self
    }

    pub(super) fn allocation(mut self, time: i64, bytes: i64) -> Self {
        self.0.memory.push(MemoryEvent {
            time: Nanos::new(time),
            thread: ThreadId(0),
            bytes,
            device: Some(0),
            allocated: None,
            reserved: None,
        });
        self
    }

    /// A kernel on one of two streams, launched at a moment.
    pub(super) fn kernel(mut self, name: &str, launched: i64, stream: u32, start: i64, end: i64) -> Self {
        let correlation = Correlation::new(self.0.calls.len() as u64 + 1);
        let call = self.0.names.place("cudaLaunchKernel");
        let duration = Nanos::new(1);
        self.0.calls.push(HostCall {
            name: call,
            thread: ThreadId(0),
            start: Nanos::new(launched),
            duration,
            correlation,
        });
        self.0.work.push(DeviceWork {
            kind: WorkKind::Kernel,
            name: self.0.names.place(name),
            queue: QueueId(stream),
            launch: None,
            start: Nanos::new(start),
            duration: Nanos::new(end - start),
            correlation,
            operator: None,
            bytes: None,
            graph_node: None,
        });
        self
    }
}
