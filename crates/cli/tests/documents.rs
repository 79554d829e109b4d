//! `llm-perf schema` and `llm-perf validate`.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "documents need less of it than a profile")]
mod scratch;
mod support;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use scratch::{Output, Scratch};
use serde_json::{Value, json};
use support::{llm_perf, transcript};
use types::{SchemaList, ValidationReport, ValidationVerdict};

#[test]
fn every_document_is_listed() {
    let listed = transcript(&["schema"]);
    assert!(listed.starts_with("exit: 0\n"), "{listed}");
    let output = llm_perf().args(["schema", "--json"]).output().unwrap();
    let list: SchemaList = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list.documents.len(), types::documents::ALL.len());
    for document in list.documents {
        assert!(listed.contains(&document.name) && listed.contains(&document.about), "{}", document.name);
        let output = llm_perf().args(["schema", &document.name]).output().unwrap();
        let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(schema["$id"], document.name.as_str());
    }
}

#[test]
fn an_unknown_schema_names_the_nearest() {
    let shown = [transcript(&["schema", "metrcs"]), transcript(&["schema", "llm-perf/metrics/2"])];
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn what_the_tool_prints_is_valid() {
    for arguments in [["runs", "--json"], ["schema", "--json"]] {
        let output = llm_perf().args(arguments).output().unwrap();
        let shown = validate_stdin(&output.stdout);
        assert_eq!(shown.0, Some(0), "{}", shown.1);
    }
}

/// Exit code and output of `validate -` on that text.
fn validate_stdin(text: &[u8]) -> (Option<i32>, String) {
    let mut child =
        llm_perf().args(["validate", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_file_gets_its_verdict_and_the_worst_decides() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("valid.json", r#"{"schema": "llm-perf/runs/1", "root": "r", "runs": []}"#),
        ("one.json", r#"{"schema": "llm-perf/runs/1", "runs": []}"#),
        (
            "many.json",
            r#"{"schema": "llm-perf/runs/1", "root": 7, "runs": [{"id": "a", "path": "p", "state": "done", "reasons": "\u001b[31m"}]}"#,
        ),
        ("cut.json", "{\n  \"schema\": "),
        ("other.json", r#"{"name": "package"}"#),
        ("unknown.json", r#"{"schema": "llm-perf/run-list/1"}"#),
        ("newer.json", r#"{"schema": "llm-perf/runs/2"}"#),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let validate = |names: &[&str]| {
        let paths: Vec<String> = names.iter().map(|name| path(name)).collect();
        let arguments: Vec<&str> = ["validate"].into_iter().chain(paths.iter().map(String::as_str)).collect();
        transcript(&arguments).replace(folder.path().to_str().unwrap(), "FOLDER")
    };
    assert!(validate(&["valid.json"]).starts_with("exit: 0\n"));
    assert!(validate(&["valid.json", "one.json"]).starts_with("exit: 1\n"));
    assert!(validate(&["cut.json"]).starts_with("exit: 1\n"));
    assert!(validate(&["missing.json", "valid.json"]).starts_with("exit: 2\n"));
    let all: Vec<&str> = files.iter().map(|(name, _)| *name).chain(["missing.json", "."]).collect();
    insta::assert_snapshot!(validate(&all));

    let output =
        llm_perf().args(["validate", "--json"]).arg(path("valid.json")).arg(path("cut.json")).output().unwrap();
    let report: ValidationReport = serde_json::from_slice(&output.stdout).unwrap();
    let verdicts: Vec<ValidationVerdict> = report.files.iter().map(|file| file.verdict).collect();
    assert_eq!(verdicts, [ValidationVerdict::Valid, ValidationVerdict::Invalid]);
}

#[test]
fn validate_without_a_file_is_wrong_usage() {
    assert!(transcript(&["validate"]).starts_with("exit: 2\n"));
}

/// Captures of real tools; their notes say where they come from.
fn capture(name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/regions/kernel");
    let place = match name {
        "regions" => fixtures.join("A==A1%+A%A1%+B%/raw.csv.gz"),
        name => Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name),
    };
    place.to_str().unwrap().to_owned()
}

/// Runs whose documents are real: a model, a trace, pages of counters as regions, and as an import.
fn real_runs() -> Scratch {
    let scratch = Scratch::new();
    let (trace, pages) = (capture("torch/dsocr-h200.json.gz"), capture("regions"));
    let runs: [&[&str]; 4] = [
        &["analyze", "--model", "deepseek-ocr", "--out", "model"],
        &["import", &trace, "--out", "trace"],
        &["regions", "--from", &pages, "--out", "regions"],
        &["import", &pages, "--out", "pages"],
    ];
    for arguments in runs {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
    }
    scratch
}

const ANALYTIC: &str = "model/static_analysis/analytic_model/report.json";
const REGIONS: &str = "regions/ncu/regions/report.json";

/// Every document of these runs.
const DOCUMENTS: [&str; 13] = [
    ANALYTIC,
    "model/static_analysis/analytic_model/report.yaml",
    "model/manifest.json",
    "trace/metrics.json",
    "trace/inputs.yaml",
    "trace/env.json",
    "trace/manifest.json",
    REGIONS,
    "regions/metrics.json",
    "regions/inputs.yaml",
    "regions/manifest.json",
    "pages/metrics.json",
    "pages/inputs.yaml",
];

fn validate(scratch: &Scratch, file: &Path) -> Output {
    Output::of(scratch.command(&["validate", file.to_str().unwrap()]))
}

#[test]
fn documents_of_real_runs_are_valid_in_shape_and_meaning() {
    let scratch = real_runs();
    for name in DOCUMENTS {
        let output = validate(&scratch, &scratch.path(name));
        assert_eq!(output.code, 0, "{name}: {}", output.stdout);
    }
}

type Damage = fn(&mut Value);

/// A real document, what is done to it, and what must be said of which place.
const DAMAGES: &[(&str, Damage, &str, &str)] = &[
    (
        ANALYTIC,
        |it| it["modules"][2]["module_id"] = it["modules"][1]["module_id"].clone(),
        "/modules/2/module_id",
        "unique",
    ),
    (
        ANALYTIC,
        |it| it["modules"][2]["parent_id"] = json!("nowhere"),
        "/modules/2/parent_id",
        "is not in /modules/*/module_id",
    ),
    (
        ANALYTIC,
        |it| it["modules"][0]["children"][0] = json!("gone"),
        "/modules/0/children/0",
        "is not in /modules/*/module_id",
    ),
    (
        ANALYTIC,
        |it| it["modules"][0]["parent_id"] = it["modules"][3]["module_id"].clone(),
        "/modules/0/parent_id",
        "inside itself",
    ),
    (
        ANALYTIC,
        |it| it["module_metrics"][1]["module_id"] = json!("x"),
        "/module_metrics/1/module_id",
        "is not in /modules/*",
    ),
    (
        ANALYTIC,
        |it| it["module_metrics"][1]["profile_id"] = json!("x"),
        "/module_metrics/1/profile_id",
        "is not in /workload",
    ),
    (
        ANALYTIC,
        |it| it["categories"][0]["category_id"] = json!("x"),
        "/categories/0/category_id",
        "is not in /operator_categories",
    ),
    (ANALYTIC, |it| it["device"]["id"] = json!("abacus"), "/device/id", "is not in /devices/*/device/id"),
    (
        ANALYTIC,
        |it| it["module_metrics"][1]["total_time_ms"] = json!(-0.5),
        "/module_metrics/1/total_time_ms",
        "is negative",
    ),
    (
        ANALYTIC,
        |it| it["module_metrics"][1]["total_flops_tflops"] = json!(-1),
        "/module_metrics/1/total_flops_tflops",
        "is negative",
    ),
    (
        ANALYTIC,
        |it| it["module_metrics"][1]["share_of_model_time"] = json!(1.01),
        "/module_metrics/1/share_of_model_time",
        "between 0 and 1",
    ),
    ("trace/metrics.json", |it| it["kernels"][1] = it["kernels"][0].clone(), "/kernels/1", "must be unique"),
    (
        "trace/metrics.json",
        |it| it["kernels"][0]["device"] = json!("cuda:9"),
        "/kernels/0/device",
        "is not in /devices/*/id",
    ),
    ("trace/metrics.json", |it| it["run"]["device"] = json!("cuda:9"), "/run/device", "is not in /devices/*/id"),
    (
        "trace/metrics.json",
        |it| it["stages"][0]["parent"] = it["stages"][0]["name"].clone(),
        "/stages/0/parent",
        "inside itself",
    ),
    (
        "trace/metrics.json",
        |it| it["samples"] = json!([{"stage": "prefill", "input": "x", "epoch": 0, "repeat": 0, "rank": null, "warmup": false, "wall_ns": 1}]),
        "/samples/0/input",
        "is not in /inputs/*/name",
    ),
    ("trace/metrics.json", |it| it["kernels"][0]["total_ns"] = json!(-7), "/kernels/0/total_ns", "is negative"),
    ("trace/metrics.json", |it| it["quality"][0]["share"] = json!(3), "/quality/0/share", "between 0 and 1"),
    ("pages/metrics.json", |it| it["regions"][1] = it["regions"][0].clone(), "/regions/1", "must be unique"),
    (
        REGIONS,
        |it| it["regions"][1]["folder"] = it["regions"][0]["folder"].clone(),
        "/regions/1/folder",
        "must be unique",
    ),
    (REGIONS, |it| it["regions"][0]["parent"] = it["regions"][1]["path"].clone(), "/regions/0/parent", "inside itself"),
    (
        REGIONS,
        |it| it["totals"]["metrics"]["made.up"] = json!({"inclusive": 1, "exclusive": 1}),
        "/totals/metrics/made.up",
        "is not in /metrics",
    ),
    (
        REGIONS,
        |it| it["regions"][0]["aggregate"]["kernels"][0]["mean_ns"] = json!(-1),
        "/regions/0/aggregate/kernels/0/mean_ns",
        "is negative",
    ),
    ("regions/inputs.yaml", |it| it["count"] = json!(0), "/count", "0 is not the number of elements"),
    ("trace/env.json", |it| it["gpus"] = json!([it["gpus"][0], it["gpus"][0]]), "/gpus/1/index", "must be unique"),
    ("trace/manifest.json", |it| it["files"][1] = it["files"][0].clone(), "/files/1/path", "must be unique"),
];

#[test]
fn every_rule_is_broken_by_a_real_document_and_said_with_its_place() {
    let scratch = real_runs();
    for (name, damage, pointer, words) in DAMAGES {
        let text = scratch.text("", name);
        let is_yaml = name.ends_with(".yaml");
        let mut document: Value =
            if is_yaml { serde_saphyr::from_str(&text).unwrap() } else { serde_json::from_str(&text).unwrap() };
        damage(&mut document);
        let broken = scratch.path(if is_yaml { "broken.yaml" } else { "broken.json" });
        let text = if is_yaml { report::yaml(&document).unwrap() } else { document.to_string() };
        fs::write(&broken, text).unwrap();
        let output = validate(&scratch, &broken);
        assert_eq!(output.code, 1, "{name} {pointer}: {}", output.stdout);
        let said = output
            .stdout
            .lines()
            .any(|line| line.trim_start().starts_with(&format!("{pointer}: ")) && line.contains(words));
        assert!(said, "{name} {pointer}: {}", output.stdout);
    }
}

#[test]
fn a_file_that_is_not_as_the_manifest_lists_it_is_a_violation_of_the_manifest() {
    let scratch = real_runs();
    let files = scratch.manifest("trace")["files"].as_array().unwrap().clone();
    let place = |name: &str| files.iter().position(|file| file["path"] == name).unwrap();
    let report: PathBuf = scratch.path("trace").join("report.md");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, text.replacen('#', "=", 1)).unwrap();
    fs::remove_file(scratch.path("trace").join("kernels.md")).unwrap();
    let output = validate(&scratch, &scratch.path("trace").join("manifest.json"));
    assert_eq!(output.code, 1, "{}", output.stdout);
    let (changed, gone) = (place("report.md"), place("kernels.md"));
    assert!(
        output.stdout.contains(&format!("/files/{changed}/sha256: report.md: expected sha256")),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains(&format!("/files/{gone}/path: kernels.md: not found")), "{}", output.stdout);
}

#[test]
fn text_that_only_looks_like_yaml_is_invalid_and_a_configuration_names_no_schema() {
    let scratch = real_runs();
    let cut = scratch.path("cut.yaml");
    fs::write(&cut, "schema: llm-perf/inputs/1\nimages: [\n").unwrap();
    let output = validate(&scratch, &cut);
    assert!(output.code == 1 && output.stdout.contains("not YAML: "), "{}", output.stdout);
    let output = validate(&scratch, &scratch.path("model/config.yaml"));
    assert!(output.code == 2 && output.stdout.contains("has no `schema` field"), "{}", output.stdout);
}
