//! Traces of other people's runs: which device, which ranks, which rates, and whether a named model is the one that ran.

use serde_json::Value;
use testkit::need::reference;

use crate::scratch::{Output, Scratch};

/// A trace of the reference folder.
fn trace(name: &str) -> String {
    reference("third-party/traces").join(format!("{name}.json.gz")).display().to_string()
}

fn import(arguments: &[&str]) -> (Output, Option<Value>) {
    let scratch = Scratch::new();
    let output = Output::of(scratch.command(&[&["import"][..], arguments, &["--out", "run"]].concat()));
    let metrics = (output.code == 0).then(|| scratch.json("run", "metrics.json"));
    (output, metrics)
}

fn imported(arguments: &[&str]) -> Value {
    let (output, metrics) = import(arguments);
    metrics.unwrap_or_else(|| panic!("{}{}", output.stdout, output.stderr))
}

fn counter<'a>(metrics: &'a Value, name: &str) -> Option<&'a Value> {
    metrics["quality"].as_array().unwrap().iter().find(|counter| counter["counter"] == name)
}

fn shape<'a>(metrics: &'a Value, operator: &str, first: &[u64]) -> &'a Value {
    let rows = metrics["operator_groups"]["by_shape"].as_array().unwrap();
    let found = rows.iter().find(|row| row["name"] == operator && row["shapes"][0] == serde_json::json!(first));
    found.unwrap_or_else(|| panic!("no {operator} on {first:?}"))
}

pub(crate) fn jobs_of_other_days_devices_and_sizes_are_not_one_run() {
    let (one, other) = (trace("a100-training-before"), trace("v100-training-other-job"));
    let (output, _) = import(&[&one, &other]);
    assert_ne!(output.code, 0);
    assert!(output.stderr.contains("one is from a job with 8 ranks, the other from a job with 2"), "{}", output.stderr);
}

pub(crate) fn ranks_of_one_job_are_joined_and_missing_ones_are_said() {
    let (one, other) = (trace("dlrm-rank0"), trace("dlrm-rank1"));
    let metrics = imported(&[&one, &other]);
    assert_eq!(metrics["devices"].as_array().unwrap().len(), 2);
    let missing = counter(&metrics, "ranks_missing").unwrap();
    assert_eq!(missing["value"], 126);
    assert!(missing["remedy"].as_str().unwrap().starts_with("Traces of 2 of 128 ranks are available"), "{missing}");
}

pub(crate) fn a_device_is_known_by_its_name_or_by_its_properties() {
    // Events of the first are on device 2, its list of properties has one; the second's names are empty.
    for (name, device) in [("mi300-qwen1.5-0.5b", "AMD Instinct MI300X VF"), ("vllm-piecewise", "Instinct MI300X")] {
        let file = trace(name);
        let metrics = imported(&[&file]);
        let first = &metrics["devices"][0];
        assert_eq!((&first["name"], &first["hardware"]), (&device.into(), &"mi300x".into()), "{name}");
    }
}

pub(crate) fn shapes_have_rates_without_a_model() {
    let file = trace("mi300-sglang-qwen3-8b-extend");
    let metrics = imported(&[&file]);
    let gemm = shape(&metrics, "aten::mm", &[15_360, 12_288]);
    // 36 layers of [15360, 12288] x [12288, 4096]: 2 x 15360 x 12288 x 4096 each.
    let flops = 36.0 * 2.0 * 15_360.0 * 12_288.0 * 4_096.0;
    assert_eq!((gemm["calls"].as_u64(), gemm["flops_matrix"].as_f64()), (Some(36), Some(flops)));
    let seconds = gemm["device_ns"].as_f64().unwrap() / 1e9;
    assert!((gemm["flops_per_second"].as_f64().unwrap() * seconds / flops - 1.0).abs() < 1e-9);
    // The data sheet's dense rate is 1,307.4 TFLOP/s.
    let share = gemm["roofline_share"].as_f64().unwrap();
    assert!((share - flops / seconds / 1_307.4e12).abs() < 1e-4 && share < 1.0, "{share}");
    assert_eq!(gemm["bound"], "compute");
    for row in metrics["operator_groups"]["by_shape"].as_array().unwrap() {
        assert!(row["roofline_share"].as_f64().is_none_or(|share| share <= 1.0), "{row}");
    }
}

