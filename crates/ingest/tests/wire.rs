//! Files of the collector, from a real device, compared with what Nsight Systems recorded of the same programs.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use types::timeline::{RangeStyle, Timeline, TraceFormat, WorkKind};
use types::{Nanos, Severity};

use llm_perf_ingest::wire;

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collector").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn timeline(name: &str) -> Timeline {
    wire::read(name, &data(name)).unwrap()
}

fn counted(names: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

fn expected(value: &Value) -> BTreeMap<String, u64> {
    value.as_object().unwrap().iter().map(|(name, count)| (name.clone(), count.as_u64().unwrap())).collect()
}

fn kernels(timeline: &Timeline) -> BTreeMap<String, u64> {
    let kernels = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    counted(kernels.map(|work| timeline.name(work.name).to_owned()))
}

/// Kernels by the names of the ranges that were open on the launching thread, outermost first.
fn kernels_under(timeline: &Timeline) -> BTreeMap<String, u64> {
    let mut ranges: Vec<_> = timeline.ranges.iter().filter(|range| range.style == RangeStyle::PushPop).collect();
    ranges.sort_by_key(|range| range.start);
    counted(timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel).map(|work| {
        let call = timeline.calls.iter().find(|call| call.correlation == work.correlation).unwrap();
        let open = ranges.iter().filter(|range| {
            range.thread == call.thread && range.start <= call.start && range.end.is_none_or(|end| call.start < end)
        });
        open.map(|range| timeline.name(range.name)).collect::<Vec<_>>().join("/")
    }))
}

fn counters(timeline: &Timeline) -> BTreeMap<&str, (u64, Severity)> {
    timeline.quality.iter().map(|row| (row.counter.as_str(), (row.value, row.severity))).collect()
}

#[test]
fn kernels_ranges_and_where_they_belong_are_those_nsight_systems_saw() {
    for program in ["cuda", "eager", "graph"] {
        let ours = timeline(&format!("{program}.wire"));
        let theirs: Value = serde_json::from_slice(&data(&format!("{program}-nsys.json"))).unwrap();
        assert_eq!(kernels(&ours), expected(&theirs["kernels"]), "{program}");
        assert_eq!(kernels_under(&ours), expected(&theirs["kernels_under"]), "{program}");
        let ranges = counted(ours.ranges.iter().map(|range| {
            let domain = range.domain.map(|domain| format!("{}@", ours.name(domain))).unwrap_or_default();
            format!("{domain}{}", ours.name(range.name))
        }));
        assert_eq!(ranges, expected(&theirs["ranges"]), "{program}");
        let of_kind = |wanted: fn(&WorkKind) -> bool| ours.work.iter().filter(|work| wanted(&work.kind)).count() as u64;
        assert_eq!(of_kind(|kind| matches!(kind, WorkKind::Copy(_))), theirs["copies"].as_u64().unwrap(), "{program}");
        assert_eq!(of_kind(|kind| *kind == WorkKind::Fill), theirs["fills"].as_u64().unwrap(), "{program}");
        // Two runs of a program differ by some percent; this finds a wrong unit or a lost half, not a slow device.
        let kernels = ours.work.iter().filter(|work| work.kind == WorkKind::Kernel);
        let ratio = kernels.map(|work| work.duration.get()).sum::<i64>() as f64 / theirs["kernel_ns"].as_f64().unwrap();
        assert!((0.8..1.25).contains(&ratio), "{program}: {ratio}");
        assert_eq!(counters(&ours), BTreeMap::new(), "{program}");
    }
}

#[test]
fn a_timeline_says_where_it_is_from() {
    let timeline = timeline("eager.wire");
    assert_eq!(timeline.format, TraceFormat::Wire);
    assert_eq!(timeline.tool.as_deref(), Some("llm-perf collector 0.1.0, CUPTI 13.0"));
    let [device] = timeline.devices.as_slice() else { panic!("{:?}", timeline.devices) };
    assert_eq!((device.id.as_str(), device.name.as_str()), ("cuda:0", "NVIDIA H200"));
    assert!(device.uuid.as_deref().is_some_and(|uuid| uuid.starts_with("GPU-") && uuid.len() == 40));
    assert!(timeline.clock.unix_ns_at_zero.is_some());
    assert!(timeline.work.iter().all(|work| work.start > Nanos::ZERO && work.duration > Nanos::ZERO));
}

#[test]
fn work_begins_after_the_call_that_launched_it() {
    for program in ["cuda.wire", "eager.wire", "graph.wire"] {
        let timeline = timeline(program);
        let begin = |correlation| timeline.calls.iter().find(|call| call.correlation == correlation).unwrap().start;
        let early = timeline.work.iter().filter(|work| work.start < begin(work.correlation));
        assert_eq!(early.count(), 0, "{program}: clocks of host and device disagree");
    }
}

