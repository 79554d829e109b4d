//! `llm-perf runs` on folders in every state a run can be in.

use std::fs;
use std::path::Path;

use support::llm_perf;
use tempfile::TempDir;
use types::{
    Artifact, Bytes, ProcessIdentity, RunDetail, RunList, RunManifest, RunState, RunStatus, SchemaTag, StepRecord,
};

mod support;

/// SHA-256 of the three bytes `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn manifest(run_id: &str, status: RunStatus) -> RunManifest {
    let file = |path: &str, document: Option<&str>| Artifact {
        path: path.to_owned(),
        bytes: Bytes::new(3),
        sha256: ABC.to_owned(),
        document: document.map(str::to_owned),
    };
    RunManifest {
        schema: SchemaTag::new(),
        run_id: run_id.to_owned(),
        status,
        reasons: Vec::new(),
        verb: "profile".to_owned(),
        command: ["llm-perf", "profile", "workload.crop_grid=[1, 2]"].map(str::to_owned).to_vec(),
        tool_version: "0.1.0".to_owned(),
        model: Some("deepseek-ocr".to_owned()),
        device: Some("cuda:0".to_owned()),
        started_at: format!("2025-11-{}T03:47:12.000+01:00", &run_id[6..8]),
        ended_at: (status != RunStatus::Running).then(|| "2025-11-15T03:48:00.000+01:00".to_owned()),
        process: ProcessIdentity {
            pid: 7,
            start_ticks: Some(7),
            boot_id: Some("a boot long ago".to_owned()),
            pid_namespace: None,
        },
        steps: vec![StepRecord {
            name: "environment".to_owned(),
            ended_at: "2025-11-15T03:47:13.000+01:00".to_owned(),
        }],
        files: vec![file("env.json", Some("llm-perf/environment/1")), file("logs/stdout.txt", None)],
        redacted: None,
    }
}

fn write(root: &Path, manifest: &RunManifest) {
    let folder = root.join(&manifest.run_id);
    fs::create_dir_all(folder.join("logs")).unwrap();
    for file in &manifest.files {
        fs::write(folder.join(&file.path), "abc").unwrap();
    }
    fs::write(folder.join("manifest.json"), serde_json::to_vec(manifest).unwrap()).unwrap();
}

/// A root with one run of every kind but a living one.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &manifest("20251111-034712", RunStatus::Complete));
    write(root.path(), &manifest("20251112-034712", RunStatus::Running));
    let reasons = vec!["ncu: not permitted".to_owned(), "nsys: not found".to_owned()];
    write(root.path(), &RunManifest { reasons, ..manifest("20251113-034712", RunStatus::Partial) });
    let odd = Some("evil\u{1b}[31m\nmodel".to_owned());
    write(root.path(), &RunManifest { model: odd, device: None, ..manifest("20251114-034712", RunStatus::Failed) });
    fs::create_dir(root.path().join("empty")).unwrap();
    root
}

fn transcript(root: &Path, arguments: &[&str]) -> String {
    let place = root.to_str().unwrap();
    let mut all = vec!["runs", "--root", place];
    all.extend(arguments);
    support::transcript(&all).replace(place, "ROOT")
}

#[test]
fn the_list_shows_every_state_newest_first() {
    insta::assert_snapshot!(transcript(root().path(), &[]));
}

#[test]
fn one_run_shows_its_files() {
    insta::assert_snapshot!(transcript(root().path(), &["20251113"]));
}

#[test]
fn verifying_a_whole_run_finds_nothing() {
    let shown = transcript(root().path(), &["20251111", "--verify"]);
    assert!(shown.starts_with("exit: 0\n") && shown.contains("2 files checked, all match the manifest"), "{shown}");
}

#[test]
fn verifying_a_damaged_run_fails_and_names_the_damage() {
    let root = root();
    let run = root.path().join("20251111-034712");
    fs::write(run.join("env.json"), "abd").unwrap();
    fs::remove_file(run.join("logs/stdout.txt")).unwrap();
    fs::write(run.join("notes.txt"), "mine").unwrap();
    insta::assert_snapshot!(transcript(root.path(), &["20251111", "--verify"]));
}

#[test]
fn json_reads_back_as_the_documents_it_names() {
    let root = root();
    let json = |arguments: &[&str]| {
        let output =
            llm_perf().arg("runs").arg("--root").arg(root.path()).arg("--json").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let list: RunList = serde_json::from_slice(&json(&[])).unwrap();
    let states: Vec<RunState> = list.runs.iter().map(|run| run.state).collect();
    use RunState::{Complete, Failed, Interrupted, Partial, Unreadable};
    assert_eq!(states, [Failed, Partial, Interrupted, Complete, Unreadable]);
    let detail: RunDetail = serde_json::from_slice(&json(&["latest", "--verify"])).unwrap();
    assert_eq!(detail.run.id, "20251114-034712");
    assert!(detail.verification.unwrap().is_clean());
}

#[test]
fn a_run_is_found_by_its_folder_from_anywhere() {
    let root = root();
    let output = llm_perf().arg("runs").arg(root.path().join("20251111-034712")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = llm_perf().args(["runs", "."]).current_dir(root.path().join("20251111-034712")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("run      20251111-034712\n"), "{output:?}");
}

#[test]
fn what_names_no_run_is_wrong_usage() {
    let root = root();
    let asked = ["20251113-034713", "2025", "empty", "nothing", "./nowhere"];
    let shown: Vec<String> =
        asked.iter().map(|run| format!("runs {run}\n{}", transcript(root.path(), &[run]))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn no_runs_is_said_and_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let shown = [transcript(root.path(), &[]), transcript(&root.path().join("absent"), &[])];
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn verify_needs_a_run() {
    assert!(transcript(Path::new("."), &["--verify"]).starts_with("exit: 2\n"));
}
