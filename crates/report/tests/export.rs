//! Exports, read back by the readers of the tools whose formats they are.

use std::collections::BTreeMap;
use std::path::Path;

use llm_perf_report::export::{self, nsys_sqlite, perfetto_json};
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

/// What <https://perfetto.dev/docs/faq> and the reader of `trace_processor` (`importers/json`) ask of trace events. Their tool itself is
/// no package: its wrapper on PyPI downloads it from a storage of Google's when it is first used.
#[test]
fn trace_events_follow_the_rules_of_perfetto() {
    // The rows of the small database are made up: calls of one thread overlap.
    for (name, timeline) in captures().into_iter().filter(|(name, _)| *name != "nsys") {
        let document: serde_json::Value = serde_json::from_str(&perfetto_json(&timeline).unwrap()).unwrap();
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
    let document: serde_json::Value = serde_json::from_str(&perfetto_json(&timeline).unwrap()).unwrap();
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

#[test]
fn a_speedscope_document_keeps_every_track_on_one_axis() {
    for (name, timeline) in captures() {
        let text = export::speedscope_json(&timeline, "run").unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["$schema"], "https://www.speedscope.app/file-format-schema.json");
        let frames = document["shared"]["frames"].as_array().unwrap().len() as u64;
        let mut on_device = 0;
        for profile in document["profiles"].as_array().unwrap() {
            let samples = profile["samples"].as_array().unwrap();
            let weights = profile["weights"].as_array().unwrap();
            assert_eq!((samples.len(), &profile["type"]), (weights.len(), &"sampled".into()), "{name}");
            assert!(
                samples.iter().flat_map(|stack| stack.as_array().unwrap()).all(|one| one.as_u64().unwrap() < frames)
            );
            let total: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
            assert!(total <= profile["endValue"].as_i64().unwrap() && total > 0, "{name}");
            let ran = samples.iter().zip(weights).filter(|(stack, _)| !stack.as_array().unwrap().is_empty());
            if profile["name"].as_str().unwrap().contains("stream") {
                on_device += ran.map(|(_, weight)| weight.as_i64().unwrap()).sum::<i64>();
            }
        }
        assert_eq!(on_device, busy(&timeline), "{name}");
    }
}

#[test]
fn tables_of_a_firefox_profile_point_at_each_other() {
    for (name, timeline) in captures() {
        let document: serde_json::Value =
            serde_json::from_str(&export::firefox_json(&timeline, "run").unwrap()).unwrap();
        let threads = document["threads"].as_array().unwrap();
        assert!(!threads.is_empty(), "{name}");
        let mut on_device = 0.0;
        for thread in threads {
            let length = |table: &str| thread[table]["length"].as_u64().unwrap();
            let column = |table: &str, column: &str| thread[table][column].as_array().unwrap().clone();
            for (table, columns) in [
                ("samples", vec!["stack", "time", "weight"]),
                ("stackTable", vec!["frame", "prefix", "category", "subcategory"]),
                ("frameTable", vec!["address", "category", "func", "line", "nativeSymbol"]),
                ("funcTable", vec!["name", "isJS", "resource"]),
            ] {
                for one in columns {
                    assert_eq!(column(table, one).len() as u64, length(table), "{name}: {table}.{one}");
                }
            }
            let below = |values: Vec<serde_json::Value>, most: u64| {
                values.iter().filter_map(serde_json::Value::as_u64).all(|value| value < most)
            };
            assert!(below(column("samples", "stack"), length("stackTable")), "{name}");
            assert!(below(column("stackTable", "frame"), length("frameTable")), "{name}");
            assert!(below(column("frameTable", "func"), length("funcTable")), "{name}");
            let texts = thread["stringArray"].as_array().unwrap().len() as u64;
            assert!(below(column("funcTable", "name"), texts), "{name}");
            // A stack comes after the one around it.
            for (index, prefix) in column("stackTable", "prefix").iter().enumerate() {
                assert!(prefix.as_u64().is_none_or(|prefix| prefix < index as u64), "{name}");
            }
            if thread["processName"] == "devices" {
                on_device += column("samples", "weight").iter().map(|weight| weight.as_f64().unwrap()).sum::<f64>();
            }
        }
        assert!((on_device * 1e6 - busy(&timeline) as f64).abs() < 1.0 + busy(&timeline) as f64 * 1e-9, "{name}");
    }
}
