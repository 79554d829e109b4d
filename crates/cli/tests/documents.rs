//! `llm-perf schema` and `llm-perf validate`.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use support::{llm_perf, transcript};
use types::{SchemaList, ValidationReport, ValidationVerdict};

mod support;

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
