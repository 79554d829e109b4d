//! What a run folder looks like after its process was killed, raced or ran out of room.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use collect::run::list_runs;
use sha2::{Digest, Sha256};
use types::{Random, RunManifest, RunState, RunStatus};

/// Set to the number that a failing run printed, to have the same kills again.
const SEED: &str = "LLM_PERF_KILL_SEED";
const KILLS: u64 = 100;
const WORKERS: u64 = 4;
const TEMPORARY: &str = ".llm-perf-part";

/// What one killed run left.
enum Left {
    /// No manifest yet.
    Nothing,
    /// A manifest with that many steps and files.
    Run { steps: usize, files: usize },
}

fn writer(arguments: &[&str], root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_run-folder-writer"));
    command.arg(arguments[0]).arg(root).args(&arguments[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(root: &Path, seed: u64) -> (Child, BufReader<ChildStdout>) {
    let mut child = writer(&["steps", &seed.to_string()], root).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn wait_for_steps(lines: &mut BufReader<ChildStdout>, count: u64) {
    for step in 0..count {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, format!("step {step}\n"), "the writer ended by itself");
    }
}

fn kill(mut child: Child) -> Output {
    child.kill().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_hundred_kills_leave_no_manifest_that_lies() {
    let seed = std::env::var(SEED).map_or_else(
        |_| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
        |text| text.parse().expect("the seed is a number"),
    );
    println!("{SEED}={seed}");
    // Writers mostly wait for the disk, so several are killed at a time.
    let left: Vec<Left> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|first| {
                let numbers = (first..KILLS).step_by(WORKERS as usize);
                scope.spawn(move || numbers.map(|number| kill_one(number, seed)).collect::<Vec<Left>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let with_files = left.iter().filter(|left| matches!(left, Left::Run { files: 1.., .. })).count();
    let nothing = left.iter().filter(|left| matches!(left, Left::Nothing)).count();
    println!("{} kills: {nothing} before the manifest, {with_files} with files", left.len());
    assert_eq!(left.len() as u64, KILLS);
    assert!(with_files as u64 >= KILLS / 2, "only {with_files} of {KILLS} killed runs had any file to lie about");
}

fn kill_one(number: u64, seed: u64) -> Left {
    let mut random = Random::new(seed.wrapping_add(number));
    let root = tempfile::tempdir().unwrap();
    let (child, mut lines) = start(root.path(), random.number());
    // One in five is killed while it starts; the others somewhere in the step after the last one waited for.
    let waited = if number.is_multiple_of(5) { 0 } else { 1 + random.below(4) as u64 };
    wait_for_steps(&mut lines, waited);
    thread::sleep(Duration::from_micros(random.below(6000) as u64));
    let output = kill(child);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "kill {number}");
    let left = check(root.path());
    let steps = match left {
        Left::Nothing => 0,
        Left::Run { steps, .. } => steps,
    };
    assert!(steps as u64 >= waited, "kill {number}: {waited} steps were reported, {steps} are recorded");
    left
}

/// Everything that must be true of a root with one killed run in it.
fn check(root: &Path) -> Left {
    let runs = list_runs(root).unwrap();
    assert!(runs.len() <= 1);
    let Some(run) = runs.first() else { return Left::Nothing };
    let folder = Path::new(&run.path);
    let present = files_below(folder);
    if run.state == RunState::Unreadable {
        let artifacts: Vec<&PathBuf> = present.iter().filter(|path| !is_temporary(path)).collect();
        assert!(artifacts.is_empty(), "{} without a manifest, but with {artifacts:?}", run.reasons.join("; "));
        return Left::Nothing;
    }

    assert_eq!(run.state, RunState::Interrupted, "{:?}", run.reasons);
    let text = fs::read(folder.join("manifest.json")).unwrap();
    let manifest: RunManifest = serde_json::from_slice(&text).unwrap();
    assert_eq!(manifest.status, RunStatus::Running);
    for file in &manifest.files {
        // Hashed here in its own way, so that a fault in the code under test cannot hide itself.
        let content = fs::read(folder.join(&file.path)).unwrap_or_else(|error| panic!("{}: {error}", file.path));
        assert_eq!(content.len() as u64, file.bytes.get(), "{}", file.path);
        let sha256: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sha256, file.sha256, "{}", file.path);
        assert!(!is_temporary(Path::new(&file.path)), "{} is not whole", file.path);
    }
    let listed: BTreeSet<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(listed.len(), manifest.files.len(), "a file is listed twice");
    assert!(present.iter().filter(|path| is_temporary(path)).count() <= 1, "{present:?}");
    Left::Run { steps: manifest.steps.len(), files: manifest.files.len() }
}

fn is_temporary(path: &Path) -> bool {
    path.to_string_lossy().ends_with(TEMPORARY)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn a_run_is_running_until_its_process_is_killed() {
    let root = tempfile::tempdir().unwrap();
    let (child, mut lines) = start(root.path(), 1);
    wait_for_steps(&mut lines, 1);
    assert_eq!(list_runs(root.path()).unwrap()[0].state, RunState::Running);
    kill(child);
    assert_eq!(list_runs(root.path()).unwrap()[0].state, RunState::Interrupted);
}

#[test]
fn processes_started_together_never_share_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let children: Vec<Child> = (0..12).map(|_| writer(&["once"], root.path()).spawn().unwrap()).collect();
    let ids: BTreeSet<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 12);
    let runs = list_runs(root.path()).unwrap();
    assert_eq!(runs.iter().map(|run| run.id.clone()).collect::<BTreeSet<_>>(), ids);
    assert!(runs.iter().all(|run| run.state == RunState::Complete));
}

#[test]
fn a_file_that_does_not_fit_fails_by_name_and_leaves_nothing_of_itself() {
    let root = tempfile::tempdir().unwrap();
    let output = writer(&["limited", "100000"], root.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("cannot write ") && said.contains("/large.bin: File too large"), "{said}");
    assert!(said.contains("ulimit -f unlimited"), "{said}");

    let run = &list_runs(root.path()).unwrap()[0];
    assert_eq!(run.state, RunState::Failed);
    assert!(run.reasons[0].contains("large.bin"), "{:?}", run.reasons);
    let folder = Path::new(&run.path);
    let present: BTreeSet<PathBuf> = files_below(folder).into_iter().collect();
    assert_eq!(present, BTreeSet::from([folder.join("before.txt"), folder.join("manifest.json")]));
    let manifest: RunManifest = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["before.txt"]);
}
