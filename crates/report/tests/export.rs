//! Exports, read back by the readers of the tools whose formats they are.

use std::collections::BTreeMap;
use std::path::Path;

use llm_perf_report::export::{self, perfetto_json};
use types::Nanos;
use types::timeline::{Timeline, WorkKind};
use types::view::{TimelineView, WorkModules};

fn collected(name: &str) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/data/collector").join(name);
    ingest::wire::read(name, &std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn trace_events_hold_the_kernels_and_what_launched_them() {
    let timeline = collected("eager.wire");
    let text = perfetto_json(&timeline, &TimelineView::default(), &[]).unwrap();
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

/// What <https://perfetto.dev/docs/faq> and the reader of `trace_processor` (`importers/json`) ask of trace events. Their tool itself is
/// no package: its wrapper on PyPI downloads it from a storage of Google's when it is first used.
#[test]
fn trace_events_follow_the_rules_of_perfetto() {
    // The rows of the small database are made up: calls of one thread overlap.
    for (name, timeline) in captures().into_iter().filter(|(name, _)| *name != "nsys") {
        let document: serde_json::Value =
            serde_json::from_str(&perfetto_json(&timeline, &TimelineView::default(), &[]).unwrap()).unwrap();
        let mut rows: BTreeMap<(u32, u32), Vec<(i64, i64)>> = BTreeMap::new();
        let (mut starts, mut ends) = (BTreeMap::new(), Vec::new());
        for event in document["traceEvents"].as_array().unwrap() {
            let number = |key: &str| {
                let found = event[key].as_u64().unwrap_or_else(|| panic!("{name}: no {key} in {event}"));
                u32::try_from(found).unwrap_or_else(|_| panic!("{name}: {key} is read as 32 bits: {event}"))
            };
            // A double, as their reader takes it.
            let time = |key: &str| (event[key].as_f64().unwrap() * 1_000.0).round() as i64;
            match event["ph"].as_str().unwrap() {
                "X" => {
                    assert!(time("dur") >= 0 && event["name"].is_string(), "{name}: {event}");
                    rows.entry((number("pid"), number("tid"))).or_default().push((time("ts"), time("dur")));
                }
                "s" => drop(starts.insert(event["id"].as_u64().unwrap(), (number("pid"), number("tid"), time("ts")))),
                "f" => {
                    assert_eq!(event["bp"], "e", "{name}: bound to the event around it");
                    ends.push((event["id"].as_u64().unwrap(), number("pid"), number("tid"), time("ts")));
                }
                "M" => assert!(event["args"]["name"].is_string() && number("pid") > 0, "{name}: {event}"),
                other => panic!("{name}: phase {other}"),
            }
        }
        // Events of a row lie inside each other or apart; others are dropped.
        for (row, events) in &mut rows {
            events.sort_by_key(|(start, length)| (*start, std::cmp::Reverse(*length)));
            let mut open: Vec<i64> = Vec::new();
            for (start, length) in &*events {
                open.retain(|end| end > start);
                let inside = open.last().is_none_or(|end| start + length <= *end);
                assert!(inside, "{name}: {row:?} at {start} ns, {length} ns long");
                open.push(start + length);
            }
        }
        // Both ends of an arrow lie on an event.
        let on_event = |process: u32, thread: u32, at: i64| {
            rows.get(&(process, thread))
                .is_some_and(|events| events.iter().any(|(start, length)| (*start..=start + length).contains(&at)))
        };
        assert!(!ends.is_empty(), "{name}");
        for (id, process, thread, at) in ends {
            assert!(on_event(process, thread, at), "{name}: arrow {id} ends nowhere");
            if let Some((process, thread, at)) = starts.get(&id).copied() {
                assert!(on_event(process, thread, at), "{name}: arrow {id} starts nowhere");
            }
        }
    }
}

#[test]
fn times_since_1970_keep_their_nanoseconds_in_perfetto() {
    let mut timeline = collected("eager.wire");
    let since = Nanos::new(1_661_203_463_000_000_000);
    for start in timeline.work.iter_mut().map(|work| &mut work.start) {
        *start += since;
    }
    for start in timeline.calls.iter_mut().map(|call| &mut call.start) {
        *start += since;
    }
    timeline.ranges.clear();
    timeline.operators.clear();
    timeline.clock.unix_ns_at_zero = Some(Nanos::ZERO);
    let document: serde_json::Value =
        serde_json::from_str(&perfetto_json(&timeline, &TimelineView::default(), &[]).unwrap()).unwrap();
    let base = document["baseTimeNanoseconds"].as_i64().unwrap();
    let first = timeline.calls.iter().map(|call| call.start).chain(timeline.work.iter().map(|work| work.start)).min();
    assert_eq!(base, first.unwrap().get());
    let events = document["traceEvents"].as_array().unwrap();
    let kernels = events.iter().filter(|event| event["cat"] == "kernel");
    let mut found: Vec<i64> =
        kernels.map(|event| (event["ts"].as_f64().unwrap() * 1_000.0).round() as i64 + base).collect();
    let work = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    let mut expected: Vec<i64> = work.map(|work| work.start.get()).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn kernels_of_a_graph_say_what_they_were_captured_in() {
    let timeline = collected("graph.wire");
    let document: serde_json::Value =
        serde_json::from_str(&perfetto_json(&timeline, &TimelineView::default(), &[]).unwrap()).unwrap();
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

#[test]
fn what_is_known_of_kernels_is_exported_with_them() {
    for (name, timeline) in captures() {
        let attribution = analysis::attribution::attribute(&timeline, &Default::default());
        let module = |row: usize| (!row.is_multiple_of(3)).then_some("model.layers.0");
        let modules = WorkModules::new((0..timeline.work.len()).map(module));
        let view = analysis::view::timeline(&timeline, &attribution, &modules);
        let document: serde_json::Value = serde_json::from_str(&perfetto_json(&timeline, &view, &[]).unwrap()).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        // Every nanosecond of idle time is in a lane of its device, and no two events of a lane overlap.
        let idle: Vec<_> = events.iter().filter(|event| event["cat"] == "idle").collect();
        let micros = |event: &serde_json::Value, key: &str| (event[key].as_f64().unwrap() * 1e3).round() as i64;
        let sum: i64 = idle.iter().map(|event| micros(event, "dur")).sum();
        assert_eq!(sum, view.idle.iter().map(|one| one.length.get()).sum::<i64>(), "{name}");
        let mut lanes: BTreeMap<u64, Vec<(i64, i64)>> = BTreeMap::new();
        for event in &idle {
            let start = micros(event, "ts");
            lanes.entry(event["tid"].as_u64().unwrap()).or_default().push((start, start + micros(event, "dur")));
        }
        for spans in lanes.values_mut() {
            spans.sort_unstable();
            assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{name}");
        }
        // Each kernel says its family, and its stage and operator where they are known.
        let kernels: Vec<_> = events.iter().filter(|event| event["cat"] == "kernel").collect();
        assert!(kernels.iter().all(|kernel| kernel["args"]["kernel family"].is_string()), "{name}");
        let with = |key: &str| events.iter().filter(|event| event["args"][key].is_string()).count();
        let places: Vec<_> = (0..timeline.work.len()).filter_map(|row| view.work.get(row)).collect();
        assert_eq!(with("stage"), places.iter().filter(|place| place.stage.is_some()).count(), "{name}");
        assert_eq!(with("operator"), places.iter().filter(|place| place.operator.is_some()).count(), "{name}");
        assert_eq!(with("module"), (0..timeline.work.len()).filter(|row| !row.is_multiple_of(3)).count(), "{name}");
        assert_eq!(events.iter().filter(|event| event["cat"] == "stage").count(), view.stages.len(), "{name}");
    }
}

/// Sum of the lengths of everything on each queue, with the parts that overlap counted once.
fn busy(timeline: &Timeline) -> i64 {
    let mut sum = 0;
    for queue in 0..timeline.queues.len() {
        let mut spans: Vec<_> = timeline.work.iter().filter(|work| work.queue.0 as usize == queue).collect();
        spans.sort_by_key(|work| work.start);
        let mut at = Nanos::new(i64::MIN / 2);
        for work in spans {
            sum += (work.end() - work.start.max(at)).get().max(0);
            at = at.max(work.end());
        }
    }
    sum
}

/// Real captures: of the torch profiler, of Nsight Systems, and of our collector.
fn captures() -> Vec<(&'static str, Timeline)> {
    let fixture = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name);
        std::fs::read(path).unwrap()
    };
    vec![
        (
            "torch",
            ingest::torch::read("small.json", &fixture("torch/small.json"), &ingest::torch::TorchSettings::default())
                .unwrap()
                .timeline,
        ),
        ("nsys", ingest::nsys::sqlite::read("small.sqlite", &fixture("nsys/small.sqlite")).unwrap()),
        ("eager.wire", collected("eager.wire")),
        ("graph.wire", collected("graph.wire")),
    ]
}

#[test]
fn collapsed_stacks_sum_to_the_time_on_the_streams() {
    for (name, timeline) in captures() {
        let text = export::collapsed_stacks(&timeline);
        let sum: i64 = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap()).sum();
        assert_eq!(sum, busy(&timeline), "{name}");
        // A kernel is found beneath the code that launched it.
        assert!(text.lines().any(|line| line.matches(';').count() > 1) || timeline.calls.is_empty(), "{name}: {text}");
    }
}
