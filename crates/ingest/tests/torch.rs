//! Torch profiler traces, real and synthetic, compared with what independent scripts and tools say of them.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use llm_perf_ingest::IngestError;
use llm_perf_ingest::torch::{Category, LossReason, TorchSettings, Trace, read, read_stream};
use types::timeline::{CopyDirection, OperatorKind, WorkKind};
use types::{Bytes, DeviceId, Nanos, Severity};

const SMALL: &[u8] = include_bytes!("fixtures/torch/small.json");

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

static H200: LazyLock<Vec<u8>> = LazyLock::new(|| unpacked(include_bytes!("fixtures/torch/dsocr-h200.json.gz")));

fn one_thread() -> TorchSettings {
    TorchSettings { threads: 1, ..TorchSettings::default() }
}

fn trace(bytes: &[u8]) -> Trace {
    read("trace.json", bytes, &one_thread()).unwrap()
}

fn kernel_total(trace: &Trace) -> (usize, Nanos) {
    let kernels = || trace.timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    (kernels().count(), kernels().map(|kernel| kernel.duration).sum())
}

fn counter(trace: &Trace, name: &str) -> Option<u64> {
    trace.timeline.quality.iter().find(|counter| counter.counter == name).map(|counter| counter.value)
}

#[test]
fn the_h200_trace_has_its_kernels_to_the_nanosecond() {
    let trace = trace(&H200);
    assert_eq!(kernel_total(&trace), (8_144, Nanos::new(30_273_935)));
    assert_eq!(trace.loss, None);
    assert_eq!(trace.timeline.quality, []);
    let device = &trace.timeline.devices[0];
    assert_eq!((device.name.as_str(), device.memory_bytes), ("NVIDIA H200", Some(Bytes::new(150_109_880_320))));
    assert_eq!(trace.timeline.clock.unix_ns_at_zero, Some(Nanos::new(1_790_857_026_000_000_000)));
    assert_eq!(trace.timeline.tool.as_deref(), Some("torch profiler (schema 1, CUDA runtime 13.0, driver 13.0)"));
    let queue = &trace.timeline.queues[0];
    assert_eq!((queue.process, queue.device, queue.stream), (Some(487), 0, Some(7)));
}

#[test]
fn the_h200_trace_has_every_event_of_every_kind() {
    let trace = trace(&H200);
    let counts: Vec<_> = trace.census.counts().map(|(category, count)| (category.name(), count)).collect();
    let expected = [
        ("cpu_op", 35_277),
        ("user_annotation", 9),
        ("cuda_runtime", 6_888),
        ("cuda_driver", 2_490),
        ("kernel", 8_144),
        ("gpu_memcpy", 228),
        ("gpu_memset", 63),
        ("gpu_user_annotation", 8),
        ("overhead", 1),
        ("Trace", 1),
        ("instant", 2),
        ("flow", 17_813),
        ("metadata", 58),
    ];
    assert_eq!(counts, expected);
    assert_eq!(trace.census.events(), 70_982);
    assert_eq!(trace.timeline.operators.len(), 35_277);
    assert_eq!(trace.timeline.calls.len(), 6_888 + 2_490);
    assert_eq!(trace.timeline.work.len(), 8_144 + 228 + 63);
    assert_eq!(trace.timeline.signatures.len(), 1_327);
}

#[test]
fn the_operator_table_equals_the_one_of_an_independent_script() {
    let trace = trace(&H200);
    let mut table: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    for operator in &trace.timeline.operators {
        let row = table.entry(trace.timeline.name(operator.name)).or_default();
        row.0 += 1;
        row.1 += operator.duration.get();
    }
    let rows = include_str!("fixtures/torch/dsocr-h200.operators.csv").lines().skip(1);
    let expected: BTreeMap<&str, (u64, i64)> = rows
        .map(|row| {
            let fields: Vec<_> = row.split(',').collect();
            (fields[0], (fields[1].parse().unwrap(), fields[2].parse().unwrap()))
        })
        .collect();
    assert_eq!(table, expected);
}

