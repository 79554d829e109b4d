//! `llm-perf profile --engine torch`: a recorded session replayed by a fake interpreter, and everything that can go wrong.
//!
//! What a real interpreter does is in the suite `python`.

#![cfg(unix)]

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use scratch::{Output, Scratch};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn fixture(name: &str) -> PathBuf {
    tests().join("fixtures/torch").join(name)
}

/// The settings the recorded session ran with.
const RECORDED: [&str; 4] =
    ["dataset/sampling=sampling.smoke", "infer.seq_len=32", "infer.max_new_tokens=4", "dataset.sampling.repeats=2"];

/// A call with the fake interpreter, replaying `session`.
struct Replay {
    command: Command,
}

impl Replay {
    fn new(scratch: &Scratch, arguments: &[&str]) -> Self {
        let fixed = ["profile", "--engine", "torch", "--out", "run"];
        let mut command = scratch.command(&[&fixed, arguments].concat());
        command.env("LLM_PERF_PYTHON", tests().join("fake/python3")).env("FAKE_TORCH", "2.11.0");
        command.env("FAKE_SESSION", fixture("session.jsonl")).env("FAKE_TRACE", fixture("trace.json.gz"));
        Self { command }
    }

    fn with(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Replays these lines in place of the recorded ones.
    fn saying(self, scratch: &Scratch, lines: &[String]) -> Self {
        let file = scratch.path("session.jsonl");
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        self.with("FAKE_SESSION", file)
    }

    fn run(self) -> Output {
        Output::of(self.command)
    }
}

/// The recorded session up to and with the so-manieth line that contains `mark`.
fn until(mark: &str, count: usize) -> Vec<String> {
    let text = std::fs::read_to_string(fixture("session.jsonl")).unwrap();
    let mut left = count;
    let mut lines = Vec::new();
    for line in text.lines() {
        lines.push(line.to_owned());
        left -= usize::from(line.contains(mark));
        if left == 0 {
            break;
        }
    }
    lines
}

fn failed(kind: &str, message: &str, traceback: &str) -> String {
    serde_json::json!({"event": "failed", "kind": kind, "message": message, "traceback": traceback}).to_string()
}

#[test]
fn a_recorded_session_becomes_the_whole_bundle() {
    let scratch = Scratch::new();
    let arguments: Vec<&str> =
        ["--model", "decoder-tiny", "--predictions", "--check-flops"].into_iter().chain(RECORDED).collect();
    let output = Replay::new(&scratch, &arguments).run();
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.assert_whole_bundle("run");
    for name in
        ["kernels.md", "predictions.jsonl", "trace/torch.json.gz", "logs/torch-driver.py", "logs/torch-events.jsonl"]
    {
        assert!(scratch.path("run").join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(metrics["run"]["engine"], "torch");
    assert_eq!(metrics["samples"].as_array().unwrap().iter().filter(|one| one["warmup"] == false).count(), 4);
    let stage = |name: &str| {
        let stages = metrics["stages"].as_array().unwrap();
        stages.iter().find(|stage| stage["name"] == name).unwrap().clone()
    };
    let wall = |name: &str| stage(name)["wall_ns"].as_i64().unwrap();
    assert_eq!(wall("prefill") + wall("decode"), metrics["totals"]["wall_ns"].as_i64().unwrap());
    // Whether that is a share of what this processor can do depends on how busy it is.
    assert!(metrics["work_per_stage"]["prefill"]["flops_matrix"].as_u64().unwrap() > 0);
    assert!(metrics["peak"]["flops"].is_f64());
    assert!(metrics["operators"].as_array().unwrap().iter().any(|one| one["name"] == "aten::mm"));
    assert!(metrics["overhead"]["share"].is_f64());
    assert!(metrics["trace"]["traced_pass"]["stages"]["prefill"].is_i64());
    for check in metrics["flop_checks"].as_array().unwrap() {
        assert!(check["difference"].as_f64().unwrap().abs() < 1e-3, "{check}");
    }
    assert_eq!(metrics["flop_checks"].as_array().unwrap().len(), 2);
    let report = scratch.text("run", "report.md");
    for part in ["FLOPs: modelled and counted", "Profiled pass", "Memory", "Per-Stage Timings"] {
        assert!(report.contains(part), "{part}");
    }
    let assumptions = scratch.text("run", "assumptions.md");
    assert!(assumptions.contains("not applied: the most likely token is taken"), "{assumptions}");
}

#[test]
fn a_session_of_an_h200_has_kernels_beside_times_and_says_what_was_lost() {
    let scratch = Scratch::new();
    let config = fixture("h200/config.json");
    let settings = ["infer.seq_len=512", "infer.max_new_tokens=16", "dataset.sampling.repeats=10", "model.name=llama"];
    let model = ["--model", config.to_str().unwrap(), "--weights", "synthetic", "--device", "cuda:0", "--check-flops"];
    let replay = Replay::new(&scratch, &[&model[..], &settings].concat());
    let replay = replay.with("FAKE_SESSION", fixture("h200/session.jsonl"));
    let output = replay.with("FAKE_TRACE", fixture("h200/trace.json.gz")).run();
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.assert_whole_bundle("run");
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(metrics["devices"][0]["name"], "NVIDIA H200");
    let number = |value: &serde_json::Value| value.as_i64().unwrap_or_else(|| panic!("{value}"));
    let kernels = metrics["kernels"].as_array().unwrap();
    assert_eq!(
        kernels.iter().map(|one| number(&one["calls"])).sum::<i64>(),
        number(&metrics["totals"]["kernel_count"])
    );
    assert_eq!(
        kernels.iter().map(|one| number(&one["total_ns"])).sum::<i64>(),
        number(&metrics["totals"]["kernel_ns"])
    );
    let [prefill, decode] = [0, 1].map(|index| metrics["stages"][index].clone());
    assert_eq!((number(&prefill["kernel_count"]), number(&decode["kernel_count"])), (341, 5851));
    assert_eq!((number(&prefill["instances"]), number(&decode["instances"])), (10, 10));
    for stage in [&prefill, &decode] {
        // Over all measured instances, as the wall is.
        let wall = number(&stage["wall_ns"]);
        assert_eq!(number(&stage["speed_of_light_ns"]) + number(&stage["lost_ns"]), wall);
        assert!((0.0..1.0).contains(&stage["mfu"].as_f64().unwrap()));
    }
    // What was lost is of the profiled pass, and within it.
    let pass = &metrics["trace"]["traced_pass"]["stages"];
    let recorded = number(&pass["prefill"]) + number(&pass["decode"]);
    let lost: i64 = metrics["lost_time"].as_array().unwrap().iter().map(|row| number(&row["lost_ns"])).sum();
    assert!(lost > 0 && lost <= recorded, "{lost} of {recorded}");
    let findings = metrics["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["rule"] == "launch-bound"));
    assert!(findings.iter().all(|finding| finding["saves_share"].as_f64().is_none_or(|share| share <= 1.0)));
    assert!(metrics["modules"].as_array().unwrap().iter().any(|one| one["path"] == "model.layers.7.mlp"));
    assert!(
        metrics["flop_checks"].as_array().unwrap().iter().all(|one| one["difference"].as_f64().unwrap().abs() < 1e-3)
    );
    assert!(metrics["memory"]["allocated_bytes"].is_u64());
}

#[test]
fn a_model_that_prints_garbage_breaks_nothing() {
    let scratch = Scratch::new();
    let output = Replay::new(&scratch, &RECORDED).with("FAKE_NOISE", "{\"event\": \"done\"}\n\u{1b}[31mgarbage").run();
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(scratch.text("run", "logs/torch.stdout").contains("garbage"));
    assert!(!output.stdout.contains("garbage") && !output.stderr.contains("garbage"));
}

#[test]
fn a_driver_killed_mid_run_leaves_what_it_measured_as_partial() {
    let scratch = Scratch::new();
    let lines = until("\"pass\": \"measure\"", 3);
    let output = Replay::new(&scratch, &RECORDED).saying(&scratch, &lines).with("FAKE_END", "kill").run();
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("was killed by signal 9"), "{}", output.stderr);
    let manifest = scratch.manifest("run");
    assert_eq!(manifest["status"], "partial");
    assert!(manifest["reasons"][0].as_str().unwrap().contains("inferences"), "{manifest}");
    assert_eq!(scratch.json("run", "metrics.json")["aggregates"]["stage_ms"]["prefill"]["n"], 1);
}

#[test]
fn a_driver_killed_before_it_measured_fails_and_says_how_far_it_came() {
    let scratch = Scratch::new();
    let output = Replay::new(&scratch, &RECORDED).saying(&scratch, &until("hello", 1)).with("FAKE_END", "kill").run();
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("signal 9") && output.stderr.contains("before the model ran"), "{}", output.stderr);
    assert_eq!(scratch.manifest("run")["status"], "failed");
    assert!(scratch.path("run").join("logs/torch.argv").is_file());
}

#[test]
fn every_trouble_of_the_model_is_told_with_its_traceback_and_the_next_step() {
    let traceback = "Traceback (most recent call last):\n  File \"model.py\", line 3, in forward\n";
    let cases = [
        ("import", "ModuleNotFoundError: No module named 'flash_attn'", 1, "install the missing package"),
        ("memory", "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB", 1, "reduce memory"),
        ("model", "RuntimeError: mat1 and mat2 shapes cannot be multiplied", 1, ""),
        ("remote_code", "models/x contains its own Python code", 2, "--trust-remote-code"),
        ("factory", "my_models has no `build`", 1, "a factory takes no arguments"),
        ("device", "cuda:7 is not available: torch found 1 CUDA devices", 2, ""),
        ("transformers", "this model requires transformers: No module named 'transformers'", 1, "install transformers"),
    ];
    for (kind, message, code, hint) in cases {
        let scratch = Scratch::new();
        let mut lines = until("hello", 1);
        lines.push(failed(kind, message, traceback));
        let output = Replay::new(&scratch, &RECORDED).saying(&scratch, &lines).with("FAKE_END", "1").run();
        assert_eq!(output.code, code, "{kind}: {}", output.stderr);
        assert!(output.stderr.contains(message) && output.stderr.contains(hint), "{kind}: {}", output.stderr);
        assert!(output.stderr.contains("  | Traceback (most recent call last):"), "{kind}: {}", output.stderr);
        let manifest = scratch.manifest("run");
        assert_eq!(manifest["status"], "failed", "{kind}");
        assert!(manifest["reasons"][0].as_str().unwrap().contains(message), "{kind}: {manifest}");
    }
}

#[test]
fn memory_that_runs_out_after_some_runs_keeps_those_runs() {
    let scratch = Scratch::new();
    let mut lines = until("\"pass\": \"measure\"", 3);
    lines.push(failed("memory", "OutOfMemoryError: CUDA out of memory", "Traceback: here"));
    let output = Replay::new(&scratch, &RECORDED).saying(&scratch, &lines).with("FAKE_END", "1").run();
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(scratch.text("run", "report.md").contains("Per-Stage Timings"));
}

#[test]
fn no_python_and_no_torch_are_found_before_a_folder_is_made() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("bin")).unwrap();
    let without = |change: &dyn Fn(&mut Command)| {
        let mut replay = Replay::new(&scratch, &RECORDED);
        change(&mut replay.command);
        replay.run()
    };
    let bin = scratch.path("bin");
    let no_python = without(&|command| {
        command.env_remove("LLM_PERF_PYTHON").env("PATH", &bin);
    });
    assert_eq!(no_python.code, 1, "{}", no_python.stderr);
    assert!(no_python.stderr.contains("python3 not found on PATH"), "{}", no_python.stderr);
    let no_torch = without(&|command| {
        command.env("FAKE_TORCH", "");
    });
    assert_eq!(no_torch.code, 1, "{}", no_torch.stderr);
    assert!(no_torch.stderr.contains("no Python interpreter with torch found"), "{}", no_torch.stderr);
    assert!(no_torch.stderr.contains("--python"), "{}", no_torch.stderr);
    let named = without(&|command| {
        command.args(["--python", "/nowhere/python"]);
    });
    assert_eq!(named.code, 2, "{}", named.stderr);
    assert!(!scratch.path("run").exists());
}

