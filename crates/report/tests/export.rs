//! Exports, read back by the readers of the tools whose formats they are.

use std::collections::BTreeMap;
use std::path::Path;

use llm_perf_report::export::{nsys_sqlite, perfetto_json};
use types::timeline::{Timeline, WorkKind};
use types::{Clock, ClockId, ClockKind, Nanos};

fn collected(name: &str) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/data/collector").join(name);
    ingest::wire::read(name, &std::fs::read(path).unwrap()).unwrap()
}

/// Every kernel, copy and memset as text, in order of time.
fn work(timeline: &Timeline) -> Vec<String> {
    let mut rows: Vec<_> = timeline
        .work
        .iter()
        .map(|work| {
            let queue = &timeline.queues[work.queue.0 as usize];
            let shape = work.launch.map(|shape| *timeline.launch_shapes.get(shape));
            format!(
                "{:>16} {} {:?} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                work.start.get(),
                work.duration.get(),
                work.kind,
                timeline.name(work.name),
                queue.device,
                queue.context,
                queue.stream,
                work.correlation,
                work.bytes,
                work.graph_node,
                shape.map(|shape| (shape.grid, shape.block, shape.registers)),
            )
        })
        .collect();
    rows.sort();
    rows
}

fn calls(timeline: &Timeline) -> Vec<String> {
    let call = |call: &types::timeline::HostCall| {
        let thread = &timeline.threads[call.thread.0 as usize];
        let name = timeline.name(call.name);
        format!("{} {} {name} {:?} {:?}", call.start.get(), call.duration.get(), call.correlation, thread.process)
    };
    timeline.calls.iter().map(call).collect()
}

fn ranges(timeline: &Timeline) -> Vec<String> {
    let range = |range: &types::timeline::Range| {
        let domain = range.domain.map(|domain| timeline.name(domain));
        let name = timeline.name(range.name);
        format!("{} {:?} {:?} {name} {domain:?}", range.start.get(), range.end, range.style)
    };
    timeline.ranges.iter().map(range).collect()
}

#[test]
fn the_database_holds_what_the_timeline_does() {
    for file in ["cuda.wire", "eager.wire", "graph.wire", "graph-whole.wire", "window.wire"] {
        let timeline = collected(file);
        let again =
            ingest::nsys::sqlite::read("export.sqlite", &nsys_sqlite(&timeline, analysis::kernel::short_name)).unwrap();
        assert_eq!(work(&again), work(&timeline), "{file}");
        assert_eq!(calls(&again), calls(&timeline), "{file}");
        assert_eq!(ranges(&again), ranges(&timeline), "{file}");
        assert_eq!(again.devices, timeline.devices, "{file}");
        assert_eq!(again.clock.unix_ns_at_zero, timeline.clock.unix_ns_at_zero);
        assert_eq!(again.quality, [], "{file}");
    }
}

#[test]
fn rows_and_texts_over_many_pages_come_back() {
    let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
    let small = collected("cuda.wire");
    let mut large = Timeline { work: Vec::new(), clock, ..small.clone() };
    let long = large.names.place(&*format!("void kernel<{}>()", "very_long_argument, ".repeat(5000)));
    let pattern = small.work.iter().find(|work| work.kind == WorkKind::Kernel).unwrap();
    for number in 0..40_000 {
        let mut work = pattern.clone();
        work.start = Nanos::new(number * 1000);
        if number % 10_000 == 0 {
            work.name = long;
        }
        large.work.push(work);
    }
    let again =
        ingest::nsys::sqlite::read("export.sqlite", &nsys_sqlite(&large, analysis::kernel::short_name)).unwrap();
    assert_eq!(again.work.len(), 40_000);
    assert_eq!(work(&again), work(&large));
}

#[test]
fn an_empty_timeline_makes_a_database_without_rows() {
    let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
    let empty = Timeline::new(types::timeline::TraceFormat::Wire, clock);
    let again =
        ingest::nsys::sqlite::read("export.sqlite", &nsys_sqlite(&empty, analysis::kernel::short_name)).unwrap();
    assert!(again.work.is_empty() && again.calls.is_empty() && again.ranges.is_empty());
}

#[test]
fn trace_events_hold_the_kernels_and_what_launched_them() {
    let timeline = collected("eager.wire");
    let text = perfetto_json(&timeline).unwrap();
    let trace = ingest::torch::read("trace.json", text.as_bytes(), &ingest::torch::TorchSettings::default()).unwrap();
    let again = trace.timeline;
    let kernels = |timeline: &Timeline| {
        let mut counts: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for work in timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel) {
            let entry = counts.entry(timeline.name(work.name).to_owned()).or_default();
            *entry = (entry.0 + 1, entry.1 + work.duration.get());
        }
        counts
    };
    assert_eq!(kernels(&again), kernels(&timeline));
    assert_eq!(again.calls.len(), timeline.calls.len());
    assert_eq!(again.ranges.len(), timeline.ranges.len());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let phase = |wanted: &str| {
        let events = document["traceEvents"].as_array().unwrap();
        events.iter().filter(|event| event["ph"] == wanted).count()
    };
    assert_eq!((phase("s"), phase("f")), (timeline.calls.len(), timeline.work.len()));
}

#[test]
fn kernels_of_a_graph_say_what_they_were_captured_in() {
    let timeline = collected("graph.wire");
    let document: serde_json::Value = serde_json::from_str(&perfetto_json(&timeline).unwrap()).unwrap();
    let mut layers: BTreeMap<String, u64> = BTreeMap::new();
    for event in document["traceEvents"].as_array().unwrap() {
        if let Some(ranges) = event["args"]["captured in"].as_str() {
            assert!(event["args"]["graph node id"].is_u64(), "{event}");
            *layers.entry(ranges.to_owned()).or_default() += 1;
        }
    }
    let nodes = timeline.graph_nodes.len();
    assert!(nodes > 0 && !layers.is_empty(), "{nodes} {layers:?}");
    // Every layer is captured once and launched at every step, with as many kernels as any other.
    let counts: std::collections::BTreeSet<u64> = layers.values().copied().collect();
    assert_eq!(counts.len(), 1, "{layers:?}");
    assert!(layers.keys().all(|ranges| ranges.starts_with("layer_")), "{layers:?}");
}
