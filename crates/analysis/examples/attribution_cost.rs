//! What attribution costs on a large trace: `cargo run --release -p llm-perf-analysis --example attribution_cost`.
//!
//! Makes a timeline of 1.45 million kernels, a launch call for each and as many other calls, and 7 million nested ranges
//! on four threads of two processes, its rows shuffled a little as real sources have them. Numbers can be given: kernels, then
//! ranges per kernel.

use llm_perf_analysis::attribution::{AttributionSettings, attribute};
use llm_perf_analysis::{PlacedTimeline, device_times};
use types::timeline::{
    Correlation, DeviceQueue, DeviceWork, HostCall, HostThread, NameId, QueueId, Range, RangeStyle, ThreadId, Timeline,
    TraceFormat, WorkKind,
};
use types::{Clock, ClockId, ClockKind, Nanos};

const THREADS: u32 = 4;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|number| number.parse::<u64>().ok());
    let kernels = numbers.next().unwrap_or(1_450_000);
    let ranges = numbers.next().unwrap_or(5);
    let timeline = timeline(kernels, ranges);
    println!("{} kernels, {} calls, {} ranges", timeline.work.len(), timeline.calls.len(), timeline.ranges.len());
    let begin = processor_seconds();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    println!("attributed in {:.2} CPU-s", processor_seconds() - begin);
    let begin = processor_seconds();
    let sums = attribution.projections.sums(&timeline);
    println!("{} range names projected in {:.2} CPU-s", sums.len(), processor_seconds() - begin);
    let begin = processor_seconds();
    let placed =
        PlacedTimeline { timeline: &timeline, attribution: &attribution, rank: None, devices: Default::default() };
    for device in device_times(&[placed]) {
        println!("{}: busy {}, idle {}", device.device, device.busy_ns, device.idle_ns);
    }
    println!("busy and idle time in {:.2} CPU-s", processor_seconds() - begin);
}

/// Time this program has had a processor, so that a busy machine does not change the answer; zero where the system does
/// not tell.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn timeline(kernels: u64, ranges_per_kernel: u64) -> Timeline {
    let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
    let mut timeline = Timeline::new(TraceFormat::Wire, clock);
    for thread in 0..THREADS {
        let process = Some(100 + thread / 2);
        timeline.threads.push(HostThread { process, rank: None, thread: Some(u64::from(thread)) });
        let (device, stream) = (thread / 2, Some(7));
        timeline.queues.push(DeviceQueue { process, rank: None, device, context: Some(1), stream });
    }
    let range_names: Vec<NameId> = (0..2_000).map(|name| timeline.names.place(&format!("layer {name}"))).collect();
    let kernel_names: Vec<NameId> = (0..200).map(|name| timeline.names.place(&format!("kernel_{name}"))).collect();
    let (launch, other) = (timeline.names.place("cudaLaunchKernel"), timeline.names.place("cudaGetLastError"));
    let decode = timeline.names.place("decode");
    for thread in 0..THREADS {
        let (thread, end) = (ThreadId(thread), Some(Nanos::new((kernels as i64 + 1) * 10_000)));
        timeline.ranges.push(Range {
            style: RangeStyle::PushPop,
            name: decode,
            domain: None,
            thread,
            start: Nanos::new(-1),
            end,
        });
    }
    for number in 0..kernels {
        let (thread, start) = (ThreadId((number % u64::from(THREADS)) as u32), number as i64 * 10_000);
        // Nested around the launch, the innermost first, as ranges are written when they close.
        for depth in 0..ranges_per_kernel {
            let margin = depth as i64 * 100 + 100;
            timeline.ranges.push(Range {
                style: RangeStyle::PushPop,
                name: range_names[((number * 7 + depth) % 2_000) as usize],
                domain: None,
                thread,
                start: Nanos::new(start - margin),
                end: Some(Nanos::new(start + 2_000 + margin)),
            });
        }
        // Numbers are unique within a process only.
        let correlation = Correlation::new(number / 4 * 2 + number % 2 + 1);
        for (name, offset, correlation) in
            [(launch, 0, correlation), (other, 1_500, Correlation::new(number + 1 + kernels))]
        {
            let (start, duration) = (Nanos::new(start + offset), Nanos::new(500));
            timeline.calls.push(HostCall { name, thread, start, duration, correlation });
        }
        timeline.work.push(DeviceWork {
            kind: WorkKind::Kernel,
            name: kernel_names[(number % 200) as usize],
            queue: QueueId(thread.0),
            launch: None,
            start: Nanos::new(start + 20_000 + (number as i64 * 37) % 5_000),
            duration: Nanos::new(3_000),
            correlation,
            operator: None,
            bytes: None,
            graph_node: None,
        });
    }
    timeline
}
