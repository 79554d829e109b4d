//! Comparisons for tests, put through the real analysis so that their numbers fit together.

use std::collections::BTreeMap;

use analysis::{RunRecords, Sides, compare};
use serde_json::json;
use types::{
    Comparison, CpuInfo, DeviceId, Environment, FrameworkVersions, KernelSummary, MemoryInfo, Metrics, ModuleSummary,
    Nanos, OperatingSystem, OperatorSummary, RunState, Sample, SchemaTag, Stage, ToolVersions,
};

use crate::words::Spoken;

/// Milliseconds of each stage of a page.
const STAGES: [(Stage, f64); 4] =
    [(Stage::Prefill, 400.0), (Stage::Vision, 300.0), (Stage::Sam, 220.0), (Stage::Decode, 310.0)];
/// Pages and how large they are beside the first.
const PAGES: [(&str, f64); 2] = [("invoice.png", 1.0), ("letter.png", 0.3)];
/// Operators and their milliseconds.
const OPERATORS: [(&str, u64, f64); 3] = [("linear", 1_260, 510.0), ("attention", 94, 300.0), ("silu", 45, 45.0)];
const KERNEL: &str =
    "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16>(...)";

/// A run whose times are longer than those of the first by a share, decode by another one, with noise of its own.
fn run(name: &str, longer: f64, decode_longer: f64) -> RunRecords {
    let seed: u64 = name.bytes().map(u64::from).sum();
    let noise = |place: u64| 1.0 + ((seed * 7 + place * 5) % 11) as f64 / 1_000.0;
    let nanoseconds = |milliseconds: f64| Nanos::new((milliseconds * 1e6) as i64);
    let mut metrics = empty_metrics(name);
    for (page, size) in PAGES {
        for (stage, time) in STAGES {
            let share = if stage == Stage::Decode { decode_longer } else { longer };
            metrics.times.samples.extend((0..6).map(|repeat| Sample {
                stage,
                input: Some(page.to_owned()),
                epoch: 0,
                repeat,
                rank: None,
                warmup: false,
                wall_ns: nanoseconds(time * size * (1.0 + share) * noise(repeat.into())),
            }));
        }
    }
    metrics.breakdown.operators = Vec::from(OPERATORS.map(|(name, calls, time)| {
        let total_ns = nanoseconds(time * (1.0 + longer) * noise(calls));
        OperatorSummary {
            name: name.to_owned(),
            stage: None,
            calls,
            total_ns,
            self_ns: total_ns,
            device_ns: None,
            bytes_allocated: None,
            python: Vec::new(),
        }
    }));
    let total_ns = nanoseconds(2.0 * (1.0 + decode_longer) * noise(9));
    metrics.breakdown.kernels = vec![KernelSummary {
        name: KERNEL.to_owned(),
        short_name: "gemv2T_kernel_val".to_owned(),
        family: "gemv".to_owned(),
        stage: Some(Stage::Decode),
        device: DeviceId::cuda(0),
        calls: 360,
        total_ns,
        min_ns: total_ns,
        max_ns: total_ns,
        estimate: None,
    }];
    metrics.breakdown.modules = vec![ModuleSummary {
        path: "model.sam_model.blocks.11.attn.qkv".to_owned(),
        class: "Linear".to_owned(),
        stage: Stage::Sam,
        measured_ns: Some(nanoseconds(60.0 * (1.0 + longer) * noise(4))),
        exclusive_ns: None,
        speed_of_light_ns: None,
        lost_ns: None,
        work: None,
        bound: None,
        cause: None,
        placed_by: Default::default(),
    }];
    RunRecords {
        path: format!("tmp/profile-output/{name}"),
        state: Some(RunState::Complete),
        reasons: Vec::new(),
        metrics,
        environment: Some(environment("0.1.0")),
        inputs: None,
        forecasts: Default::default(),
    }
}

/// Metrics without a measurement, read as a file would be so that new fields are no concern of this one.
pub(crate) fn empty_metrics(id: &str) -> Metrics {
    let input = |(name, _): (&str, f64)| json!({"name": name, "prompt_tokens": 280, "image_tokens": 273, "generated_tokens": 46});
    let settings = json!({"repeats": 6, "epochs": 1, "warmup_rounds": 1, "batch": 1, "seed": null});
    let document = json!({
        "schema": "llm-perf/metrics/1",
        "run": {"id": id, "engine": "native", "model": "deepseek-ocr-tiny", "device": "cpu", "weights": "synthetic"},
        "devices": [], "clocks": [], "totals": {}, "stages": [], "operators": [], "kernels": [], "regions": [],
        "modules": [], "findings": [], "samples": [], "aggregates": {}, "overhead": {}, "quality": [],
        "mfu_per_stage": {}, "work_per_stage": {}, "settings": settings, "inputs": PAGES.map(input),
    });
    serde_json::from_value(document).unwrap()
}

