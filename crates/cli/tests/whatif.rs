//! `whatif`, as a user meets it: on a trace, on an imported run, and where there is nothing to replay.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "a replay needs less of it than a profile")]
mod scratch;
mod support;

use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name)
}

fn asked(scratch: &Scratch, arguments: &[&str]) -> Output {
    Output::of(scratch.command(&[&["whatif"][..], arguments].concat()))
}

fn answer(scratch: &Scratch, arguments: &[&str]) -> Value {
    let output = asked(scratch, &[arguments, &["--json"][..]].concat());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn nanoseconds(answer: &Value, pointer: &str) -> f64 {
    answer.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} of {answer}"))
}

#[test]
fn a_trace_is_replayed_with_several_changes_at_once() {
    let scratch = Scratch::new();
    let trace = fixture("torch/dsocr-h200.json.gz").display().to_string();
    let none = answer(&scratch, &[&trace]);
    assert!(none["replay"]["residual"].as_f64().unwrap().abs() < 0.02, "{}", none["replay"]);
    assert_eq!(none["saves_ns"], 0);
    let graphs = answer(&scratch, &[&trace, "--cuda-graphs"]);
    let both = answer(&scratch, &[&trace, "--cuda-graphs", "--fuse", "elementwise", "--kernels", "gemm=roofline"]);
    assert_eq!(both["changes"].as_array().unwrap().len(), 3);
    let (one, two) = (nanoseconds(&graphs, "/saves_ns"), nanoseconds(&both, "/saves_ns"));
    assert!(two > one && one > 0.0, "{one} {two}");
    assert!(nanoseconds(&both, "/after_low_ns") <= nanoseconds(&both, "/after/time_ns"));
    let shares: f64 =
        both["after"]["critical_path"].as_array().unwrap().iter().map(|part| part["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    let text = asked(&scratch, &[&trace, "--cuda-graphs", "--hardware", "b200"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    let (first, result) = (text.stdout.find("Predicted by replaying the trace"), text.stdout.find("would become"));
    assert!(first.is_some() && first < result, "{}", text.stdout);
}

#[test]
fn an_imported_run_is_replayed_from_where_its_trace_is() {
    let scratch = Scratch::new();
    let trace = fixture("nsys/dsocr-h200.sqlite.gz").display().to_string();
    let imported = Output::of(scratch.command(&["import", &trace, "--out", "run"]));
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let run = answer(&scratch, &["run", "--host", "2x"]);
    let file = answer(&scratch, &[&trace, "--host", "2x"]);
    assert_eq!(run["after"]["time_ns"], file["after"]["time_ns"]);
    assert_eq!(run["replay"]["measured_ns"], metrics["replay"]["measured_ns"]);
    assert!(nanoseconds(&run, "/saves_ns") > 0.0);
    let path = metrics["critical_path"].as_array().unwrap();
    assert!(path.len() > 2 && path[0]["cause"].is_string(), "{path:?}");
    for finding in metrics["findings"].as_array().unwrap() {
        let ends = [&finding["saves_low_ns"], &finding["saves_ns"], &finding["saves_high_ns"]].map(Value::as_i64);
        if let [Some(low), Some(saves), Some(high)] = ends {
            assert!(low <= saves && saves <= high && finding["assumes"].is_string(), "{finding}");
        }
        assert!(finding["tried"].is_null());
    }
}

#[test]
fn a_run_without_a_timeline_is_wrong_usage_and_a_factor_needs_its_x() {
    let scratch = Scratch::new();
    let table = std::fs::read_dir(fixture("nsys_stats")).unwrap().map(|entry| entry.unwrap().path());
    let table = table.filter(|path| path.to_string_lossy().ends_with("cuda_gpu_kern_sum.csv")).min().unwrap();
    let imported = Output::of(scratch.command(&["import", &table.display().to_string(), "--out", "run"]));
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let refused = asked(&scratch, &["run", "--cuda-graphs"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("has no timeline"), "{}", refused.stderr);
    let wrong = asked(&scratch, &["run", "--host", "2"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("such as 2x"), "{}", wrong.stderr);
    let unknown = asked(&scratch, &["run", "--kernels", "gemms=2x"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("convolution"), "{}", unknown.stderr);
}

#[test]
fn a_trace_of_a_device_alone_is_refused_with_a_reason() {
    let scratch = Scratch::new();
    let event = r#"{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10, "dur": 5,
        "args": {"device": 0, "stream": 7, "correlation": 1}}"#;
    let text = format!(r#"{{"schemaVersion": 1, "traceEvents": [{event}]}}"#);
    std::fs::write(scratch.path("device.json"), text).unwrap();
    let refused = asked(&scratch, &["device.json", "--cuda-graphs"]);
    assert_eq!(refused.code, 1, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("cannot be replayed") && refused.stderr.contains("calls"), "{}", refused.stderr);
}
