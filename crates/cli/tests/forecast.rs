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
        ("dtype,m,n,k,microseconds\nbf16,1,2,3\n", "points.csv:2: 4 cells for 5 columns"),
        ("dtype,m,n,k,microseconds\nbf16,1,2,0,3\n", "points.csv:2: k is `0`"),
        (
            "dtype,m,n,k,device,microseconds\nbf16,1,2,3,h200,9\nbf16,2,2,3,h100,9\n",
            "points.csv:3: the device is `h100`",
        ),
        ("dtype,m,n,k,device,microseconds\nbf16,1,2,3,a100,9\n", "points.csv:2: the point was measured on `a100`"),
        ("dtype,m,n,k,microseconds\nbf16,1,2,3,9\n", "gemm in bf16 has 1 points"),
        ("dtype,m,n,k\nbf16,1,2,3\n", "points.csv:1: missing column `microseconds`"),
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

/// Imports a capture of an H200 into the folder `name`.
fn import(home: &Path, capture: &str, name: &str) {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/torch").join(capture);
    let output = llm_perf(home).arg("import").arg(trace).args(["--out", name]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

fn from(home: &Path, runs: &[&str]) -> Output {
    llm_perf(home).args(["doctor", "--calibrate", "--json", "--from"]).args(runs).output().unwrap()
}

#[test]
fn a_run_is_calibration_data() {
    let home = tempfile::tempdir().unwrap();
    import(home.path(), "dsocr-h200.json.gz", "captured");
    let output = from(home.path(), &["./captured"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let calibration: Value = serde_json::from_slice(&output.stdout).unwrap();
    let gemm = calibration["groups"].as_array().unwrap().iter().find(|group| group["op"] == "gemm").unwrap();
    let points = gemm["points"].as_array().unwrap();
    // DeepSeek-OCR loops over its experts, so that its prefill has GEMMs of many heights.
    assert!(points.len() > 150, "{}", points.len());
    assert_eq!(gemm["run_points"].as_array().unwrap().len(), points.len(), "all of them are from the run");
    assert_eq!(calibration["runs"].as_array().unwrap().len(), 1);
    assert_eq!(calibration["device"], "h200");
    assert_eq!(calibration["driver"], Value::Null, "a trace does not say");
    // The median of 8 launches of [1, 1280] x [1280, 6848] in the trace is 7.2 us.
    let one = points.iter().find(|row| row[0] == 1.0 && row[1] == 6848.0 && row[2] == 1280.0).unwrap();
    assert!((6.5..8.0).contains(&one[3].as_f64().unwrap()), "{one}");

    let again = from(home.path(), &["./captured"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("is already part of the calibration"), "{}", text(&again.stderr));
    let shapes = "dtype,m,n,k\nbf16,1,6848,1280\nbf16,100,1280,1280\n";
    std::fs::write(home.path().join("shapes.csv"), shapes).unwrap();
    let output = llm_perf(home.path()).args(["hardware", "h200", "--predict", "shapes.csv"]).output().unwrap();
    assert!(text(&output.stdout).lines().nth(1).unwrap().ends_with("measured"), "{}", text(&output.stdout));
}

#[test]
fn runs_join_the_points_that_were_measured_alone() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(calibrate(home.path(), &points()).status.code(), Some(0));
    import(home.path(), "dsocr-h200.json.gz", "captured");
    let output = from(home.path(), &["./captured"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let calibration: Value = serde_json::from_slice(&output.stdout).unwrap();
    let gemm = calibration["groups"].as_array().unwrap().iter().find(|group| group["op"] == "gemm").unwrap();
    let (all, recorded) = (gemm["points"].as_array().unwrap().len(), gemm["run_points"].as_array().unwrap().len());
    assert_eq!(all - recorded, 30, "the points of the file are all there");
    assert_eq!(calibration["files"], serde_json::json!(["points.csv"]));
}

/// Changes a document of a run.
fn edit(home: &Path, file: &str, change: impl Fn(&mut Value)) {
    let path = home.join(file);
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut document);
    std::fs::write(path, document.to_string()).unwrap();
}

#[test]
fn runs_that_say_nothing_about_the_device_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let refused = |runs: &[&str], code: i32| {
        let output = from(home.path(), runs);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("hint:"), "{}", text(&output.stderr));
        text(&output.stderr).to_owned()
    };
    assert!(refused(&["./nothing"], 2).contains("nothing"));
    import(home.path(), "two-ranks-h200-0.json.gz", "few");
    let few = refused(&["./few"], 1);
    assert!(few.contains("of its operators have shapes and device times"), "{few}");

    import(home.path(), "dsocr-h200.json.gz", "captured");
    import(home.path(), "dsocr-h200.json.gz", "other");
    edit(home.path(), "other/metrics.json", |metrics| metrics["devices"][0]["hardware"] = "a100-sxm-80gb".into());
    let other = refused(&["./captured", "./other"], 1);
    assert!(other.contains("it ran on a100-sxm-80gb, but the first run is for h200"), "{other}");

    edit(home.path(), "other/metrics.json", |metrics| {
        metrics["devices"][0]["hardware"] = "h200".into();
        metrics["disturbance"] = serde_json::json!([{
            "input": null, "epoch": 0, "repeat": 0, "warmup": false, "causes": ["other programs took 60% of the processors"],
        }]);
    });
    let disturbed = refused(&["./other"], 1);
    assert!(disturbed.contains("disturbed samples: 1 of 1 (other programs"), "{disturbed}");
    assert!(!home.path().join("data/calibration/device-h200.json").exists());

    assert_eq!(from(home.path(), &["./captured"]).status.code(), Some(0));
    edit(home.path(), "data/calibration/device-h200.json", |stored| stored["driver"] = "570.86.15".into());
    import(home.path(), "dsocr-h200.json.gz", "later");
    let driver = refused(&["./later"], 1);
    assert!(
        driver.contains("it ran with an unknown driver, but the stored calibration is for driver 570.86.15"),
        "{driver}"
    );
}

#[test]
fn several_devices_have_a_forecast_with_what_they_send() {
    let home = tempfile::tempdir().unwrap();
    let forecast = |tensor: u64| {
        let tensor = format!("workload.parallel.tensor={tensor}");
        let arguments =
            ["analyze", "--model", "llama-3-8b", "--hardware", "h200", "--json", "workload.batch=64", &tensor];
        let output = llm_perf(home.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["forecast"].clone()
    };
    let (one, four) = (forecast(1), forecast(4));
    let ttft = |forecast: &Value| forecast["modes"][0]["ttft_ms"]["value"].as_f64().unwrap();
    assert!(ttft(&four) < ttft(&one) && ttft(&four) > ttft(&one) / 4.0, "{} and {}", ttft(&one), ttft(&four));
    let family = |forecast: &Value| {
        let families = forecast["kernel_families"].as_array().unwrap().clone();
        families.into_iter().find(|row| row["family"] == "communication" && row["stage"] == "prefill")
    };
    assert_eq!(family(&one), None);
    assert!(family(&four).unwrap()["device_ns"].as_i64().unwrap() > 0);
    assert_eq!(four["origin"], "assumed");
    assert!(four["notes"].to_string().contains("80% of the catalogue's link bandwidth"), "{}", four["notes"]);
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
