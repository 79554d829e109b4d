//! SQLite exports of nsys: sums equal to NVIDIA's own, corners, and what must never leave a file.

mod nsys_sums;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use llm_perf_ingest::nsys::sqlite::read;
use nsys_sums::{assert_calls, assert_private, kernel_sums, nvidia, push_pop_sums};
use types::timeline::{NameId, Timeline};
use types::{Failure, Nanos, Severity};

const SMALL: &[u8] = include_bytes!("fixtures/nsys/small.sqlite");

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dsocr() -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&*fixture("nsys/dsocr-h200.sqlite.gz")).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn kernels_ranges_and_calls_sum_up_to_what_nsys_prints() {
    let timeline = read("dsocr-h200.sqlite", &dsocr()).unwrap();
    let table = |name: &str| String::from_utf8(fixture(&format!("nsys_stats/nsys-dsocr-{name}.csv"))).unwrap();
    let kernels = kernel_sums(&timeline);
    assert_eq!(kernels, nvidia(&table("cuda_gpu_kern_sum")));
    assert_eq!(kernels.len(), 116);
    assert_eq!(kernels.values().map(|sum| sum.0).sum::<u64>(), 8_154);
    let ranges = push_pop_sums(&timeline, |domain, range| format!("{domain}:{range}"));
    assert_eq!(ranges, nvidia(&table("nvtx_pushpop_sum")));
    assert_calls(&timeline, &table("cuda_api_sum"));
    assert!(timeline.quality.is_empty(), "{:?}", timeline.quality);
}

#[test]
fn a_capture_has_its_version_clock_and_device() {
    let timeline = read("dsocr-h200.sqlite", &dsocr()).unwrap();
    assert_eq!(timeline.tool.as_deref(), Some("nsys 2025.3.2.0"));
    assert_eq!(timeline.clock.unix_ns_at_zero, Some(Nanos::new(1_794_706_694_534_963_674)));
    assert_eq!(timeline.clock.uncertainty_ns, Some(Nanos::new(10_436_312_453)));
    let [device] = &timeline.devices[..] else { panic!("{:?}", timeline.devices) };
    assert_eq!((device.id.as_str(), device.name.as_str()), ("cuda:0", "NVIDIA H200"));
    assert_eq!(device.uuid.as_deref(), Some("GPU-00000000-1111-2222-3333-444444444444"));
    assert_eq!(device.memory_bytes.map(|bytes| bytes.get()), Some(150_109_880_320));
    assert_eq!((timeline.threads.len(), timeline.queues.len()), (1, 1));
    assert_eq!(timeline.threads[0].process, Some(959));
}

#[test]
fn nothing_of_the_host_its_user_or_its_environment_reaches_a_timeline() {
    let bytes = dsocr();
    let secrets = ["planted", "c0nfidential", "0000:ab:cd", "Local (CLI)", "2026-11-15T"];
    for secret in &secrets[..3] {
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(found, "{secret} is not in the file, so this test shows nothing");
    }
    assert_private(&read("dsocr-h200.sqlite", &bytes).unwrap(), &secrets);
    assert_private(&read("small.sqlite", SMALL).unwrap(), &["planted", "buffers were dropped"]);
}

