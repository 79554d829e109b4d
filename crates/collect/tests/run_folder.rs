//! The run folder as its users see it: what is on disk at each moment, what is refused, what a reader finds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use llm_perf_collect::run::{Outcome, RunFolder, RunRequest, StoredRun, find_run, list_runs};
use tempfile::TempDir;
use types::{FileProblemKind, RunList, RunListing, RunState, RunStatus, SchemaTag, UserError};

fn request(root: &Path) -> RunRequest {
    RunRequest {
        root: root.to_owned(),
        model: Some("tiny".to_owned()),
        device: Some("cpu".to_owned()),
        ..RunRequest::new("profile", vec!["llm-perf".into(), "profile".into()])
    }
}

fn new_run() -> (TempDir, RunFolder) {
    let root = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(request(root.path())).unwrap();
    (root, folder)
}

fn with_out(root: &Path, out: PathBuf) -> Result<RunFolder, UserError> {
    RunFolder::create(RunRequest { out: Some(out), ..request(root) })
}

/// What the manifest on disk lists.
fn listed(folder: &RunFolder) -> Vec<String> {
    let run = StoredRun::open(folder.path()).unwrap();
    assert!(run.verify().unwrap().is_clean(), "what is listed is there, as listed");
    run.manifest().files.iter().map(|file| file.path.clone()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The message without the part of the path that changes from run to run.
fn said(error: &UserError, root: &Path) -> String {
    let hint: String = error.hints.iter().map(|hint| format!("\nhint: {hint}")).collect();
    format!("{error}{hint}").replace(root.to_str().unwrap(), "ROOT")
}

#[test]
fn a_new_folder_holds_a_manifest_that_says_running_and_nothing_else() {
    let (_root, folder) = new_run();
    assert_eq!(names(folder.path()), ["manifest.json"]);
    let run = StoredRun::open(folder.path()).unwrap();
    assert_eq!(run.manifest(), folder.manifest());
    assert_eq!(run.manifest().status, RunStatus::Running);
    assert_eq!(run.manifest().process.pid, std::process::id());
    assert_eq!(run.manifest().model.as_deref(), Some("tiny"));
    assert_eq!(folder.path().file_name().unwrap().to_str().unwrap(), folder.id());
}

#[test]
fn files_are_listed_when_their_step_ends_and_not_before() {
    let (_root, mut folder) = new_run();
    folder.write_file("env.json", b"{}").unwrap();
    folder.write_file("static_analysis/analytic_model/layers/a.md", b"# a").unwrap();
    assert_eq!(listed(&folder), [""; 0]);
    folder.end_step("environment").unwrap();
    assert_eq!(listed(&folder), ["env.json", "static_analysis/analytic_model/layers/a.md"]);
    let manifest = folder.finish(Outcome::Complete).unwrap();
    assert_eq!(manifest.steps[0].name, "environment");
    assert_eq!(manifest.files[0].bytes.get(), 2);
}

#[test]
fn a_document_is_listed_with_its_schema_and_reads_back() {
    let (_root, mut folder) = new_run();
    let document = RunList { schema: SchemaTag::new(), root: "r".to_owned(), runs: Vec::new() };
    folder.write_json("runs.json", &document).unwrap();
    let path = folder.path().join("runs.json");
    let manifest = folder.finish(Outcome::Complete).unwrap();
    assert_eq!(manifest.files[0].document.as_deref(), Some("llm-perf/runs/1"));
    assert_eq!(serde_json::from_slice::<RunList>(&fs::read(path).unwrap()).unwrap(), document);
}

#[test]
fn a_listed_file_is_off_the_manifest_while_it_is_replaced() {
    let (_root, mut folder) = new_run();
    folder.write_file("metrics.json", b"first").unwrap();
    folder.write_file("report.md", b"stays").unwrap();
    folder.end_step("one").unwrap();
    folder
        .write_with("metrics.json", |out| {
            out.write_all(b"second")?;
            Ok(())
        })
        .unwrap();
    assert_eq!(listed(&folder), ["report.md"]);
    folder.end_step("two").unwrap();
    assert_eq!(listed(&folder), ["metrics.json", "report.md"]);
    assert_eq!(fs::read(folder.path().join("metrics.json")).unwrap(), b"second");
}

#[test]
fn a_replacement_that_fails_leaves_the_old_file_and_no_other() {
    let (_root, mut folder) = new_run();
    folder.write_file("metrics.json", b"first").unwrap();
    folder.end_step("one").unwrap();
    let error = folder
        .write_with("metrics.json", |out| {
            out.write_all(b"half of the sec")?;
            Err(std::io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
    assert!(error.hints[0].contains("free some space"), "{error}");
    assert_eq!(names(folder.path()), ["manifest.json", "metrics.json"]);
    folder.end_step("two").unwrap();
    assert_eq!(listed(&folder), ["metrics.json"]);
    assert_eq!(fs::read(folder.path().join("metrics.json")).unwrap(), b"first");
}

#[test]
fn what_a_child_wrote_is_adopted_and_never_overwritten() {
    let (root, mut folder) = new_run();
    let place = folder.prepare("nsys/trace.sqlite").unwrap();
    fs::write(&place, b"from a child").unwrap();
    let error = folder.write_file("nsys/trace.sqlite", b"ours").unwrap_err();
    let message = said(&error, root.path()).replace(folder.id(), "ID");
    insta::assert_snapshot!(message, @r"
    ROOT/ID/nsys/trace.sqlite already exists and was not written by this run
    hint: nothing was overwritten; move it away and run again
    ");
    assert_eq!(fs::read(&place).unwrap(), b"from a child");
    folder.adopt("nsys/trace.sqlite").unwrap();
    folder.end_step("collect").unwrap();
    assert_eq!(listed(&folder), ["nsys/trace.sqlite"]);
}

#[test]
fn only_plain_files_inside_the_folder_are_adopted_or_written() {
    let (root, mut folder) = new_run();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), b"secret").unwrap();
    symlink(&outside, folder.path().join("linked")).unwrap();
    symlink(outside.join("secret"), folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let errors = [
        folder.adopt("link").unwrap_err(),
        folder.adopt("linked/secret").unwrap_err(),
        folder.write_file("linked/new", b"x").unwrap_err(),
        folder.write_file("link", b"x").unwrap_err(),
        folder.adopt("folder").unwrap_err(),
        folder.write_file("folder", b"x").unwrap_err(),
        folder.adopt("absent").unwrap_err(),
        folder.write_file("../outside/new", b"x").unwrap_err(),
        folder.write_file("manifest.json", b"x").unwrap_err(),
    ];
    let messages: Vec<String> =
        errors.iter().map(|error| said(error, root.path()).replace(folder.id(), "ID")).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    ROOT/ID/link is a link, not a plain file
    ROOT/ID/linked is a link, not a plain folder
    ROOT/ID/linked is a link, not a plain folder
    ROOT/ID/link already exists and was not written by this run
    hint: nothing was overwritten; move it away and run again
    ROOT/ID/folder is a folder, not a plain file
    ROOT/ID/folder is a folder, not a plain file
    cannot read ROOT/ID/absent: No such file or directory (os error 2)
    "../outside/new" is not a valid path for a file of a run: it contains `.` or `..`
    "manifest.json" is not a valid path for a file of a run: that name is reserved for the manifest
    "#);
    assert_eq!(names(&outside), ["secret"]);
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
}

#[test]
fn a_chosen_folder_is_made_or_taken_when_empty() {
    let root = tempfile::tempdir().unwrap();
    let made = with_out(root.path(), root.path().join("a/b/c")).unwrap();
    assert_eq!(names(made.path()), ["manifest.json"]);
    let empty = root.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(with_out(root.path(), empty.clone()).unwrap().path(), empty);
}

#[test]
fn a_chosen_folder_with_anything_in_it_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, b"mine").unwrap();
    let full = root.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("notes.txt"), b"mine").unwrap();
    let dangling = root.path().join("dangling");
    symlink(root.path().join("nowhere"), &dangling).unwrap();
    let used = with_out(root.path(), root.path().join("used")).unwrap();

    let outs = [file.clone(), full.clone(), dangling, used.path().to_owned(), file.join("below")];
    let messages: Vec<String> =
        outs.into_iter().map(|out| said(&with_out(root.path(), out).unwrap_err(), root.path())).collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    ROOT/file is a file; a run needs a new or empty folder
    hint: nothing was overwritten; choose another folder with `--out DIR`
    ROOT/full is not empty; a run needs a new or empty folder
    hint: nothing was overwritten; choose another folder with `--out DIR`
    ROOT/dangling is a broken link; a run needs a new or empty folder
    hint: nothing was overwritten; choose another folder with `--out DIR`
    ROOT/used is not empty; a run needs a new or empty folder
    hint: nothing was overwritten; choose another folder with `--out DIR`
    cannot create folder ROOT/file: File exists (os error 17)
    hint: part of that path is a file; choose another folder
    ");
    assert_eq!(fs::read(file).unwrap(), b"mine");
    assert_eq!(names(&full), ["notes.txt"]);
    assert_eq!(names(used.path()), ["manifest.json"]);
}

/// Nobody, not even the administrator, may make folders in `/sys`.
#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_place_is_named_with_the_way_out() {
    for request in
        [request(Path::new("/sys/runs")), RunRequest { out: Some("/sys/run".into()), ..request(Path::new(".")) }]
    {
        let error = RunFolder::create(request).unwrap_err();
        assert!(error.to_string().starts_with("cannot create folder /sys/run"), "{error}");
        assert_eq!(error.hints[0], "use a writable folder; `--out DIR` sets the run folder");
    }
}

#[test]
fn how_a_run_ended_is_what_a_reader_finds() {
    let root = tempfile::tempdir().unwrap();
    let reasons = vec!["ncu: not permitted".to_owned()];
    let ends = [
        (Outcome::from_missing(Vec::new()), RunState::Complete, Vec::new()),
        (Outcome::from_missing(reasons.clone()), RunState::Partial, reasons.clone()),
        (Outcome::Failed(reasons.clone()), RunState::Failed, reasons),
    ];
    for (outcome, state, reasons) in ends {
        let folder = RunFolder::create(request(root.path())).unwrap();
        let path = folder.path().to_owned();
        assert!(folder.finish(outcome).unwrap().ended_at.is_some());
        assert_eq!(StoredRun::open(&path).unwrap().state(), (state, reasons));
    }
}

#[test]
fn a_run_without_an_end_is_running_while_its_process_lives_and_interrupted_after() {
    let (root, mut folder) = new_run();
    folder.write_file("env.json", b"{}").unwrap();
    let (path, mut manifest) = (folder.path().to_owned(), folder.manifest().clone());
    drop(folder);
    assert_eq!(list_runs(root.path()).unwrap()[0].state, RunState::Running);
    manifest.process.start_ticks = manifest.process.start_ticks.map(|ticks| ticks + 1);
    fs::write(path.join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
    let run = &list_runs(root.path()).unwrap()[0];
    assert_eq!(run.state, RunState::Interrupted);
    assert_eq!(run.reasons, ["its process ended without finishing the run"]);
}

#[test]
fn no_folder_is_hidden_from_the_list_however_broken() {
    let (root, folder) = new_run();
    let good = folder.id().to_owned();
    folder.finish(Outcome::Complete).unwrap();
    let broken = [
        ("empty-manifest", ""),
        ("future", r#"{"schema": "llm-perf/manifest/2"}"#),
        ("other", r#"{"schema": "llm-perf/metrics/1"}"#),
        ("cut", "{\n  \"schema\": \"llm-perf/manifest/1\",\n  \"run_id\": \"x"),
        ("array", "[]"),
    ];
    for (name, text) in broken {
        fs::create_dir(root.path().join(name)).unwrap();
        fs::write(root.path().join(name).join("manifest.json"), text).unwrap();
    }
    fs::create_dir(root.path().join("no-manifest")).unwrap();
    fs::create_dir_all(root.path().join("odd/manifest.json")).unwrap();
    fs::write(root.path().join("a-file"), b"is no folder").unwrap();

    let runs = list_runs(root.path()).unwrap();
    assert_eq!((runs[0].id.as_str(), runs[0].state), (good.as_str(), RunState::Complete));
    assert!(runs[1..].iter().all(|run| run.state == RunState::Unreadable && run.verb.is_none()));
    let line = |run: &RunListing| format!("{}: {}", run.id, run.reasons.join("; "));
    let lines: Vec<String> = runs[1..].iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n").replace(root.path().to_str().unwrap(), "ROOT"), @r"
    other: cannot read ROOT/other/manifest.json as a manifest: schema is llm-perf/metrics/1, this reads llm-perf/manifest/1 at line 1 column 32
    odd: ROOT/odd/manifest.json is a folder, not a plain file
    no-manifest: ROOT/no-manifest has no manifest.json: it is not a run, or it was stopped before it started
    future: cannot read ROOT/future/manifest.json as a manifest: schema is llm-perf/manifest/2, this reads llm-perf/manifest/1; it was written by a newer llm-perf at line 1 column 33
    empty-manifest: cannot read ROOT/empty-manifest/manifest.json as a manifest: EOF while parsing a value at line 1 column 0
    cut: cannot read ROOT/cut/manifest.json as a manifest: EOF while parsing a string at line 3 column 14
    array: cannot read ROOT/array/manifest.json as a manifest: invalid length 0, expected struct RunManifest with 15 elements at line 1 column 2
    ");
}

#[test]
fn runs_are_listed_newest_first_whatever_their_names() {
    let root = tempfile::tempdir().unwrap();
    for name in ["z", "a", "m"] {
        with_out(root.path(), root.path().join(name)).unwrap().finish(Outcome::Complete).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let ids: Vec<String> = list_runs(root.path()).unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(ids, ["m", "a", "z"]);
    assert_eq!(find_run(root.path(), "latest").unwrap().path(), root.path().join("m"));
    let by_path = root.path().join("a");
    assert_eq!(find_run(Path::new("elsewhere"), by_path.to_str().unwrap()).unwrap().path(), by_path);
}

#[test]
fn a_root_that_is_not_there_has_no_runs_and_a_file_is_no_root() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(list_runs(&root.path().join("absent")).unwrap(), []);
    let file = root.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(list_runs(&file).unwrap_err().message.starts_with("cannot list"));
}

#[test]
fn verifying_finds_every_difference_and_reads_nothing_outside() {
    let (root, mut folder) = new_run();
    for name in ["same", "changed", "longer", "missing", "linked", "sub/gone"] {
        folder.write_file(name, b"content").unwrap();
    }
    let path = folder.path().to_owned();
    folder.finish(Outcome::Complete).unwrap();
    assert!(StoredRun::open(&path).unwrap().verify().unwrap().is_clean());

    fs::write(root.path().join("secret"), b"content").unwrap();
    fs::write(path.join("changed"), b"CONTENT").unwrap();
    fs::write(path.join("longer"), b"content and more").unwrap();
    fs::remove_file(path.join("missing")).unwrap();
    fs::remove_file(path.join("linked")).unwrap();
    symlink(root.path().join("secret"), path.join("linked")).unwrap();
    fs::remove_dir_all(path.join("sub")).unwrap();
    fs::create_dir(path.join("new")).unwrap();
    fs::write(path.join("new/file"), b"").unwrap();
    let text = fs::read_to_string(path.join("manifest.json")).unwrap();
    fs::write(path.join("manifest.json"), text.replace("\"same\"", "\"../secret\"")).unwrap();

    let verification = StoredRun::open(&path).unwrap().verify().unwrap();
    let found: Vec<(&str, FileProblemKind)> =
        verification.problems.iter().map(|problem| (problem.path.as_str(), problem.kind)).collect();
    use FileProblemKind::{Changed, Missing, Refused};
    let expected = [
        ("changed", Changed),
        ("linked", Refused),
        ("longer", Changed),
        ("missing", Missing),
        ("../secret", Refused),
        ("sub/gone", Missing),
    ];
    assert_eq!(found, expected);
    assert_eq!(verification.checked, 6);
    assert_eq!(verification.unlisted, ["new/file", "same"]);
    assert_eq!(verification.problems[2].detail, "expected 7 bytes, found 16");
}

#[test]
fn a_run_that_is_resumed_removes_nothing_behind_a_link() {
    let (root, folder) = new_run();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "mine").unwrap();
    let path = folder.path().to_owned();
    symlink(&outside, path.join("logs")).unwrap();
    folder.fail("stopped").unwrap();
    let run = StoredRun::open(&path).unwrap();
    let refused = RunFolder::resume(&run, &["logs"]).unwrap_err();
    assert!(refused.message.contains("not a plain"), "{refused}");
    assert!(refused.to_string().contains("logs"), "{refused}");
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "mine");
}

#[test]
fn the_files_and_folders_of_a_run_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (_root, mut folder) = new_run();
    folder.write_file("a/b.txt", b"x").unwrap();
    let child = folder.prepare("logs/child").unwrap();
    fs::write(&child, "from a child").unwrap();
    fs::set_permissions(&child, fs::Permissions::from_mode(0o644)).unwrap();
    folder.adopt("logs/child").unwrap();
    for (name, mode) in [("", 0o700), ("a", 0o700), ("a/b.txt", 0o600), ("logs/child", 0o600), ("manifest.json", 0o600)]
    {
        let found = folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}: {found:o}");
    }
}