#[test]
fn what_names_no_model_is_wrong_usage_and_leaves_no_folder() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("empty")).unwrap();
    let cases = [
        (vec!["--model", "./empty"], "has no config.json"),
        (vec!["--model", "nobody/owns-this"], "model `nobody/owns-this` not found in"),
        (vec!["--model", "lama-3-8b"], "unknown model"),
        (vec!["--model", "decoder-tiny", "--device", "gpu"], "`cpu`, `cuda:N` or `auto`"),
        (vec!["--model", "decoder-tiny", "infer.temperature=0.7"], "infer.temperature"),
        (vec!["--model", "decoder-tiny", "--module-ranges", "deep"], "expected a depth from 1 to 64"),
    ];
    for (arguments, message) in cases {
        let output = Replay::new(&scratch, &arguments).with("HF_HUB_CACHE", scratch.path("empty")).run();
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(message), "{arguments:?}: {}", output.stderr);
        assert!(!scratch.path("run").exists(), "{arguments:?}");
    }
}

#[test]
fn a_mixture_of_experts_on_an_h200_has_its_flops_and_its_kernels() {
    let scratch = Scratch::new();
    let config = fixture("h200-moe/config.json");
    let settings = ["infer.seq_len=64", "infer.max_new_tokens=4", "dataset.sampling.repeats=5", "model.name=qwen-moe"];
    let model = ["--model", config.to_str().unwrap(), "--weights", "synthetic", "--device", "cuda:0", "--check-flops"];
    let replay = Replay::new(&scratch, &[&model[..], &settings].concat());
    let replay = replay.with("FAKE_SESSION", fixture("h200-moe/session.jsonl"));
    let output = replay.with("FAKE_TRACE", fixture("h200-moe/trace.json.gz")).run();
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.assert_whole_bundle("run");
    let metrics = scratch.json("run", "metrics.json");
    let checks = metrics["flop_checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2);
    for check in checks {
        assert!(check["difference"].as_f64().unwrap().abs() < 1e-6, "{check}");
    }
    assert_eq!(metrics["peak"]["dtype"], "bf16");
    // Experts are grouped products here, which are neither matrix products of a library nor elementwise.
    let families = metrics["kernels"].as_array().unwrap().iter().filter(|kernel| kernel["family"] == "moe");
    assert!(families.map(|kernel| kernel["calls"].as_u64().unwrap()).sum::<u64>() > 0);
    let steps: u64 = metrics["stages"][1]["tokens"].as_u64().unwrap();
    assert_eq!((metrics["stages"][1]["name"].as_str(), steps), (Some("decode"), 15));
}

#[test]
fn two_ranks_meet_in_one_folder_and_the_slowest_is_named() {
    let scratch = Scratch::new();
    let slower = std::fs::read_to_string(fixture("session.jsonl")).unwrap().replace("\"prefill\": ", "\"prefill\": 10");
    let lines: Vec<String> = slower.lines().map(str::to_owned).collect();
    let ranked = |rank: &str| Replay::new(&scratch, &RECORDED).with("RANK", rank).with("WORLD_SIZE", "2");
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| ranked("1").saying(&scratch, &lines).run());
        (ranked("0").run(), second.join().unwrap())
    });
    assert_eq!((first.code, second.code), (0, 0), "{}{}", first.stderr, second.stderr);
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(metrics["ranks"].as_array().unwrap().len(), 2);
    let skew = &metrics["rank_skew"][0];
    assert_eq!((skew["stage"].as_str(), skew["slowest"].as_u64()), (Some("prefill"), Some(1)));
    let of_rank = |rank: u64| metrics["samples"].as_array().unwrap().iter().filter(|one| one["rank"] == rank).count();
    assert_eq!((of_rank(0), of_rank(1)), (4, 4));
    assert!(scratch.text("run", "report.md").contains("rank 1 is the slowest"));
    assert!(second.stdout.starts_with("rank 1\nstage"), "{}", second.stdout);
    assert!(second.stderr.contains("rank 0 writes the report"), "{}", second.stderr);
    assert!(!scratch.text("run", "ranks/1/torch-events.jsonl").is_empty());
    assert_eq!(Output::of(scratch.command(&["runs", "./run", "--verify"])).code, 0);
}