pub(crate) fn convolutions_and_attention_have_rates_too() {
    let file = trace("h100-vit");
    let metrics = imported(&[&file]);
    // 14 x 14 patches of 16 x 16 x 3 pixels, 768 wide, four pictures; 12 layers of 12 heads over 197 positions.
    let patches = shape(&metrics, "aten::cudnn_convolution", &[4, 3, 224, 224]);
    assert_eq!(patches["flops_matrix"].as_u64(), Some(2 * 4 * 768 * 14 * 14 * 3 * 16 * 16));
    let attention = shape(&metrics, "aten::_flash_attention_forward", &[4, 197, 12, 64]);
    assert_eq!(attention["flops_matrix"].as_u64(), Some(12 * 4 * 4 * 12 * 197 * 197 * 64));
}

pub(crate) fn a_model_that_is_not_the_one_in_the_trace_yields_no_utilisation() {
    let file = trace("mi300-qwen1.5-0.5b");
    let metrics = imported(&[&file, "--model", "deepseek-ocr", "workload.base_size=1024", "workload.decode_steps=0"]);
    let misfit = counter(&metrics, "model_differs_from_trace").unwrap()["remedy"].as_str().unwrap();
    assert!(misfit.contains("ocabulary x width: 129280 x 1280 in the model, 151936 x 1024 in the trace"), "{misfit}");
    assert_eq!(metrics["mfu_model_level"], Value::Null);
}

pub(crate) fn a_device_that_is_not_the_one_in_the_trace_is_told() {
    let file = trace("mi300-qwen1.5-0.5b");
    let metrics = imported(&[&file, "--hardware", "h200"]);
    let told = counter(&metrics, "hardware_differs_from_trace").unwrap()["remedy"].as_str().unwrap();
    assert!(told.contains("recorded on AMD Instinct MI300X VF"), "{told}");
    assert!(counter(&imported(&[&file, "--hardware", "mi300x"]), "hardware_differs_from_trace").is_none());
}

pub(crate) fn collectives_have_their_message_group_and_bandwidth() {
    let file = trace("mi300-resnet-training");
    let metrics = imported(&[&file]);
    let rows = metrics["collectives"].as_array().unwrap();
    let found = rows.iter().find(|row| row["bytes"] == 2 * 2_873_320).unwrap_or_else(|| panic!("{rows:#?}"));
    assert_eq!((&found["name"], &found["group_size"], &found["calls"]), (&"allreduce".into(), &8.into(), &3.into()));
    let bus = 3.0 * 2.0 * 7.0 / 8.0 * 2.0 * 2_873_320.0 / (found["total_ns"].as_f64().unwrap() / 1e9);
    assert!((found["bus_bytes_per_second"].as_f64().unwrap() / bus - 1.0).abs() < 1e-9);
    // Seven links of 64 GB/s each way, in a machine with eight devices.
    assert_eq!(found["link_bytes_per_second"], 448e9);
}

pub(crate) fn older_traces_tell_the_message_of_a_collective_and_not_its_group() {
    let file = trace("a100-training-before");
    let metrics = imported(&[&file]);
    let rows = metrics["collectives"].as_array().unwrap();
    // 8 x 1024 x 8816 numbers of four bytes.
    let found = rows.iter().find(|row| row["bytes"] == 8 * 1024 * 8816 * 4).unwrap_or_else(|| panic!("{rows:#?}"));
    assert_eq!((&found["name"], &found["group_size"]), (&"all_to_all".into(), &Value::Null));
    assert_eq!((&found["bus_bytes_per_second"], &found["link_share"]), (&Value::Null, &Value::Null));
    let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, 42 + 18, "all-to-alls and all-reduces");
}