/// A timeline as text, one line a row.
fn shown(timeline: &Timeline) -> String {
    let name = |id: NameId| match timeline.name(id) {
        long if long.len() > 40 => format!("{}... ({} bytes)", &long[..12], long.len()),
        text => text.to_owned(),
    };
    let mut text = String::new();
    for device in &timeline.devices {
        writeln!(text, "device {} {:?} {:?}", device.id, device.uuid, device.memory_bytes.map(|bytes| bytes.get()))
            .unwrap();
    }
    for thread in &timeline.threads {
        writeln!(text, "thread {:?} {:?}", thread.process, thread.thread).unwrap();
    }
    for queue in &timeline.queues {
        writeln!(text, "queue process {:?} device {} stream {:?}", queue.process, queue.device, queue.stream).unwrap();
    }
    // Forty kernels that differ in little: the first four and the last three.
    for work in timeline.work.iter().filter(|work| !(1_400..4_700).contains(&work.start.get())) {
        let (start, duration) = (work.start.get(), work.duration.get());
        let launch = work.launch.map(|id| timeline.launch_shapes.get(id)).map(|shape| (shape.grid, shape.block));
        let correlation = work.correlation.map(|correlation| correlation.0);
        let (node, bytes) = (work.graph_node, work.bytes.map(|bytes| bytes.get()));
        let (kind, place) = (work.kind, work.queue.0);
        writeln!(
            text,
            "{kind:?} {} @{place} {start}+{duration} {launch:?} {correlation:?} {node:?} {bytes:?}",
            name(work.name)
        )
        .unwrap();
    }
    let calls = timeline.calls.iter();
    for call in calls.filter(|call| !(904..938).contains(&call.start.get())) {
        let (start, duration) = (call.start.get(), call.duration.get());
        writeln!(text, "call {} thread {} {start}+{duration}", name(call.name), call.thread.0).unwrap();
    }
    for range in &timeline.ranges {
        let (start, end) = (range.start.get(), range.end.map(Nanos::get));
        let domain = range.domain.map(name);
        let thread = range.thread.0;
        writeln!(text, "{:?} {domain:?} {:?} thread {thread} {start} {end:?}", range.style, name(range.name)).unwrap();
    }
    for counter in &timeline.quality {
        writeln!(text, "{} {} {:?}", counter.counter, counter.value, counter.severity).unwrap();
    }
    text
}

#[test]
fn processes_devices_domains_open_ranges_and_graphs_are_kept_apart() {
    insta::assert_snapshot!(shown(&read("small.sqlite", SMALL).unwrap()));
}

/// A database with one text replaced by another of the same length, throughout.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty(), "{from}");
    let mut bytes = bytes.to_vec();
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

fn changed(from: &str, to: &str) -> Vec<u8> {
    replaced(SMALL, from, to)
}

#[test]
fn a_newer_schema_is_refused_by_its_number() {
    let error = read("trace.sqlite", &changed("3.20.3", "4.00.0")).unwrap_err();
    insta::assert_snapshot!(error, @"trace.sqlite: nsys schema version 4.00.0 is newer than 3.x, the newest supported version");
    assert!(read("trace.sqlite", &changed("3.20.3", "3.99.9")).is_ok(), "additions are no break");
    assert!(read("trace.sqlite", &changed("3.20.3", "2.14.1")).is_ok(), "older schemas are read");
}

#[test]
fn a_database_of_something_else_is_refused_with_the_tables_it_has() {
    let no_device = replaced(SMALL, "CUPTI_ACTIVITY_KIND_", "SOMETHING_ELSE_THAN_");
    let without = replaced(&no_device, "NVTX_EVENTS", "ANYTHING_AT");
    insta::assert_snapshot!(read("shop.sqlite", &without).unwrap_err(), @"shop.sqlite contains no trace: expected one of the tables CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_RUNTIME, NVTX_EVENTS; found StringIds, SOMETHING_ELSE_THAN_KERNEL, SOMETHING_ELSE_THAN_MEMCPY, SOMETHING_ELSE_THAN_GRAPH_TRACE, SOMETHING_ELSE_THAN_RUNTIME, SOMETHING_ELSE_THAN_DRIVER, ANYTHING_AT, TARGET_INFO_GPU, TARGET_INFO_CUDA_DEVICE, DIAGNOSTIC_EVENT, META_DATA_EXPORT");
}

#[test]
fn a_capture_of_ranges_alone_is_fine() {
    let timeline = read("trace.sqlite", &changed("CUPTI_ACTIVITY_KIND_", "SOMETHING_ELSE_THAN_")).unwrap();
    assert_eq!((timeline.work.len(), timeline.calls.len(), timeline.ranges.len()), (0, 0, 9));
}