#[test]
fn every_form_of_event_becomes_a_row() {
    let Trace { timeline, census, loss } = trace(SMALL);
    assert_eq!(loss, None);
    let name = |id| timeline.name(id);
    let range = &timeline.ranges[0];
    assert_eq!((name(range.name), range.start), ("decode_step", Nanos::new(3_847_402_573_159_520)));
    assert_eq!(range.end, Some(Nanos::new(3_847_402_573_260_518)));

    let [multiply, join, python, old] = &timeline.operators[..] else { panic!("{:?}", timeline.operators) };
    assert_eq!((name(multiply.name), multiply.call.unwrap().0.get()), ("aten::mm", 2));
    let signature = timeline.signatures.get(multiply.signature.unwrap());
    assert_eq!(signature.shapes, [[1, 1280], [1280, 6848]]);
    assert_eq!(signature.strides, [[1280, 1], [1, 1280]]);
    let signature = timeline.signatures.get(join.signature.unwrap());
    assert_eq!(signature.types, ["TensorList", "TensorList", "Scalar"]);
    assert_eq!((python.kind, name(python.name)), (OperatorKind::Python, "nn.Module: Linear_3"));
    assert_eq!((name(old.name), old.call.unwrap().0.get()), ("aten::old", 9));
    let thread = &timeline.threads[old.thread.0 as usize];
    assert_eq!((thread.process, thread.thread, thread.rank), (Some(487), None, Some(3)));

    let calls: Vec<_> =
        timeline.calls.iter().map(|call| (name(call.name), call.correlation.unwrap().0.get())).collect();
    assert_eq!(calls, [("cudaLaunchKernel", 24), ("cuLaunchKernelEx", 25)]);

    let [gemm, concatenate, fill, copy] = &timeline.work[..] else { panic!("{:?}", timeline.work) };
    let launch = timeline.launch_shapes.get(gemm.launch.unwrap());
    assert_eq!((launch.grid, launch.block, launch.registers), ([286, 1, 1], [160, 1, 1], Some(32)));
    assert_eq!((launch.shared_total_bytes, launch.shared_static_bytes), (Some(4096), None));
    assert_eq!((gemm.duration, gemm.graph_node), (Nanos::new(1_889), None));
    assert_eq!(name(concatenate.name), "CatArrayBatchedCopy \"quoted\" \u{fc}");
    assert_eq!(concatenate.graph_node.unwrap().get(), 77);
    assert_eq!((fill.kind, fill.bytes, fill.launch), (WorkKind::Fill, Some(Bytes::new(4)), None));
    assert_eq!(copy.kind, WorkKind::Copy(CopyDirection::DeviceToHost));
    let queue = &timeline.queues[copy.queue.0 as usize];
    assert_eq!((queue.device, queue.stream, queue.context), (1, Some(13), Some(2)));
    assert_eq!((queue.rank, queue.process), (Some(3), Some(487)));

    let memory: Vec<_> = timeline.memory.iter().map(|event| (event.bytes, event.device)).collect();
    assert_eq!(memory, [(-18_317_312, Some(0)), (64, None)]);
    assert_eq!(timeline.devices[1].id, DeviceId::cuda(1));
    assert_eq!(census.events(), 24);
    assert_eq!(census.count(Category::Flow), 2);
}

#[test]
fn what_is_left_out_is_counted_with_a_remedy() {
    let trace = trace(SMALL);
    insta::assert_debug_snapshot!(trace.timeline.quality);
}

#[test]
fn a_bare_list_of_events_is_a_trace_too() {
    let text = std::str::from_utf8(SMALL).unwrap();
    let list = text.split_once("\"traceEvents\":").unwrap().1.rsplit_once(",\n  \"traceName\"").unwrap().0;
    let bare = trace(list.as_bytes());
    let whole = trace(SMALL);
    assert_eq!((bare.loss, &bare.timeline.work), (None, &whole.timeline.work));
    assert_eq!(bare.timeline.clock.unix_ns_at_zero, None);
    assert_eq!(bare.timeline.threads[0].rank, None);
}

