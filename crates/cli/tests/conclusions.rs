//! What is concluded from traces of other people's runs, read in place where they are: every figure of `facts.json`, which an
//! independent program has summed up, and what is true and false of each.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod support;

use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;

/// The folder of the traces; absent where it is not there.
fn traces() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    let folder = std::env::var_os("LLM_PERF_REFERENCE").map_or_else(beside, PathBuf::from).join("third-party/traces");
    let is_there = folder.join("facts.json").is_file();
    if !is_there {
        println!("not checked, because it is not there: {}", folder.display());
    }
    is_there.then_some(folder)
}

/// An imported trace: its metrics, and all pages as one text.
struct Imported {
    metrics: Value,
    pages: String,
    terminal: String,
}

fn import(files: &[PathBuf], arguments: &[&str]) -> Imported {
    let scratch = Scratch::new();
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let all =
        ["import", "--out", "run"].into_iter().chain(files.iter().map(String::as_str)).chain(arguments.iter().copied());
    let output = Output::of(scratch.command(&all.collect::<Vec<_>>()));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let pages = ["report.md", "stakeholder_summary.md"].map(|page| scratch.text("run", page)).join("\n");
    Imported { metrics: scratch.json("run", "metrics.json"), pages, terminal: output.stdout }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key}"))
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

/// What must hold of any run with device work.
fn assert_invariants(metrics: &Value, name: &str) {
    for device in list(metrics, "device_time") {
        let of = |key: &str| number(&device[key]);
        assert_eq!(of("busy_ns") + of("idle_ns"), of("span_ns"), "{name}");
        let busy = of("compute_ns") + of("communication_exposed_ns") + of("copies_exposed_ns");
        assert_eq!(busy, of("busy_ns"), "{name}");
        let idle: i64 = list(device, "idle").iter().map(|idle| number(&idle["ns"])).sum();
        assert_eq!(idle, of("idle_ns"), "{name}");
    }
    for stage in list(metrics, "stages") {
        if let (Some(busy), Some(wall)) = (stage["gpu_busy_ns"].as_i64(), stage["wall_ns"].as_i64()) {
            assert!(busy <= wall * list(metrics, "devices").len().max(1) as i64, "{name}: {stage}");
        }
        if let (Some(roofline), Some(wall)) = (stage["speed_of_light_ns"].as_i64(), stage["wall_ns"].as_i64()) {
            assert!(roofline <= wall, "{name}: {stage}");
        }
    }
    for row in list(metrics, "lost_time") {
        assert!(number(&row["claimed_ns"]) <= number(&row["lost_ns"]), "{name}: {row}");
    }
    for finding in list(metrics, "findings") {
        assert!(finding["saves_share"].as_f64().is_none_or(|share| (0.0..=1.0).contains(&share)), "{name}: {finding}");
    }
}

/// Times of `facts.json` went through floating point: each is rounded to a nanosecond, and behind 2^53 of them, in traces
/// with whole microseconds since 1970, carries an error of up to 256 ns.
fn assert_near(found: i64, fact: &Value, rows: i64, name: &str) {
    let fact = number(fact);
    let most = if found % 1_000 == 0 && fact % 1_000 != 0 { 256 * rows } else { 2 };
    assert!((found - fact).abs() <= most, "{name}: {found} is not {fact}");
}

#[test]
fn every_figure_of_other_programs_is_found_again() {
    let Some(folder) = traces() else { return };
    let facts: Value = serde_json::from_slice(&std::fs::read(folder.join("facts.json")).unwrap()).unwrap();
    for (file, fact) in facts.as_object().unwrap() {
        let Imported { metrics, .. } = import(&[folder.join(file)], &[]);
        assert_invariants(&metrics, file);
        let devices = fact["devices"].as_object().unwrap();
        let found = list(&metrics, "device_time");
        assert_eq!(found.len(), devices.len(), "{file}");
        for (ordinal, fact) in devices {
            let id = format!("cuda:{ordinal}");
            let device = found.iter().find(|device| device["device"] == id.as_str()).unwrap_or_else(|| panic!("{id}"));
            let rows = number(&fact["kernels"]) + 1_000;
            for key in ["span_ns", "busy_ns", "idle_ns", "communication_ns", "communication_exposed_ns"] {
                assert_near(number(&device[key]), &fact[key], rows, &format!("{file}: {key}"));
            }
            for (kind, copies) in fact["copies"].as_object().unwrap() {
                let found = list(device, "copies").iter().find(|copy| copy["kind"] == kind.as_str()).unwrap();
                for key in ["calls", "ns", "bytes"] {
                    assert_eq!(found[key], copies[key], "{file}: {kind} {key}");
                }
            }
        }
        if !fact["idle_in_data_loader_ns"].is_null() {
            let idle = list(&found[0], "idle").iter().find(|idle| idle["cause"] == "data_loading").unwrap();
            assert_near(number(&idle["ns"]), &fact["idle_in_data_loader_ns"], 100, file);
        }
    }
}