#[test]
fn kernels_of_a_graph_know_their_node_and_their_launch() {
    let nodes = timeline("graph.wire");
    let of_graph: Vec<_> = nodes.work.iter().filter(|work| work.graph_node.is_some()).collect();
    assert!(of_graph.len() > 900, "{}", of_graph.len());
    let calls =
        of_graph.iter().map(|work| nodes.calls.iter().find(|call| call.correlation == work.correlation).unwrap());
    assert!(calls.into_iter().all(|call| nodes.name(call.name) == "cudaGraphLaunch"));
    let whole = timeline("graph-whole.wire");
    let graphs = whole.work.iter().filter(|work| work.kind == WorkKind::Graph).count();
    assert_eq!(graphs, 8, "one for each step, of rounds and warm-up");
    assert!(whole.work.iter().all(|work| work.graph_node.is_none()));
}

#[test]
fn nodes_know_the_ranges_inside_the_capture_and_not_those_around_it() {
    for file in ["graph.wire", "graph-whole.wire"] {
        let timeline = timeline(file);
        let names: Vec<_> =
            timeline.captured_ranges.iter().map(|range| (timeline.name(range.name), range.parent)).collect();
        assert_eq!(names, [("layer_0", None), ("layer_1", None)], "{file}: `capture` is around all of it");
    }
    let timeline = timeline("graph.wire");
    let mut of_launch: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    let of_graph = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel && work.graph_node.is_some());
    for work in of_graph {
        let node = timeline.graph_nodes.iter().find(|node| Some(node.node) == work.graph_node);
        let layer = node.map_or(2, |node| node.range.0 as usize);
        of_launch.entry(work.correlation).or_default()[layer] += 1;
    }
    // What Nsight Systems saw of the same program without a graph: two rounds of three steps.
    let eager: Value = serde_json::from_slice(&data("eager-nsys.json")).unwrap();
    let of_step = |inner: &str| {
        let of_all = eager["kernels_under"][format!("decode/decode_step{inner}")].as_u64().unwrap();
        assert_eq!(of_all % 6, 0);
        of_all / 6
    };
    let expected = [of_step("/layer_0"), of_step("/layer_1"), of_step("")];
    assert_eq!(of_launch.into_values().collect::<Vec<_>>(), [expected; 8], "layer 0, layer 1, neither");
}

#[test]
fn a_graph_that_was_captured_outside_the_windows_keeps_its_layers() {
    let whole = timeline("graph.wire");
    let mut steps = whole.ranges.iter().filter(|range| whole.name(range.name) == "decode_step");
    let step = steps.next_back().unwrap();
    // The same file, as if only the last step had been asked for.
    let zero = whole.clock.unix_ns_at_zero.unwrap();
    let wall = |time: Nanos| u64::try_from((zero + time).get()).unwrap();
    let mut room = [0; 256];
    let mut block = ::wire::BlockWriter::new(&mut room);
    assert!(block.push(&::wire::Record::Window { open: true, time: wall(step.start) }));
    assert!(block.push(&::wire::Record::Window { open: false, time: wall(step.end.unwrap()) }));
    let windowed = wire::read("window.wire", &[&data("graph.wire"), block.finish()].concat()).unwrap();
    assert!(windowed.ranges.iter().all(|range| windowed.name(range.name) != "layer_0"), "the capture is cut off");
    assert_eq!(windowed.captured_ranges.len(), 2);
    assert_eq!(windowed.graph_nodes, whole.graph_nodes);
}

#[test]
fn a_file_with_launches_of_graphs_alone_says_so() {
    use ::wire::{Counter, Name, Place, Record, Span};
    let mut room = [0; 1024];
    let mut block = ::wire::BlockWriter::new(&mut room);
    let (wall, span) = (1_800_000_000_000_000_000, |start: u64, duration| Span { start, duration });
    let place = |correlation, start| Place { stream: 7, correlation, span: span(start, 400), ..Place::default() };
    for record in [
        Record::Process { process: 9, parent: 1, name: b"engine" },
        Record::GraphsOnly,
        Record::Clocks { monotonic: 1, wall, device: 0 },
        Record::Text { number: 1, text: b"cudaGraphLaunch" },
        Record::Text { number: 2, text: b"execute_context_0(0)_generation_8(8)" },
        Record::Thread { thread: 9 },
        Record::Push { domain: 0, depth: 0, time: wall + 50, name: Name::Text(2) },
        Record::Call { function: 1, correlation: 1, span: span(wall + 100, 20) },
        Record::Graph { graph: 3, place: place(1, wall + 110) },
        Record::Pop { domain: 0, depth: 0, time: wall + 200 },
        Record::Count { counter: Counter::LaunchesUntimed, value: 3 },
        Record::Count { counter: Counter::ClocksApart, value: 4_500 },
        Record::Finish,
    ] {
        assert!(block.push(&record), "{record:?}");
    }
    let found = wire::read("process-9.wire", &[&::wire::header(), block.finish()].concat()).unwrap();
    assert!(found.graphs_only && !timeline("graph-whole.wire").graphs_only);
    assert_eq!(found.clock.uncertainty_ns, Some(Nanos::new(4_500)));
    let [work] = &found.work[..] else { panic!("{:?}", found.work) };
    assert_eq!((work.kind, work.start.get(), work.duration.get()), (WorkKind::Graph, 110, 400));
    assert_eq!(work.correlation, found.calls[0].correlation);
    assert_eq!(counters(&found), BTreeMap::from([("graph_launches_untimed", (3, Severity::Warning))]));
}

