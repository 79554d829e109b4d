//! Calibrating a device from points, predicting shapes, and the forecast beside the roofline.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

fn llm_perf(home: &Path) -> Command {
    let mut command = Command::new(cargo_bin!("llm-perf"));
    command.env("HOME", home).env("LLM_PERF_DATA_DIR", home.join("data")).current_dir(home);
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Microseconds of a made-up device that behaves as a curve says: 3 us, 70% of 989 TFLOP/s, 85% of 4.8 TB/s.
fn truth(m: f64, n: f64, k: f64) -> f64 {
    let compute = 2.0 * m * n * k / 989.5e12 * 1e6 / 0.7;
    let memory = 2.0 * (m * k + n * k + m * n) / 4.8e12 * 1e6 / 0.85;
    3.0 + compute.max(memory)
}

fn points() -> String {
    let mut text = "op,dtype,m,n,k,microseconds\n".to_owned();
    for m in [1, 16, 128, 1024, 8192] {
        for n in [1024, 4096, 16384] {
            for k in [1024, 4096] {
                let _ = writeln!(text, "gemm,bf16,{m},{n},{k},{}", truth(m.into(), n.into(), k.into()));
            }
        }
    }
    text
}

fn calibrate(home: &Path, points: &str) -> Output {
    std::fs::write(home.join("points.csv"), points).unwrap();
    llm_perf(home).args(["doctor", "--calibrate", "--device", "h200", "--points", "points.csv"]).output().unwrap()
}

#[test]
fn points_become_estimates_of_other_shapes() {
    let home = tempfile::tempdir().unwrap();
    let output = calibrate(home.path(), &points());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("gemm"), "{}", text(&output.stdout));
    let stored = home.path().join("data/calibration/device-h200.json");
    let valid = llm_perf(home.path()).arg("validate").arg(&stored).output().unwrap();
    assert_eq!(valid.status.code(), Some(0), "{}", text(&valid.stdout));

    let shapes = "tag,dtype,m,n,k\na,bf16,128,4096,4096\nb,bf16,300,6000,2048\nc,bf16,300,6000,1000000\n";
    std::fs::write(home.path().join("shapes.csv"), shapes).unwrap();
    let output = llm_perf(home.path()).args(["hardware", "h200", "--predict", "shapes.csv"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows: Vec<Vec<&str>> = text(&output.stdout).lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["tag", "dtype", "m", "n", "k", "microseconds", "low", "high", "basis"]);
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().unwrap();
    assert_eq!((number(1, 5), rows[1][8]), (truth(128.0, 4096.0, 4096.0), "measured"));
    let expected = truth(300.0, 6000.0, 2048.0);
    assert!((number(2, 5) / expected - 1.0).abs() < 0.05, "{} for {expected}", number(2, 5));
    assert!(number(2, 6) <= number(2, 5) && number(2, 5) <= number(2, 7));
    assert_eq!((rows[2][8], rows[3][8]), ("interpolated", "extrapolated"));
}

#[test]
fn bad_points_are_told_by_line_and_nothing_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let cases = [
        ("dtype,m,n,k,microseconds\nbf16,1,2,3,NaN\n", "points.csv:2: microseconds is `NaN`"),
        ("dtype,m,n,k,microseconds\nbf16,8192,8192,8192,1\n", "points.csv:2: 1 microseconds would be"),
        ("dtype,m,n,k,microseconds\nbf16,1,2,3\n", "points.csv:2: 4 cells under 5 columns"),
        ("dtype,m,n,k,microseconds\nbf16,1,2,0,3\n", "points.csv:2: k is `0`"),
        (
            "dtype,m,n,k,device,microseconds\nbf16,1,2,3,h200,9\nbf16,2,2,3,h100,9\n",
            "points.csv:3: the device is `h100`",
        ),
        ("dtype,m,n,k,device,microseconds\nbf16,1,2,3,a100,9\n", "points.csv:2: the point is of `a100`"),
        ("dtype,m,n,k,microseconds\nbf16,1,2,3,9\n", "1 points of gemm in bf16 are too few"),
        ("dtype,m,n,k\nbf16,1,2,3\n", "points.csv:1: there is no column `microseconds`"),
        ("", "points.csv:1: the file is empty"),
    ];
    for (points, expected) in cases {
        let output = calibrate(home.path(), points);
        assert_eq!(output.status.code(), Some(2), "{points}");
        let told = text(&output.stderr);
        assert!(told.contains(expected), "{told}\nwithout: {expected}");
        assert!(told.contains("hint:") || points.is_empty(), "{told}");
    }
    assert!(!home.path().join("data/calibration/device-h200.json").exists());
}

#[test]
fn a_device_without_points_or_calibration_is_wrong_usage() {
    let home = tempfile::tempdir().unwrap();
    let output = llm_perf(home.path()).args(["doctor", "--calibrate", "--device", "h200"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--points"), "{}", text(&output.stderr));
    std::fs::write(home.path().join("shapes.csv"), "dtype,m,n,k\nbf16,1,2,3\n").unwrap();
    let output = llm_perf(home.path()).args(["hardware", "h200", "--predict", "shapes.csv"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("h200 is not calibrated"), "{}", text(&output.stderr));
}

fn analyze(home: &Path) -> Value {
    let output = llm_perf(home).args(["analyze", "--hardware", "h200", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_forecast_stands_beside_the_roofline() {
    let home = tempfile::tempdir().unwrap();
    let assumed = analyze(home.path());
    assert_eq!(assumed["forecast"]["origin"], "assumed");
    assert_eq!(assumed["forecast"]["calibrated_share"], 0.0);
    let nanos = |value: &Value| value.as_i64().unwrap();
    for (name, stage) in assumed["stages"].as_object().unwrap() {
        let [time, low, high] = ["forecast_ns", "forecast_low_ns", "forecast_high_ns"].map(|key| nanos(&stage[key]));
        assert!(low <= time && time <= high, "{name}");
        assert!(time as f64 >= stage["time_ms"].as_f64().unwrap() * 1e6, "{name} is forecast below its roofline");
    }
    let root = &assumed["module_metrics"][0];
    let (root, total) = (nanos(&root["forecast_ns"]), nanos(&assumed["forecast_ns"]));
    assert!((root - total).abs() <= 1_000, "the root holds everything: {root} and {total}");
    let modes = assumed["forecast"]["modes"].as_array().unwrap();
    let gaps = |mode: &str| {
        let found = modes.iter().find(|one| one["mode"] == mode).unwrap();
        nanos(&found["launch_gaps_ns"]) as f64 / nanos(&found["forecast_ns"]) as f64
    };
    assert!(gaps("eager") > 0.3, "eager decode of a small model waits for launches: {}", gaps("eager"));
    assert!(gaps("graph") < 0.1, "a graph does not: {}", gaps("graph"));

    let output = calibrate(home.path(), &points());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let calibrated = analyze(home.path());
    assert!(calibrated["forecast"]["calibrated_share"].as_f64().unwrap() > 0.2);
    assert!(calibrated["forecast"]["basis"].as_str().unwrap().contains("30 points"));
}