/// What is said of a trace and what is not.
struct Truth {
    file: &'static str,
    kind: &'static str,
    /// The rules that fire first, in order.
    first: &'static [&'static str],
    /// Rules that must not fire.
    silent: &'static [&'static str],
    /// What the pages say.
    says: &'static [&'static str],
    /// What no page and not the terminal may say, in any case.
    never: &'static [&'static str],
}

const NO_STAGES: &[&str] = &[
    "prefill",
    "decode",
    "first token",
    "tokens/s",
    "confidence",
    "another process",
    "its clock moves",
    "nothing ran on a device",
];

const TRUTHS: &[Truth] = &[
    Truth {
        file: "h100-owlv2.json.gz",
        kind: "forward",
        first: &["data-loading", "attention-not-flash"],
        silent: &["launch-bound", "run-to-run-variation"],
        says: &["idle 512 ms", "In 491 ms of the idle time the host waits for its data loader", "Load ahead"],
        never: &["cuda graph", "torch.cuda.graph"],
    },
    Truth {
        file: "h100-timesformer.json.gz",
        kind: "forward",
        first: &["attention-not-flash"],
        silent: &["launch-bound", "data-loading", "host-work"],
        says: &["busy 158 ms of 160 ms (99.0%)", "they run 68.8 ms"],
        never: &[],
    },
    Truth {
        file: "h100-bert-small.json.gz",
        kind: "forward",
        first: &["launch-bound"],
        silent: &["data-loading"],
        says: &["busy 309 us of 3.91 ms (7.9%)", "a larger batch", "a graph"],
        never: &[],
    },
    Truth {
        file: "h100-vit.json.gz",
        kind: "forward",
        first: &["launch-bound"],
        silent: &["data-loading"],
        says: &["busy 1.23 ms of 7.56 ms (16.2%)", "a larger batch"],
        never: &[],
    },
    Truth {
        file: "mi300-qwen1.5-0.5b.json.gz",
        kind: "forward",
        first: &[],
        silent: &["launch-bound", "logits-of-all-positions", "attention-not-flash"],
        says: &["busy 43.1 ms of 47.1 ms (91.5%)"],
        never: &["logits"],
    },
    Truth {
        file: "mi300-resnet-training.json.gz",
        kind: "training",
        first: &["exposed-communication"],
        silent: &["launch-bound"],
        says: &["exposed communication 55.6 ms"],
        never: &["mark stages", "mark prefill"],
    },
    Truth {
        file: "a100-training-before.json.gz",
        kind: "training",
        first: &["exposed-communication"],
        silent: &["launch-bound"],
        says: &["communication runs 164 ms, of which 87.9 ms"],
        never: &[],
    },
    Truth {
        file: "v100-training-other-job.json.gz",
        kind: "training",
        first: &[],
        silent: &["launch-bound", "data-loading"],
        says: &["27.9 GB", "exposed communication 73.3 ms"],
        never: &[],
    },
    Truth {
        file: "dlrm-rank0.json.gz",
        kind: "training",
        first: &["exposed-communication"],
        silent: &["launch-bound"],
        says: &["communication runs 396 ms, of which 337 ms", "idle 675 ms"],
        never: &[],
    },
    Truth {
        file: "nccl.json.gz",
        kind: "training",
        first: &["launch-bound", "host-work", "exposed-communication"],
        silent: &["data-loading"],
        says: &["idle 503 ms", "communication runs 46.9 ms, of which 39.6 ms"],
        never: &[],
    },
    Truth {
        file: "mi300-sglang-qwen3-8b-decode-capture.json.gz",
        kind: "graph_capture",
        first: &[],
        silent: &["launch-bound"],
        says: &["the capture of a graph"],
        never: &["32.6 ms"],
    },
    Truth {
        file: "h100-2gpu-copies.sqlite",
        kind: "program",
        first: &["host-to-device-copies"],
        silent: &["launch-bound"],
        says: &["exposed copies 94", "25.5 GB in 921 ms (27.7 GB/s); kernels run 22.4 ms", "weights first"],
        never: &["healthy"],
    },
];

