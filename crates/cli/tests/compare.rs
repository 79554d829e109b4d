//! `llm-perf compare` on run folders whose truth is known.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::llm_perf;
use tempfile::TempDir;
use types::{ChangeVerdict, Comparison, GateOutcome, Replication};

mod support;

/// A run of two pages whose repeats differ by up to 1%, otherwise for each seed.
struct Run {
    repeats: u64,
    seed: u64,
    decode_longer: f64,
    status: &'static str,
}

impl Default for Run {
    fn default() -> Self {
        Self { repeats: 6, seed: 1, decode_longer: 0.0, status: "complete" }
    }
}

impl Run {
    fn metrics(&self) -> Value {
        let mut samples = Vec::new();
        for (input, size) in [("invoice.png", 1.0), ("letter.png", 0.3)] {
            for (stage, time, longer) in [("prefill", 400e6, 0.0), ("decode", 310e6, self.decode_longer)] {
                for repeat in 0..self.repeats {
                    let noise = 1.0 + ((self.seed * 7 + repeat * 5) % 11) as f64 / 1_000.0;
                    let wall_ns = (time * size * (1.0 + longer) * noise) as i64;
                    samples.push(json!({
                        "stage": stage, "input": input, "epoch": 0, "repeat": repeat, "rank": null, "warmup": false,
                        "wall_ns": wall_ns,
                    }));
                }
            }
        }
        let own = 500_000_000 + self.seed * 1_000_000;
        json!({
            "schema": "llm-perf/metrics/1",
            "run": {"id": "run", "engine": "native", "model": "deepseek-ocr-tiny", "device": "cpu", "weights": "synthetic"},
            "devices": [], "clocks": [], "totals": {}, "stages": [], "kernels": [], "regions": [], "modules": [],
            "operators": [{"name": "linear", "calls": 1260, "total_ns": own, "self_ns": own}],
            "findings": [], "samples": samples, "aggregates": {}, "overhead": {}, "quality": [], "mfu_per_stage": {},
            "work_per_stage": {},
            "inputs": [
                {"name": "invoice.png", "prompt_tokens": 280, "image_tokens": 273, "generated_tokens": 46},
                {"name": "letter.png", "prompt_tokens": 280, "image_tokens": 273, "generated_tokens": 46},
            ],
        })
    }

    fn manifest(&self, name: &str) -> Value {
        let reasons: &[&str] = if self.status == "failed" { &["out of memory"] } else { &[] };
        json!({
            "schema": "llm-perf/manifest/1", "run_id": name, "status": self.status, "reasons": reasons,
            "verb": "profile", "command": ["llm-perf", "profile"], "tool_version": "0.1.0", "model": "deepseek-ocr-tiny",
            "device": "cpu", "started_at": "2025-11-15T03:47:12Z", "ended_at": "2025-11-15T03:48:12Z",
            "process": {"pid": 7, "start_ticks": 7, "boot_id": "a boot long ago"},
        })
    }

    fn write(&self, root: &Path, name: &str) {
        let folder = root.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("manifest.json"), self.manifest(name).to_string()).unwrap();
        fs::write(folder.join("metrics.json"), self.metrics().to_string()).unwrap();
        let image = |name: &str| format!("- {{name: {name}, path: {name}, sha256: {name:0>64}, used: true}}\n");
        let inputs = format!(
            "schema: llm-perf/inputs/1\ndataset_root: .\ncount: 2\nimages:\n{}{}",
            image("invoice.png"),
            image("letter.png")
        );
        fs::write(folder.join("inputs.yaml"), inputs).unwrap();
    }
}

/// A root with a run, one that is slower, one that is not, and ones that cannot be compared.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, run: Run| run.write(root.path(), name);
    write("before", Run::default());
    write("before-2", Run { seed: 3, ..Run::default() });
    write("same", Run { seed: 2, ..Run::default() });
    write("after", Run { seed: 2, decode_longer: 0.08, ..Run::default() });
    write("after-2", Run { seed: 4, decode_longer: 0.08, ..Run::default() });
    write("short", Run { repeats: 2, ..Run::default() });
    write("short-after", Run { repeats: 2, decode_longer: 0.08, ..Run::default() });
    write("partial", Run { seed: 2, status: "partial", ..Run::default() });
    write("failed", Run { status: "failed", ..Run::default() });
    fs::remove_file(root.path().join("failed/metrics.json")).unwrap();
    write("broken", Run::default());
    fs::write(root.path().join("broken/metrics.json"), "{\"schema\": ").unwrap();
    write("newer", Run::default());
    fs::write(root.path().join("newer/metrics.json"), "{\"schema\": \"llm-perf/metrics/9\"}").unwrap();
    root
}