#[test]
fn ranks_need_a_folder_to_meet_in() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["profile", "--engine", "torch"]);
    command.env("LLM_PERF_PYTHON", tests().join("fake/python3")).env("FAKE_TORCH", "2.11.0");
    let output = Output::of({
        command.env("RANK", "1").env("WORLD_SIZE", "2");
        command
    });
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("--out"), "{}", output.stderr);
}

#[test]
fn the_bare_workload_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&[&["workload", "--engine", "torch", "--json"], &RECORDED[..]].concat());
    command.env("LLM_PERF_PYTHON", tests().join("fake/python3")).env("FAKE_TORCH", "2.11.0");
    command.env("FAKE_SESSION", fixture("session.jsonl"));
    let output = Output::of(command);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let start = output.stdout.find('{').unwrap();
    let times: serde_json::Value = serde_json::from_str(&output.stdout[start..]).unwrap();
    assert!(times["samples"].as_array().unwrap().len() >= 4);
    assert_eq!(std::fs::read_dir(scratch.path("")).unwrap().count(), 0);
}

#[test]
fn what_is_prepared_is_written_to_an_empty_folder_alone() {
    let scratch = Scratch::new();
    let prepare = |more: &[&str]| {
        let fixed =
            ["workload", "--model", "decoder-tiny", "--weights", "synthetic", "infer.seq_len=16", "--prepare", "ready"];
        let mut command = scratch.command(&[&fixed, more].concat());
        command.env("LLM_PERF_PYTHON", tests().join("fake/python3")).env("FAKE_TORCH", "2.11.0");
        Output::of(command)
    };
    let first = prepare(&["--engine", "torch"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let files = ["driver.py", "request.json"].map(|name| scratch.path("ready").join(name));
    let [driver, request] = files.each_ref().map(|file| file.display().to_string());
    assert!(first.stdout.trim_end().ends_with(&format!("fake/python3 {driver} {request}")), "{}", first.stdout);
    let asked: serde_json::Value = serde_json::from_slice(&std::fs::read(&files[1]).unwrap()).unwrap();
    assert_eq!(asked["nvtx"], true);
    let again = prepare(&["--engine", "torch"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("ready is not empty"), "{}", again.stderr);
    let native = prepare(&[]);
    assert_eq!(native.code, 2, "{}", native.stderr);
    assert!(native.stderr.contains("`--prepare` requires the torch engine"), "{}", native.stderr);
}