pub(crate) fn memory_peaks_are_those_the_allocator_reported() {
    // Independent: the largest `Total Allocated` and `Total Reserved` among the events of the device, in bytes.
    let captures = [
        ("h100-owlv2", 6_135, 917_445_120, 2_707_847_680_u64, 3_600_809_984_u64, "ProfilerStep#6"),
        ("h100-vit", 286, 214_877_184, 231_332_864, 245_366_784, "ProfilerStep#6"),
    ];
    for (name, allocations, start, allocated, reserved, step) in captures {
        let file = trace(name);
        let memory = &imported(&[&file])["device_memory"];
        assert_eq!(memory.as_array().unwrap().len(), 1, "host memory has no peak: {memory}");
        let memory = &memory[0];
        let found = ["allocations", "start_allocated_bytes", "peak_allocated_bytes", "peak_reserved_bytes"];
        assert_eq!(found.map(|key| memory[key].as_u64().unwrap()), [allocations, start, allocated, reserved], "{name}");
        let by_step = &memory["by_step"][0];
        assert_eq!((&by_step["step"], &by_step["peak_allocated_bytes"]), (&step.into(), &allocated.into()), "{name}");
        assert_eq!(by_step["growth_bytes"], 0);
        let points = memory["timeline"].as_array().unwrap();
        assert_eq!(points.iter().filter_map(|point| point["allocated_bytes"].as_u64()).max(), Some(allocated));
    }
}

pub(crate) fn a_trace_without_memory_events_has_no_memory() {
    let file = trace("nccl");
    assert!(imported(&[&file]).get("device_memory").is_none());
}

pub(crate) fn pages_of_one_launch_are_one_launch() {
    let folder = reference("third-party/ncu-rtx5090/kernel_0001_67bdb7e29d1bb4e0ca0aec954ef18af3");
    // One launch in seven files: the sections were printed one by one.
    let pages = ["section_MemoryWorkloadAnalysis", "section_Occupancy", "section_SpeedOfLight", "metrics", "details"];
    let files = pages.map(|page| folder.join(format!("ncu.{page}.csv")).display().to_string());
    let metrics = imported(&files.each_ref().map(String::as_str));
    let counters = metrics["trace"]["counters"].as_array().unwrap();
    assert_eq!(counters.len(), 1);
    let row = &counters[0];
    assert_eq!((&row["calls"], &row["total_ns"], &row["dram_bytes"]), (&1.into(), &6750.into(), &2_330_000.into()));
    let share = |key: &str| (row[key].as_f64().unwrap() * 1e4).round();
    assert_eq!(["compute_share", "memory_share", "occupancy"].map(share), [915.0, 1966.0, 1132.0]);
    assert_eq!(metrics["kernels"][0]["calls"], 1);
    assert!(counter(&metrics, "ncu_pages_differ").is_none(), "{}", metrics["quality"]);
}

pub(crate) fn operators_have_the_python_that_calls_them() {
    // Counted by walking the events of each thread with a stack of open frames.
    let model = "transformers/models/vit/modeling_vit.py";
    let captures = [
        (
            "h100-vit",
            "aten::native_layer_norm",
            vec![(format!("{model}(407): forward"), 24), (format!("{model}(592): forward"), 1)],
        ),
        ("h100-vit", "aten::_flash_attention_forward", vec![(format!("{model}(252): forward"), 12)]),
        // Backward passes run on a thread without Python.
        ("mi300-resnet-training", "aten::mm", Vec::new()),
    ];
    for (name, operator, expected) in captures {
        let file = trace(name);
        let metrics = imported(&[&file]);
        let rows = metrics["operators"].as_array().unwrap().iter().filter(|row| row["name"] == operator);
        let places = rows.flat_map(|row| row["python"].as_array().cloned().unwrap_or_default());
        let mut places: Vec<_> = places
            .map(|place| (place["frame"].as_str().unwrap().to_owned(), place["calls"].as_u64().unwrap()))
            .collect();
        places.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
        assert_eq!(places, expected, "{name}: {operator}");
    }
}

