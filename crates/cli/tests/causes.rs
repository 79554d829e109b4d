//! From records to causes, as a user sees it: what `import` concludes from captures of the same workload by two tools.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod support;

use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name)
}

fn imported(file: &Path, arguments: &[&str]) -> Value {
    let scratch = Scratch::new();
    let file = file.display().to_string();
    let mut all = vec!["import", file.as_str(), "--out", "run"];
    all.extend(arguments);
    let output = Output::of(scratch.command(&all));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    scratch.json("run", "metrics.json")
}

/// The full DeepSeek-OCR on an H200, prefill and four decode steps, under the torch profiler and under nsys.
fn both() -> [Value; 2] {
    // nsys records no shapes, so the workload is said.
    let workload =
        ["workload.base_size=1024", "workload.crop_grid=[1,1]", "workload.seq_len=286", "workload.max_new_tokens=5"];
    let arguments = [&["--model", "deepseek-ocr"][..], &workload[..]].concat();
    let torch = imported(&fixture("torch/dsocr-h200.json.gz"), &["--model", "deepseek-ocr"]);
    let nsys = imported(&fixture("nsys/dsocr-h200.sqlite.gz"), &arguments);
    [torch, nsys]
}

fn rows<'a>(metrics: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    metrics[key].as_array().unwrap_or_else(|| panic!("{key}")).iter()
}

fn finding<'a>(metrics: &'a Value, rule: &str, stage: &str) -> &'a Value {
    let found = rows(metrics, "findings").find(|one| one["rule"] == rule && one["stage"] == stage);
    found.unwrap_or_else(|| panic!("no {rule} in {stage}: {:#}", metrics["findings"]))
}

fn sum(metrics: &Value, list: &str, key: &str) -> i64 {
    rows(metrics, list).filter_map(|row| row[key].as_i64()).sum()
}

fn stage<'a>(metrics: &'a Value, name: &str) -> &'a Value {
    rows(metrics, "stages").find(|stage| stage["name"] == name).unwrap()
}

#[test]
fn decode_is_launch_bound_and_both_tools_say_so() {
    for metrics in both() {
        let launches = metrics["totals"]["launches_per_token"].as_f64().unwrap();
        assert!((launches - 1_280.0).abs() < 1.0, "{launches}");
        let finding = finding(&metrics, "launch-bound", "decode");
        let decode = stage(&metrics, "decode");
        // 1.148 GB of weights per token at 4.8 TB/s are 0.24 ms.
        let floor = decode["speed_of_light_ns"].as_f64().unwrap() / 4.0 / 1e6;
        assert!((0.235..0.26).contains(&floor), "{floor} ms per token");
        let saves = finding["saves_ns"].as_f64().unwrap();
        let wall = decode["wall_ns"].as_f64().unwrap();
        assert!(saves > 0.5 * wall && saves < wall, "{saves} of {wall}");
    }
}

#[test]
fn what_findings_save_never_exceeds_what_was_lost() {
    for metrics in both() {
        let (saved, lost) = (sum(&metrics, "findings", "saves_ns"), sum(&metrics, "lost_time", "lost_ns"));
        assert!(saved > 0 && saved <= lost, "{saved} of {lost}");
        for name in ["prefill", "decode"] {
            let stage = stage(&metrics, name);
            let of_stage = rows(&metrics, "lost_time").filter(|row| row["stage"] == name);
            let lost: i64 = of_stage.filter_map(|row| row["lost_ns"].as_i64()).sum();
            let (wall, least) = (stage["wall_ns"].as_i64().unwrap(), stage["speed_of_light_ns"].as_i64().unwrap());
            assert_eq!(stage["lost_ns"].as_i64(), Some(lost));
            // Work that could be avoided is lost beside what is beyond the roofline time, so wall is the upper end.
            assert!(lost >= wall - least - wall / 100 && lost <= wall, "{name}: {lost} of {wall}, least {least}");
        }
    }
}

#[test]
fn the_modules_of_a_trace_that_names_none_are_found() {
    let [torch, _] = both();
    let module = |path: &str, stage: &str| {
        let found = rows(&torch, "modules").find(|row| row["path"] == path && row["stage"] == stage);
        found.unwrap_or_else(|| panic!("no {path} in {stage}: {:#}", torch["modules"]))
    };
    let sam = module("model.sam_model", "sam");
    assert_eq!(sam["class"], "ImageEncoderViT");
    let (measured, wall) = (sam["measured_ns"].as_f64().unwrap(), stage(&torch, "sam")["wall_ns"].as_f64().unwrap());
    assert!((measured / wall - 1.0).abs() < 0.1, "{measured} of {wall}");
    let layer = module("model.layers.5", "decode");
    assert_eq!(layer["class"], "DeepseekV2DecoderLayer");
    assert!(layer["cause"].as_str().unwrap().starts_with("waiting for the host"), "{layer:#}");
    // Twelve layers are alike but for the first, which has no experts.
    let decode = stage(&torch, "decode")["wall_ns"].as_f64().unwrap();
    let share = layer["measured_ns"].as_f64().unwrap() / decode;
    assert!((0.06..0.11).contains(&share), "{share}");
}

/// Programs whose cause was put there. What each may be told and must not be told stands beside the recordings.
#[test]
fn a_program_is_told_the_cause_that_was_put_there_and_no_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/causes");
    let expected: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("expected.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for (name, kinds) in expected.as_object().unwrap() {
        for (kind, ending) in [("torch", "json.gz"), ("collector", "wire.gz")] {
            let metrics = imported(&folder.join(format!("{name}.{ending}")), &[]);
            let expected = &kinds[kind];
            let holds = |list: &str, rule: &str| expected[list].as_array().unwrap().iter().any(|one| one == rule);
            let found: Vec<&str> = rows(&metrics, "findings").map(|one| one["rule"].as_str().unwrap()).collect();
            let saved: f64 = rows(&metrics, "findings").filter_map(|one| one["saves_share"].as_f64()).sum();
            let staged = rows(&metrics, "stages")
                .any(|stage| ["prefill", "decode", "vision"].iter().any(|one| stage["name"] == *one));
            let leads = holds("first", found.first().copied().unwrap_or_default());
            let is_right = leads && !found.iter().any(|rule| holds("never", rule)) && !staged;
            if !is_right || saved > expected["most"].as_f64().unwrap() {
                wrong.push(format!("{name} ({kind}): found {found:?}, saves {saved:.3}, stages {staged}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(expected.as_object().unwrap().len(), 25);
}