#[test]
fn one_line_without_spaces_and_many_lines_with_them_read_the_same() {
    let value: serde_json::Value =
        serde_json::from_str(&std::str::from_utf8(SMALL).unwrap().replace("inf,", "1,")).unwrap();
    let tight = trace(serde_json::to_string(&value).unwrap().as_bytes());
    let loose = trace(serde_json::to_string_pretty(&value).unwrap().as_bytes());
    let original = trace(SMALL);
    for other in [&tight, &loose] {
        assert_eq!(other.timeline.work, original.timeline.work);
        assert_eq!(other.timeline.operators, original.timeline.operators);
        assert_eq!(other.census, original.census);
    }
}

#[test]
fn other_documents_are_refused_by_what_they_are() {
    let refused = |bytes: &[u8]| {
        let error = read("x.json", bytes, &one_thread()).unwrap_err();
        assert_eq!(read_stream("x.json", bytes, &one_thread()).unwrap_err(), error);
        error.to_string()
    };
    insta::assert_snapshot!(
        [
            &b""[..],
            b"  \n",
            b"\x7fELF\x02\x01",
            b"hello",
            b"{}",
            b"{\"layers\": [], \"num_unique_layers\": 0}",
            b"[1, 2, 3]",
            b"[{\"ph\": \"X\", \"cat\": \"blink\", \"name\": \"a\", \"ts\": 1, \"dur\": 1}]",
            b"{\"traceEvents\": 7}",
            b"{\"schemaVersion\": 1, \"devicePro",
            b"{\"a\" 1}",
            b"{\"metadata\": [[[}}}, \"traceEvents\": []}",
        ]
        .map(refused)
        .join("\n")
    );
}

#[test]
fn an_event_past_the_bound_is_refused_with_its_place() {
    let settings = TorchSettings { largest_event_bytes: 1 << 12, ..one_thread() };
    let mut bytes = b"{\"traceEvents\": [ {\"name\": \"".to_vec();
    let place = 18;
    bytes.resize(1 << 20, b'x');
    let expected = IngestError::TooLarge { file: "x".to_owned(), offset: place, limit: 1 << 12 };
    assert_eq!(read("x", &bytes, &settings).unwrap_err(), expected);
    assert_eq!(read_stream("x", &bytes[..], &settings).unwrap_err(), expected);
    assert!(expected.to_string().contains("byte 18"), "{expected}");
}

#[test]
fn damage_in_the_middle_keeps_what_is_before_it() {
    let text = std::str::from_utf8(SMALL).unwrap().replacen("\"tid\": 7, \"ts\": 3847402573190", "\"tid\" 7 ", 1);
    let trace = trace(text.as_bytes());
    let loss = trace.loss.clone().unwrap();
    assert_eq!((loss.reason, loss.in_events, trace.timeline.work.len()), (LossReason::NotJson, true, 1));
    assert!(text[loss.offset as usize..].starts_with("{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"Cat"));
    let counter = trace.timeline.quality.iter().find(|counter| counter.counter == "trace_damaged").unwrap();
    assert_eq!((counter.severity, counter.value), (Severity::Error, loss.bytes));
}

#[test]
fn a_second_document_behind_the_first_is_reported() {
    let trace = trace(&[SMALL, SMALL].concat());
    assert_eq!(trace.loss.as_ref().unwrap().reason, LossReason::Trailing);
    assert!(counter(&trace, "trace_followed_by_other_data").is_some());
}

#[test]
fn an_empty_list_of_events_is_an_empty_trace() {
    let trace = trace(br#"{"traceEvents": [ ] }"#);
    assert_eq!((trace.census.events(), trace.loss), (0, None));
}

#[test]
fn work_of_several_processes_names_none() {
    let event = |pid: u32, correlation: u32| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":1,"ts":1,"dur":1,"args":{{"correlation":{correlation}}}}},
               {{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":2,"dur":1,"args":{{"device":0,"stream":7,"correlation":{correlation}}}}}"#
        )
    };
    let trace = trace(format!("[{},{}]", event(1, 5), event(2, 5)).as_bytes());
    assert_eq!(trace.timeline.queues[0].process, None);
    assert_eq!(counter(&trace, "trace_work_of_unknown_process"), Some(2));
}
