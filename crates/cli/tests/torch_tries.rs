//! `llm-perf profile --engine torch --try`: a recorded session of tries replayed by a fake interpreter, whole, cut short and
//! with a remedy that runs out of memory.
//!
//! What a real interpreter does is in the suite `python`.

#![cfg(unix)]

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::path::Path;

use scratch::{Output, Scratch};
use serde_json::{Value, json};

/// The remedies the recorded session was asked for.
const ASKED: &str = "cuda-graph,last-logits,bf16,batch-2,warm-up,compile";

fn recorded() -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/torch/tries/session.jsonl");
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

/// A run in which the driver says these lines and ends so.
fn replay(scratch: &Scratch, lines: &[String], end: &str) -> Output {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let session = scratch.path("session.jsonl");
    std::fs::write(&session, lines.join("\n") + "\n").unwrap();
    let mut command = scratch.command(&[
        "profile",
        "--engine",
        "torch",
        "--out",
        "run",
        "--model",
        "decoder-tiny",
        "--try",
        ASKED,
        "dataset/sampling=sampling.smoke",
        "infer.seq_len=32",
        "infer.max_new_tokens=4",
        "pipeline.torch_profiler.enabled=false",
    ]);
    command.env("LLM_PERF_PYTHON", tests.join("fake/python3")).env("FAKE_TORCH", "2.15.0");
    command.env("FAKE_SESSION", session).env("FAKE_END", end);
    Output::of(command)
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn find<'a>(metrics: &'a Value, remedy: &str) -> &'a Value {
    let tries = metrics["tries"].as_array().unwrap();
    tries.iter().find(|one| one["remedy"] == remedy).unwrap_or_else(|| panic!("no {remedy} in {tries:#?}"))
}

#[test]
fn a_recorded_session_becomes_savings_with_intervals() {
    let scratch = Scratch::new();
    let output = replay(&scratch, &recorded(), "");
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.assert_whole_bundle("run");
    let metrics = scratch.json("run", "metrics.json");
    for remedy in ["last-logits", "bf16", "batch-2", "compile"] {
        let one = find(&metrics, remedy);
        assert_eq!(one["status"], "tried", "{one}");
        // The medians by hand, from the lines.
        let median = |baseline: bool| {
            let turns = recorded()
                .into_iter()
                .map(|line| event(&line))
                .filter(|line| line["event"] == "turn" && line["remedy"] == remedy && line["baseline"] == baseline);
            let mut walls: Vec<f64> = turns.map(|line| line["wall_ns"].as_f64().unwrap()).collect();
            walls.sort_by(f64::total_cmp);
            let half = walls.len() / 2;
            if walls.len() % 2 == 1 { walls[half] } else { (walls[half - 1] + walls[half]) / 2.0 }
        };
        let saves = 1.0 - median(false) / median(true);
        assert!((one["saves_share"].as_f64().unwrap() - saves).abs() < 1e-9, "{one}");
        assert!(one["low"].as_f64().unwrap() <= saves && saves <= one["high"].as_f64().unwrap(), "{one}");
        assert!(one["output"]["max_logit_distance"].is_f64(), "{one}");
    }
    assert!(find(&metrics, "compile")["compile_ns"].as_i64() > Some(0));
    assert_eq!(find(&metrics, "last-logits")["compile_ns"], Value::Null);
    let graph = find(&metrics, "cuda-graph");
    assert_eq!(
        (&graph["status"], &graph["reason"]),
        (&json!("not_applicable"), &json!("a CUDA graph needs a CUDA device"))
    );
    let report = scratch.text("run", "report.md");
    assert!(report.contains("## Remedies tried (measured)"), "{report}");
    assert!(report.contains("Not applicable: `cuda-graph` (a CUDA graph needs a CUDA device)."), "{report}");
    for name in ["logs/torch_tries.py", "logs/torch-driver.py"] {
        assert!(scratch.path("run").join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let asked: Value = serde_json::from_str(&scratch.text("run", "logs/torch-request.json")).unwrap();
    assert_eq!(asked["tries"]["remedies"][0], json!(["cuda-graph"]));
    assert_eq!(asked["tries"]["kinds"]["compile"], "launch");
    assert_eq!(asked["tries"]["kinds"]["warm-up"], Value::Null);
}

#[test]
fn a_driver_killed_in_the_middle_leaves_what_it_had_finished() {
    let lines = recorded();
    // The third turn of the second remedy that ran.
    let of = |line: &String, event_name: &str, remedy: &str| {
        let event = event(line);
        event["event"] == event_name && event["remedy"] == remedy
    };
    let third = lines.iter().enumerate().filter(|(_, line)| of(line, "turn", "bf16")).nth(2).unwrap().0;
    let scratch = Scratch::new();
    let output = replay(&scratch, &lines[..=third], "kill");
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert_eq!(scratch.manifest("run")["status"], "partial");
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(find(&metrics, "last-logits")["status"], "tried");
    assert!(find(&metrics, "last-logits")["saves_share"].is_f64());
    let cut = find(&metrics, "bf16");
    assert_eq!((&cut["status"], &cut["reason"]), (&json!("not_reached"), &json!("the driver exited while trying it")));
    assert_eq!(cut["turns"].as_array().unwrap().len(), 3);
    let never = find(&metrics, "compile");
    assert_eq!(
        (&never["status"], &never["reason"]),
        (&json!("not_reached"), &json!("the driver exited before trying it"))
    );
    assert!(scratch.text("run", "report.md").contains("`compile` (not reached): the driver exited before trying it"));
}

#[test]
fn one_that_runs_out_of_memory_says_so_and_the_rest_go_on() {
    let failed = json!({"event": "tried", "remedy": "bf16", "status": "failed",
        "reason": "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."});
    let kept = recorded().into_iter().filter_map(|line| {
        let said = event(&line);
        match (said["event"].as_str(), said["remedy"].as_str()) {
            (Some("turn"), Some("bf16")) => None,
            (Some("tried"), Some("bf16")) => Some(failed.to_string()),
            _ => Some(line),
        }
    });
    let scratch = Scratch::new();
    let output = replay(&scratch, &kept.collect::<Vec<_>>(), "");
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let one = find(&metrics, "bf16");
    assert_eq!((&one["status"], &one["saves_share"]), (&json!("failed"), &Value::Null));
    assert!(one["reason"].as_str().unwrap().contains("out of memory"));
    assert_eq!(find(&metrics, "compile")["status"], "tried");
    assert!(output.stdout.contains("bf16 failed: OutOfMemoryError"), "{}", output.stdout);
}
