//! `llm-perf analyze --sweep` as a user runs it.

mod support;

use std::path::Path;

use serde_json::Value;
use support::llm_perf;
use tempfile::TempDir;

struct Output {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    let output = llm_perf().arg("analyze").args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { code: output.status.code().unwrap(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

fn run(arguments: &[&str]) -> Output {
    run_in(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[&["--json"], arguments].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    let Output { code, stdout, stderr } = run_in(folder.path(), &[&["--out", "run"], arguments].concat());
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    stderr
}

const TINY: [&str; 2] = ["--model", "deepseek-ocr-tiny"];

#[test]
fn every_combination_is_computed_and_kept() {
    let folder = TempDir::new().unwrap();
    let axes = ["--sweep", "workload.batch=1,2,4", "--sweep", "workload.crop_grid=[1,1],[2,3]"];
    let arguments = [&TINY[..], &axes, &["--hardware", "h200,rtx-5090", "--out", "run"]].concat();
    let output = run_in(folder.path(), &arguments);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stdout.contains("12 points over batch (3 values) and crop_grid (2 values) on 2 devices"),
        "{}",
        output.stdout
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join("run").join(name)).unwrap();
    let csv = read("sweep.csv");
    assert_eq!(csv.lines().count(), 13);
    assert!(csv.starts_with("point,hardware,workload.batch,workload.crop_grid,"), "{csv}");
    assert!(csv.contains("\n3,rtx-5090,1,\"[2,3]\","), "{csv}");
    let sweep: Value = serde_json::from_str(&read("sweep.json")).unwrap();
    assert_eq!(sweep["points"].as_array().unwrap().len(), 12);
    assert_eq!(sweep["points"][11]["settings"]["workload.crop_grid"], serde_json::json!([2, 3]));
    assert!(read("sweep.svg").starts_with("<svg ") && read("sweep.md").contains("sweep.svg"));
    let manifest: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    assert_eq!(manifest["status"], "complete");
    let validated = llm_perf().args(["validate", "run/sweep.json"]).current_dir(folder.path()).output().unwrap();
    assert!(validated.status.success(), "{}", String::from_utf8_lossy(&validated.stdout));
}

#[test]
fn a_point_equals_the_single_analysis_of_its_settings() {
    let sweep = json(&[
        "--sweep",
        "workload.batch=1,8",
        "--sweep",
        "workload.seq_len=600,1200",
        "--hardware",
        "h200,rtx-4090",
        "workload.attention=flash",
    ]);
    for (point, batch, length, device) in [(0, 1, 600, "h200"), (7, 8, 1200, "rtx-4090")] {
        let figures = &sweep["points"][point]["figures"];
        let overrides = [format!("workload.batch={batch}"), format!("workload.seq_len={length}")];
        let single = json(&["--hardware", device, &overrides[0], &overrides[1], "workload.attention=flash"]);
        let near = |a: &Value, b: &Value| {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-9 * b, "{a} and {b}");
        };
        let alone = &single["devices"][0];
        near(&figures["ttft_ms"], &alone["ttft_ms"]);
        near(&figures["time_per_output_token_ms"], &alone["time_per_output_token_ms"]);
        near(&figures["total_time_ms"], &alone["predicted_total_time_ms"]);
        assert_eq!(figures["total_bytes"], single["memory"]["total_bytes"]);
        assert_eq!(figures["sequences_that_fit"], alone["sequences_that_fit"]);
        assert_eq!(figures["fits"], alone["fits"]);
        if device == "h200" {
            // Layers that are alike are replayed as blocks, in whatever order their kinds come.
            let eager = &single["forecast"]["modes"][0];
            for key in ["ttft_ms", "time_per_output_token_ms"] {
                let [quick, slow] =
                    [&figures["forecast"][key]["value"], &eager[key]["value"]].map(|one| one.as_f64().unwrap());
                assert!((quick / slow - 1.0).abs() < 0.005, "{key}: {quick} and {slow}");
            }
        }
    }
}

#[test]
fn forecasts_stand_beside_the_roofline_and_hold_it() {
    let sweep =
        json(&["--model", "llama-3-8b", "--sweep", "workload.batch=1,64", "--sweep", "workload.parallel.tensor=1,4"]);
    let basis = sweep["hardware"][0]["forecast_basis"].as_str().unwrap();
    assert!(basis.contains("not calibrated"), "{basis}");
    for point in sweep["points"].as_array().unwrap() {
        let (figures, forecast) = (&point["figures"], &point["figures"]["forecast"]);
        assert_eq!(forecast["origin"], "assumed");
        for key in ["ttft_ms", "time_per_output_token_ms"] {
            let [value, low, high] = ["value", "low", "high"].map(|end| forecast[key][end].as_f64().unwrap());
            assert!(low <= value && value <= high && value > figures[key].as_f64().unwrap(), "{key}: {forecast}");
        }
    }
    let text = run(&["--model", "llama-3-8b", "--sweep", "workload.batch=1,64"]).stdout;
    assert!(text.contains("forecast") && text.contains("eager forecasts with 90% intervals"), "{text}");
}

#[test]
fn points_that_cannot_be_modelled_say_why_and_the_rest_stands() {
    let folder = TempDir::new().unwrap();
    let output = run_in(
        folder.path(),
        &["--model", "llama-3-8b", "--sweep", "workload.parallel.tensor=1,3", "--hardware", "h200,t4", "--out", "run"],
    );
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("3 of 4 points could not be modelled"), "{}", output.stderr);
    assert!(output.stderr.contains("a divisor of the 32 attention heads"), "{}", output.stderr);
    let manifest = std::fs::read_to_string(folder.path().join("run/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["status"], "partial");
}

#[test]
fn wrong_requests_are_refused_before_anything_is_computed() {
    let unknown = refused(&["--sweep", "workload.bach=1,2"]);
    assert!(unknown.contains("workload.bach") && unknown.contains("workload.batch"), "{unknown}");
    let value = refused(&["--sweep", "workload.batch=1,many"]);
    assert!(value.contains("many"), "{value}");
    let key = refused(&["--sweep", "model.name=a,b"]);
    assert!(key.contains("only workload settings can be swept"), "{key}");
    let empty = refused(&["--sweep", "workload.batch=1,"]);
    assert!(empty.contains("has an empty value"), "{empty}");
    let none = refused(&["--sweep", "workload.batch"]);
    assert!(none.contains("has no values"), "{none}");
    let twice = refused(&["--sweep", "workload.batch=1", "--sweep", "workload.batch=2"]);
    assert!(twice.contains("given twice"), "{twice}");
    let nothing = refused(&["--sweep", "workload.batch=0"]);
    assert!(nothing.contains("none of the 1 points can be modelled"), "{nothing}");
}

#[test]
fn sizes_that_devices_cannot_share_are_wrong_usage() {
    let heads = refused(&["--model", "llama-3-8b", "workload.parallel.tensor=3"]);
    assert!(
        heads.contains("workload.parallel.tensor is 3; this model expects a divisor of the 32 attention heads"),
        "{heads}"
    );
    let activations = refused(&["--model", "llama-3-8b", "workload.quantisation.activations=fp8"]);
    assert!(activations.contains("quantisation.weights"), "{activations}");
}

#[test]
fn a_shared_model_shows_what_devices_send() {
    let report = json(&["--model", "llama-3-8b", "--hardware", "h100-sxm", "workload.parallel.tensor=4"]);
    let sums = &report["exchanges"][0];
    assert_eq!((&sums["collective"], &sums["per_pass"]), (&"all-reduce".into(), &65.into()));
    assert!(report["stages"]["decode"]["communication_ms"].as_f64().unwrap() > 0.0);
    let text = run(&["--model", "llama-3-8b", "--hardware", "h100-sxm", "workload.parallel.tensor=4"]).stdout;
    assert!(text.contains("4 (tensor 4) x H100 SXM") && text.contains("all-reduce of 4"), "{text}");
}

/// A sweep that is interrupted keeps what it has.
#[cfg(unix)]
#[test]
fn an_interrupted_sweep_leaves_a_partial_folder_that_says_so() {
    let folder = TempDir::new().unwrap();
    let many: Vec<String> = (1..=400).map(|batch| batch.to_string()).collect();
    let axes = [format!("workload.batch={}", many.join(",")), format!("workload.text_tokens={}", many.join(","))];
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_llm-perf"))
        .args(["analyze", "--model", "deepseek-ocr-tiny", "--sweep", &axes[0], "--sweep", &axes[1], "--out", "run"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The folder appears before the first point is computed.
    while !folder.path().join("run/config.yaml").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the sweep ended before it began");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(folder.path().join("run").join(name)).unwrap();
    let manifest: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    assert_eq!(manifest["status"], "partial");
    let reason = manifest["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("stopped after ") && reason.ends_with(" of 160000 points"), "{reason}");
    let sweep: Value = serde_json::from_str(&read("sweep.json")).unwrap();
    assert_eq!(sweep["stopped"], true);
    assert_eq!(read("sweep.csv").lines().count(), 1 + sweep["points"].as_array().unwrap().len());
}