#[test]
fn what_an_expert_says_first_is_said_first_and_what_is_false_is_not_said() {
    let Some(folder) = traces() else { return };
    let mut wrong = Vec::new();
    for truth in TRUTHS {
        let Imported { metrics, pages, terminal } = import(&[folder.join(truth.file)], &[]);
        let mut check = |holds: bool, what: String| {
            if !holds {
                wrong.push(format!("{}: {what}", truth.file));
            }
        };
        let rules: Vec<_> =
            list(&metrics, "findings").iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
        check(metrics["trace"]["kind"]["kind"] == truth.kind, metrics["trace"]["kind"].to_string());
        check(rules.starts_with(truth.first), format!("{rules:?}"));
        check(truth.silent.iter().all(|rule| !rules.contains(rule)), format!("{rules:?}"));
        check(list(&metrics, "stages").is_empty(), metrics["stages"].to_string());
        for line in truth.says {
            check(pages.contains(line), format!("does not say `{line}`"));
        }
        let all = format!("{pages}\n{terminal}").to_lowercase();
        for line in truth.never.iter().chain(NO_STAGES) {
            // Names of kernels, operators and files are the trace's own words.
            let says = all.lines().find(|text| without_names(text).contains(line));
            check(says.is_none(), format!("says `{line}`: {}", says.unwrap_or_default()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A line of Markdown without its code.
fn without_names(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[test]
fn steps_that_an_engine_annotates_are_what_it_says() {
    let Some(folder) = traces() else { return };
    let Imported { metrics, pages, .. } = import(&[folder.join("mi300-sglang-qwen3-8b-extend.json.gz")], &[]);
    let step = &metrics["steps"]["list"][0];
    assert_eq!((&step["label"], &step["batch"]["tokens"]), (&"prefill".into(), &15_360.into()));
    assert!((480e6..500e6).contains(&step["wall_ns"].as_f64().unwrap()), "{step}");
    assert!(pages.contains("1 prefill step with 15 prompts, 15,360 tokens: 493 ms of device time (31,"), "{pages}");
    assert!(!pages.contains("28.3 ms") && !pages.contains("time to first token"), "{pages}");
    let rate = metrics["throughput"]["prefill_tokens_per_second"].as_f64().unwrap();
    assert!((30_000.0..32_000.0).contains(&rate), "{rate}");

    let Imported { metrics, pages, .. } = import(&[folder.join("mi300-sglang-qwen3-8b-decode.json.gz")], &[]);
    let step = &metrics["steps"]["list"][0];
    assert_eq!((&step["label"], &step["batch"]["generation"]["sequences"]), (&"decode".into(), &32.into()));
    assert!((9.7e6..9.8e6).contains(&step["device_ns"].as_f64().unwrap()), "{step}");
    assert!(step["wall_ns"].as_f64().unwrap() < 12e6, "the gap before it is no part of it: {step}");
    assert!(pages.contains("1 decode step with 32 decoding sequences, 32 tokens: 9.77 ms of device time"), "{pages}");
    assert!(!pages.contains("no repetition"), "{pages}");

    let Imported { metrics, pages, .. } = import(&[folder.join("vllm-piecewise.json.gz")], &[]);
    assert_eq!((&metrics["stages"], &metrics["steps"]["list"][0]["label"]), (&serde_json::json!([]), &"mixed".into()));
    assert!(pages.contains("1 mixed step with 9 prompts and 37 decoding sequences, 8,192 tokens: 156 ms"), "{pages}");
    assert!(pages.contains("(99.8%)"), "{pages}");
}

#[test]
fn what_must_hold_of_any_run_holds_of_the_captures_of_this_project() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures");
    for (file, arguments) in [
        ("torch/dsocr-h200.json.gz", ["--model", "deepseek-ocr"].as_slice()),
        ("torch/dsocr-h200.json.gz", &[]),
        ("nsys/dsocr-h200.sqlite.gz", &[]),
    ] {
        let Imported { metrics, .. } = import(&[fixtures.join(file)], arguments);
        assert!(!list(&metrics, "device_time").is_empty(), "{file}");
        assert_invariants(&metrics, file);
    }
}