#[test]
fn a_window_has_the_work_launched_in_it_and_ranges_cut_to_it() {
    let timeline = timeline("window.wire");
    let all = counters(&timeline);
    assert_eq!(all["collection_windows"], (1, Severity::Info));
    assert!(all.contains_key("work_outside_window"));
    let steps = timeline.ranges.iter().filter(|range| timeline.name(range.name) == "decode_step").count();
    assert_eq!(steps, 2);
    let decode: Vec<_> = timeline.ranges.iter().filter(|range| timeline.name(range.name) == "decode").collect();
    assert_eq!(decode.len(), 1, "the stage counts with the part of it that was recorded");
    assert_eq!(timeline.ranges.iter().filter(|range| timeline.name(range.name) == "prefill").count(), 0);
    // Two of eager.wire's steps, and nothing launched outside of them.
    assert_eq!(kernels_under(&timeline).into_values().sum::<u64>(), 2 * 116);
}

#[test]
fn times_that_were_no_times_are_counted_with_their_share() {
    let mut room = [0; 256];
    let mut block = ::wire::BlockWriter::new(&mut room);
    for (counter, value) in [(::wire::Counter::TimesInvalid, 3), (::wire::Counter::TimesOutside, 2)] {
        assert!(block.push(&::wire::Record::Count { counter, value }));
    }
    let timeline = wire::read("x.wire", &[&data("cuda.wire"), block.finish()].concat()).unwrap();
    let all = counters(&timeline);
    assert_eq!(all["device_times_invalid"], (3, Severity::Error));
    assert_eq!(all["device_times_outside"], (2, Severity::Error));
    let row = timeline.quality.iter().find(|row| row.counter == "device_times_invalid").unwrap();
    assert_eq!(row.share, Some(3.0 / (timeline.work.len() as f64 + 5.0)));
}

#[test]
fn a_killed_process_is_told_from_one_that_ended() {
    let timeline = timeline("kill.wire");
    let all = counters(&timeline);
    assert_eq!(all["collector_files_unfinished"], (1, Severity::Warning));
    assert_eq!(all["launches_without_work"].1, Severity::Info, "its device had no time to finish");
    assert!(!timeline.work.is_empty() && !timeline.calls.is_empty());
}

#[test]
fn processes_of_one_run_make_one_timeline_on_one_device() {
    let (one, other) = (data("spawn-0.wire"), data("spawn-1.wire"));
    let timeline = wire::read_all(&[("spawn-0.wire", &one), ("spawn-1.wire", &other)]).unwrap();
    let processes: std::collections::BTreeSet<_> = timeline.queues.iter().map(|queue| queue.process).collect();
    assert_eq!((processes.len(), timeline.devices.len()), (2, 1));
    assert_eq!(timeline.work.len(), 400);
    assert_eq!(timeline.work.iter().map(|work| work.start).min().filter(|start| *start < Nanos::ZERO), None);
}

#[test]
fn a_file_cut_anywhere_is_read_or_refused() {
    let whole = data("cuda.wire");
    for cut in 0..whole.len() {
        match wire::read("cut.wire", &whole[..cut]) {
            Ok(timeline) => assert!(counters(&timeline).contains_key("collector_files_unfinished"), "cut at {cut}"),
            Err(error) => assert!(cut < 12, "cut at {cut}: {error}"),
        }
    }
}

#[test]
fn what_is_no_file_of_ours_is_named() {
    let message = |bytes: &[u8]| wire::read("x.wire", bytes).unwrap_err().to_string();
    assert_eq!(message(b""), "x.wire is empty, expected a file of the llm-perf collector");
    assert_eq!(message(b"SQLite format 3\0"), "x.wire is not a file of the llm-perf collector: its first bytes differ");
    assert_eq!(
        message(b"LLMPERFW\x09\0\0\0"),
        "x.wire: collector file version 9 is newer than 1, the newest supported version"
    );
}

#[test]
fn kernels_keep_the_names_of_their_object_files() {
    let timeline = timeline("eager.wire");
    let mut mangled = 0;
    for work in timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel) {
        let name = timeline.name(work.name);
        let symbols = timeline.symbols.get(&work.name).unwrap_or_else(|| panic!("{name}"));
        for symbol in symbols.iter().map(|symbol| timeline.name(*symbol)) {
            mangled += usize::from(symbol.starts_with("_Z"));
            assert_eq!(symbol.starts_with("_Z"), symbol != name, "{symbol} for {name}");
        }
    }
    assert!(mangled > 0);
}