fn transcript(root: &Path, arguments: &[&str]) -> String {
    let place = root.to_str().unwrap();
    let mut all = vec!["compare", "--root", place];
    all.extend(arguments);
    support::transcript(&all).replace(place, "ROOT")
}

fn json(root: &Path, arguments: &[&str]) -> (Option<i32>, Comparison) {
    let output = llm_perf().args(["compare", "--json", "--root"]).arg(root).args(arguments).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn a_slower_stage_is_found_and_fails_the_gate() {
    let shown = transcript(root().path(), &["before", "after", "--fail-over", "5%"]);
    assert!(shown.starts_with("exit: 4\n"), "{shown}");
    for expected in [
        "base   ROOT/before\n",
        "stage medians summed over 2 common inputs",
        "no interval: one pass per side",
        "decode is slower: ",
        "gate 5.0%: failed, slower by more: decode\n",
    ] {
        assert!(shown.contains(expected), "{expected} is missing from:\n{shown}");
    }
    let row = |stage: &str| shown.lines().find(|line| line.starts_with(stage)).unwrap();
    assert!(row("prefill").ends_with("no evidence of change") && row("decode").ends_with("slower"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
}

#[test]
fn the_gate_takes_what_is_within_its_limit() {
    let root = root();
    for (with, limit, expected) in [("after", "10%", 0), ("after", "5%", 4), ("same", "0%", 0), ("before", "0%", 0)] {
        let (code, comparison) = json(root.path(), &["before", with, "--fail-over", limit]);
        assert_eq!(code, Some(expected), "{with} {limit} {:?}", comparison.gate);
    }
    let (code, comparison) = json(root.path(), &["before", "after"]);
    assert_eq!((code, comparison.gate), (Some(0), None));
}

#[test]
fn too_few_repeats_leave_the_gate_undecided_and_say_so() {
    let shown = transcript(root().path(), &["short", "short-after", "--fail-over", "5%"]);
    let reason = "prefill, decode: too few repeats of 2 inputs: 2 and 2; each side needs 3";
    assert!(shown.starts_with("exit: 3\n"), "{shown}");
    assert!(shown.contains("gate 5.0%: undecided, nothing failed but not everything could be tested"), "{shown}");
    assert!(shown.contains(&format!("warning: the gate is undecided: {reason}\n")), "{shown}");
}

#[test]
fn several_runs_per_side_are_compared_as_runs() {
    let root = root();
    let sides = ["--base", "before", "before-2", "--with", "after", "after-2", "--fail-over", "5%"];
    let (code, comparison) = json(root.path(), &sides);
    assert_eq!((code, comparison.replication), (Some(4), Replication::Runs));
    assert_eq!(comparison.gate.unwrap().failed, ["decode"]);
    let operator = &comparison.operators[0];
    assert!(operator.interval.is_some() && operator.untested.is_none(), "{operator:?}");
    assert_eq!(comparison.stages[0].verdict, ChangeVerdict::NoEvidence);
}

#[test]
fn json_is_the_document_it_names() {
    let root = root();
    let file = root.path().join("comparison.json");
    let output = llm_perf()
        .args(["compare", "before", "after", "--json", "--fail-over", "5%", "--root"])
        .arg(root.path())
        .output()
        .unwrap();
    fs::write(&file, output.stdout).unwrap();
    let shown = support::transcript(&["validate", file.to_str().unwrap()]);
    assert!(shown.starts_with("exit: 0\n") && shown.contains("valid llm-perf/comparison/1"), "{shown}");
}

#[test]
fn markdown_is_printed_and_written() {
    let root = root();
    let file = root.path().join("comparison.md");
    let shown = transcript(root.path(), &["before", "after", "--markdown", "--out", file.to_str().unwrap()]);
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("# Comparison\n\n- decode is slower: "), "{page}");
    assert!(shown.contains("# Comparison") && shown.ends_with("written: ROOT/comparison.md\n"), "{shown}");
}

#[test]
fn forecasts_are_compared_where_both_sides_have_them() {
    let root = root();
    let forecast = |run: &str, scale: i64| {
        let folder = root.path().join(run).join("static_analysis/analytic_model");
        fs::create_dir_all(&folder).unwrap();
        let time =
            |ns: i64| json!({"forecast_ns": ns, "forecast_low_ns": ns / 2, "forecast_high_ns": 2 * ns, "time_ms": 1.0});
        let stages =
            json!({"prefill": time(400_000_000), "decode": time(300_000_000 * scale), "vision": {"time_ms": 0.0}});
        fs::write(folder.join("report.json"), json!({"stages": stages}).to_string()).unwrap();
    };
    forecast("before", 1);
    assert_eq!(json(root.path(), &["before", "after"]).1.forecasts, [], "one side alone says nothing");
    forecast("after", 2);
    let (_, comparison) = json(root.path(), &["before", "after"]);
    let changes: Vec<(&str, f64)> = comparison.forecasts.iter().map(|row| (row.stage.as_str(), row.change)).collect();
    assert_eq!(changes, [("decode", 1.0), ("prefill", 0.0)]);
    let text = transcript(root.path(), &["before", "after"]);
    assert!(text.contains("forecast") && text.contains("600 ms"), "{text}");
}

#[test]
fn runs_are_found_by_folder_and_by_file_too() {
    let root = root();
    let place = |path: &str| root.path().join(path).display().to_string();
    let (code, comparison) = json(Path::new("nowhere"), &[&place("before/metrics.json"), &place("after")]);
    assert_eq!((code, comparison.common_inputs), (Some(0), Some(2)));
    assert_eq!((comparison.base[0].state, comparison.stages[1].verdict), (None, ChangeVerdict::Slower));
}

#[test]
fn a_partial_run_is_compared_and_said_to_be_partial() {
    let (code, comparison) = json(root().path(), &["before", "partial", "--fail-over", "5%"]);
    assert_eq!((code, comparison.gate.unwrap().outcome), (Some(0), GateOutcome::Passed));
    assert_eq!(comparison.differences[0].aspect, "status");
}

#[test]
fn what_cannot_be_read_fails_with_the_file_and_the_reason() {
    let root = root();
    for (run, expected) in [
        ("failed", "error: ROOT/failed has no metrics.json: the run is failed (out of memory)\n"),
        ("broken", "error: cannot read ROOT/broken/metrics.json as metrics: EOF while parsing"),
        ("newer", "schema is llm-perf/metrics/9, this reads llm-perf/metrics/1; it was written by a newer llm-perf"),
    ] {
        let shown = transcript(root.path(), &["before", run]);
        assert!(shown.starts_with("exit: 1\n") && shown.contains(expected), "{run}\n{shown}");
        assert!(shown.contains("\nhint: "), "{shown}");
    }
}

#[test]
fn nonsense_is_wrong_usage() {
    let root = root();
    let asked: [(&[&str], &str); 8] = [
        (&["before"], "<WITH>"),
        (&["before", "nothing"], "run `nothing` not found in ROOT"),
        (&["--base", "before"], "--with <RUN>..."),
        (&["before", "after", "--with", "after"], "cannot be used with"),
        (&["--base", "before", "before", "--with", "after"], "ROOT/before is given twice on the same side"),
        (&["before", "after", "--fail-over", "5"], "expected a percentage, such as 5%"),
        (&["before", "after", "--fail-over", "-5%"], "expected a limit of 0% or more, such as 5%"),
        (&["before", "after", "--json", "--markdown"], "cannot be used with"),
    ];
    for (asked, expected) in asked {
        let shown = transcript(root.path(), asked);
        assert!(shown.starts_with("exit: 2\n") && shown.contains(expected), "{asked:?}\n{shown}");
    }
}