pub(crate) fn another_run_is_told_other_things() {
    let rules = |file: &str, arguments: &[&str]| -> Vec<String> {
        let metrics = imported(&[&[file], arguments].concat());
        let findings = metrics["findings"].as_array().unwrap().clone();
        findings.iter().map(|one| one["rule"].as_str().unwrap().to_owned()).collect()
    };
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/fixtures/torch/dsocr-h200.json.gz");
    let theirs = reference("third-party/kineto/h100-qwen1.5-0.5b.json.gz").display().to_string();
    assert_ne!(rules(ours, &["--model", "deepseek-ocr"]), rules(&theirs, &[]));
}

pub(crate) fn ranks_of_a_stranger_have_the_figures_that_others_counted() {
    let facts = std::fs::read(reference("third-party/traces/facts.json")).unwrap();
    let facts: Value = serde_json::from_slice(&facts).unwrap();
    let scratch = Scratch::new();
    for rank in ["0", "1"] {
        let file = trace(&format!("dlrm-rank{rank}"));
        let import = ["import", &file, "--tables", "tables", "--job", "dlrm", "--out", rank];
        assert_eq!(Output::of(scratch.command(&import)).code, 0);
    }
    let output = Output::of(scratch.command(&["fleet", "tables", "--out", "fleet"]));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let whole = Output::of(scratch.command(&["validate", "fleet/fleet.json", "fleet/manifest.json"]));
    assert_eq!(whole.code, 0, "{}{}", whole.stdout, whole.stderr);
    let fleet = scratch.json("fleet", "fleet.json");
    let job = &fleet["jobs"][0];
    assert_eq!(job["missing_ranks"].as_array().unwrap().len(), 126);
    assert_eq!(job["findings"], serde_json::json!([]));
    let ranks = job["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 2);
    for (rank, row) in ranks.iter().enumerate() {
        let counted = &facts[format!("dlrm-rank{rank}.json.gz")]["devices"][rank.to_string()];
        for key in ["span_ns", "busy_ns", "communication_exposed_ns"] {
            // They were counted in microseconds with a fraction; times of 4e18 ns have no room for one.
            let apart = row[key].as_i64().unwrap() - counted[key].as_i64().unwrap();
            assert!(apart.abs() <= 500, "rank {rank}: {key} is {apart} ns off");
        }
    }
}

pub(crate) fn parts_of_a_rank_add_up_to_its_span() {
    // Its norms start behind the all-reduce and wait for it: 8.45 ms that are neither compute nor hidden communication.
    let file = reference("third-party/traces-2/sgl-eagle3-bs16-decode.json.gz").display().to_string();
    let scratch = Scratch::new();
    assert_eq!(Output::of(scratch.command(&["import", &file, "--tables", "tables", "--out", "run"])).code, 0);
    let output = Output::of(scratch.command(&["fleet", "tables", "--out", "fleet"]));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let rank = &scratch.json("fleet", "fleet.json")["jobs"][0]["ranks"][0];
    let idle: i64 = rank["idle"].as_array().unwrap().iter().map(|part| part["ns"].as_i64().unwrap()).sum();
    let parts = ["compute_ns", "communication_exposed_ns", "copies_exposed_ns"];
    let busy: i64 = parts.iter().map(|part| rank[*part].as_i64().unwrap()).sum();
    assert_eq!(busy + idle, rank["span_ns"].as_i64().unwrap());
    assert!(rank["communication_exposed_ns"].as_i64().unwrap() > 8_450_000, "{rank}");
}

pub(crate) fn every_class_of_a_strangers_torchinfo_snapshot_is_covered() {
    let snapshot = reference("third-party/torchinfo").display().to_string();
    let output = Output::of(Scratch::new().command(&["analyze", "--json", "--torchinfo", &snapshot]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["coverage"]["covered"], 29);
    assert_eq!(report["coverage"]["uncovered"], serde_json::json!([]));
}