#[test]
fn a_table_without_a_column_it_needs_is_refused_with_those_it_has() {
    insta::assert_snapshot!(read("trace.sqlite", &changed("copyKind", "kindCopy")).unwrap_err(), @"trace.sqlite: table CUPTI_ACTIVITY_KIND_MEMCPY has no column copyKind; found start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, kindCopy");
}

#[test]
fn a_column_a_version_lacks_is_unknown() {
    let timeline = read("trace.sqlite", &changed("graphNodeId", "nodeOfGraph")).unwrap();
    assert!(timeline.work.iter().all(|work| work.graph_node.is_none()));
    let timeline = read("trace.sqlite", &changed("gridZ INTEGER", "depth INTEGER")).unwrap();
    assert!(timeline.work.iter().all(|work| work.launch.is_none()));
}

#[test]
fn a_table_beside_the_events_may_look_otherwise() {
    let timeline = read("trace.sqlite", &changed("severity INTEGER", "gravity_ INTEGER")).unwrap();
    assert_eq!(timeline.work.len(), 56);
    assert!(timeline.quality.iter().all(|counter| counter.counter != "nsys_errors_reported"));
    let timeline = read("trace.sqlite", &changed("gpuId INTEGER", "which INTEGER")).unwrap();
    assert!(timeline.queues.iter().all(|queue| queue.device == 0), "as the processes count");
}

#[test]
fn a_file_cut_off_before_its_tables_is_called_that() {
    let error = read("trace.sqlite", &SMALL[..512]).unwrap_err();
    insta::assert_snapshot!(error, @"trace.sqlite is damaged at byte 512: the file ends before any event, with 1 of 37 pages");
}

#[test]
fn a_write_ahead_log_is_refused() {
    let mut bytes = SMALL.to_vec();
    (bytes[18], bytes[19]) = (2, 2);
    let error = read("trace.sqlite", &bytes).unwrap_err();
    insta::assert_snapshot!(format!("{error}\n{}", error.hint().unwrap()), @r"
    trace.sqlite: the database uses a write-ahead log, which is not supported
    export the trace again with the profiler that recorded it, and do not open it for writing
    ");
}

#[test]
fn a_file_that_was_cut_off_says_how_much_is_gone() {
    let bytes = dsocr();
    let timeline = read("cut.sqlite", &bytes[..bytes.len() * 3 / 4]).unwrap();
    let missing = timeline.quality.iter().find(|counter| counter.counter == "nsys_pages_missing").unwrap();
    assert_eq!(missing.severity, Severity::Error);
    assert!((missing.share.unwrap() - 0.25).abs() < 0.01, "{missing:?}");
}

#[test]
fn ranges_that_pytorch_opens_for_its_operators_are_operators() {
    let timeline = read("emitted.sqlite", include_bytes!("fixtures/nsys/emitted.sqlite")).unwrap();
    let shapes = |operator: &types::timeline::HostOperator| {
        operator.signature.map(|place| timeline.signatures.get(place).shapes.clone()).unwrap_or_default()
    };
    let gemm = vec![vec![64, 128], vec![128, 32]];
    let found: Vec<_> =
        timeline.operators.iter().map(|operator| (timeline.name(operator.name), shapes(operator))).collect();
    let linear = vec![vec![64, 128], vec![32, 128], vec![]];
    assert_eq!(
        found,
        [("aten::linear", linear), ("aten::mm", gemm.clone()), ("aten::mm", gemm), ("aten::empty", Vec::new())]
    );
    // What the user opened stays a range, and is one range whatever its number was.
    let ranges: Vec<_> = timeline.ranges.iter().map(|range| timeline.name(range.name)).collect();
    assert_eq!(ranges, ["forward pass"]);
}