fn environment(version: &str) -> Environment {
    Environment {
        schema: SchemaTag::default(),
        captured_at: "2025-11-15T03:47:12Z".to_owned(),
        tool_version: version.to_owned(),
        tool_features: Vec::new(),
        named: types::NamedVersions::default(),
        gpus: Vec::new(),
        tools: ToolVersions::default(),
        frameworks: FrameworkVersions::default(),
        cpu: CpuInfo { architecture: "x86_64".to_owned(), ..CpuInfo::default() },
        memory: MemoryInfo::default(),
        operating_system: OperatingSystem::default(),
        git: None,
        variables: BTreeMap::new(),
        notes: Vec::new(),
    }
}

fn compared(sides: Sides<'_>) -> Comparison {
    compare(sides, Some(0.05.into())).spoken()
}

/// One run per side: decode became slower.
pub(crate) fn repeats() -> Comparison {
    let mut with = run("20251116-090000", 0.0, 0.06);
    with.environment = Some(environment("0.2.0"));
    compared(Sides { base: &[run("20251115-034712", 0.0, 0.0)], with: &[with] })
}

/// Three runs per side: everything but decode became faster.
pub(crate) fn runs() -> Comparison {
    let side = |names: [&str; 3], longer| names.map(|name| run(name, longer, 0.0));
    let base = side(["20251115-a", "20251115-b", "20251115-d"], 0.0);
    compared(Sides { base: &base, with: &side(["20251116-a", "20251116-c", "20251116-d"], -0.2) })
}

/// Another model on other inputs, and a run that is partial.
pub(crate) fn apart() -> Comparison {
    let mut with = run("20251116-090000", 0.0, 0.0);
    with.state = Some(RunState::Partial);
    with.reasons = vec!["not used: broken.png".to_owned()];
    with.metrics.run.model = Some("deepseek-ocr-tiny-with-a-name-that-is-far-too-long".to_owned());
    with.metrics.times.samples.iter_mut().for_each(|sample| sample.input = Some("other.png".to_owned()));
    with.environment = None;
    compared(Sides { base: &[run("20251115-034712", 0.0, 0.0)], with: &[with] })
}

/// The same load on two servers, the second of which answers later.
pub(crate) fn loads() -> Comparison {
    let one = |path: &str, longer: f64| {
        let quantile = |time: f64| {
            let of = |share: f64| (time * (1.0 + longer) * share * 1e6) as i64;
            json!({"ns": of(1.0), "low_ns": of(0.98), "high_ns": of(1.03)})
        };
        let latency = |time: f64, n: u64| json!({"mean": quantile(time), "p50": quantile(time * 0.9), "p90": quantile(time * 2.0), "p99": quantile(time * 3.0), "n": n});
        let load = json!({
            "requests": 200, "completed": 200, "failed": 0, "duration_ns": 10_000_000_000_u64, "input_tokens": 100_000,
            "output_tokens": 20_000, "output_throughput": 2_000.0, "ttft": latency(40.0, 200), "tpot": latency(7.0, 200),
            "itl": latency(7.0, 19_800), "e2el": latency(740.0, 200),
        });
        let parts = json!({
            "queue_ns": (4e9 * (1.0 + 4.0 * longer)) as i64, "own_prefill_ns": 3_000_000_000_u64,
            "other_prefill_ns": 2_000_000_000_u64, "decode_ns": 130_000_000_000_u64, "host_ns": 0, "recompute_ns": 0,
            "return_ns": 1_000_000_000, "unexplained_ns": 0,
        });
        let join = json!({
            "offset_ns": 0, "offset_low_ns": 0, "offset_high_ns": 0, "basis": "same_clock", "requests": 200,
            "requests_in_trace": 200, "tokens": 20_000, "steps": 900, "steps_agreeing": 900,
        });
        let serving = json!({"source": "llm_perf", "clock": "monotonic", "load": load, "parts": parts, "join": join});
        let mut metrics = empty_metrics(path);
        metrics.served.serving = serde_json::from_value(serving).unwrap();
        RunRecords { metrics, ..run(path, 0.0, 0.0) }
    };
    compared(Sides { base: &[one("eight", 0.0)], with: &[one("sixteen", 0.12)] })
}

/// Two runs that measured nothing.
pub(crate) fn empty() -> Comparison {
    let one = |path: &str| RunRecords { metrics: empty_metrics(path), ..run(path, 0.0, 0.0) };
    compared(Sides { base: &[one("a")], with: &[one("b")] })
}
