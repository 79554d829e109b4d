//! What the program does together with programs that a machine may lack.

#[path = "support/doubles.rs"]
mod doubles;
#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "each suite takes what it needs")]
mod scratch;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use doubles::doubles;
use scratch::{Output, Scratch};
use serde_json::{Value, json};
use support::{llm_perf, transcript};
use testkit::need::{Need, container};

testkit::suite! {
    [Need::Git] => { a_changed_file_makes_the_tree_dirty_and_an_unknown_one_does_not }
    [Need::Python] => { packages_are_found_without_being_imported }
    [Need::Script] => { tables_keep_to_the_terminal_and_pipes_get_them_whole }
    [Need::Tar] => { a_bundle_is_an_archive_that_tar_lists }
    [Need::Namespaces] => { a_process_of_another_namespace_is_recorded_as_its_own_user }
}

/// What the program prints on a terminal of 60 columns, which `script` of util-linux makes.
fn on_a_terminal(arguments: &str) -> String {
    let program = llm_perf().get_program().to_owned();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{} -q {arguments}", program.display()), "/dev/null"]);
    command.env("COLUMNS", "60").env("TERM", "dumb").stdin(Stdio::null());
    let output = command.output().expect("`script` is there");
    String::from_utf8(output.stdout).expect("text").replace('\r', "")
}

fn tables_keep_to_the_terminal_and_pipes_get_them_whole() {
    for arguments in ["models", "models llama-3-8b", "hardware", "hardware h200", "workloads", "doctor", "schema"] {
        let shown = on_a_terminal(arguments);
        assert!(shown.lines().count() > 5, "{shown}");
        // A word that is longer than the room for it, such as an address, stays whole.
        let is_long = |line: &&str| line.chars().count() > 60 && line.split_whitespace().all(|word| word.len() < 30);
        assert_eq!(shown.lines().find(is_long), None, "{arguments}: {shown}");
    }
    let piped = transcript(&["workloads"]);
    let longest = piped.lines().map(|line| line.chars().count()).max();
    assert!(longest > Some(60) && piped.lines().count() < 15, "{piped}");
}

fn a_bundle_is_an_archive_that_tar_lists() {
    let scratch = Scratch::new();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/fixtures/torch/small.json");
    for arguments in [&["import", trace, "--out", "run"][..], &["pack", "./run"]] {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
    }
    let listed = Command::new("tar").arg("tzf").arg(scratch.path("run.llmperf")).output().expect("tar");
    let names = String::from_utf8(listed.stdout).expect("text");
    assert!(listed.status.success() && names.starts_with("bundle.json\nmanifest.json\n"), "{names}");
    assert!(names.contains("\nmetrics.json\n"), "{names}");
}

/// A part of `env.json` of a run in the scratch folder. On a busy machine a tool may not answer in time, and is asked again.
fn environment(scratch: &Scratch, variables: &[(&str, &Path)], part: &str) -> Value {
    let started = Instant::now();
    loop {
        let mut command = scratch.command(&["profile", "--out", "run", "--", "/bin/true"]);
        command.envs(variables.iter().copied());
        let output = Output::of(command);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let environment = scratch.json("run", "env.json");
        std::fs::remove_dir_all(scratch.path("run")).expect("a run");
        let found = environment.pointer(part).cloned().unwrap_or_default();
        if !found.is_null() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no {part}: {environment:#}");
    }
}

fn a_changed_file_makes_the_tree_dirty_and_an_unknown_one_does_not() {
    let scratch = Scratch::new();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"]);
        let output = Output::of(scratch.at_home({
            command.args(arguments);
            command
        }));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
        output.stdout
    };
    git(&["init", "--quiet"]);
    std::fs::write(scratch.path("file"), "one").expect("a file");
    git(&["add", "file"]);
    git(&["commit", "--quiet", "--message", "first"]);
    std::fs::write(scratch.path("unknown"), "new").expect("a file");
    let revision = git(&["rev-parse", "HEAD"]);
    assert_eq!(environment(&scratch, &[], "/git/revision"), json!(revision.trim()));
    assert_eq!(environment(&scratch, &[], "/git/dirty"), json!(false));
    std::fs::write(scratch.path("file"), "two").expect("a file");
    assert_eq!(environment(&scratch, &[], "/git/dirty"), json!(true));
}

fn packages_are_found_without_being_imported() {
    let scratch = Scratch::new();
    let write = |path: &str, text: &str| {
        let path = scratch.path(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("packages/torch/__init__.py", "raise SystemExit('imported')");
    write("packages/torch/version.py", "cuda: Optional[str] = '13.0'");
    let about = "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0+cu130\n";
    write("packages/torch-2.11.0+cu130.dist-info/METADATA", about);
    let packages = scratch.path("packages").display().to_string();
    let launcher = scratch.path("bin/python3");
    write("bin/python3", &format!("#!/bin/sh\nPYTHONPATH='{packages}' exec python3 \"$@\"\n"));
    std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let frameworks =
        |part: &str| environment(&scratch, &[("LLM_PERF_PYTHON", &launcher)], &format!("/frameworks/{part}"));
    assert_eq!(frameworks("torch"), json!("2.11.0+cu130"));
    assert_eq!(frameworks("torch_cuda"), json!("13.0"));
    let version = frameworks("python");
    assert!(version["version"].as_str().is_some_and(|version| version.starts_with("3.")), "{version}");
}

/// Programs that wait in a container: with numbers of processes, users and files of their own.
fn a_process_of_another_namespace_is_recorded_as_its_own_user() {
    let scratch = Scratch::new();
    let (place, application) = (scratch.path("tmp-of-the-container"), doubles().application.display().to_string());
    std::fs::create_dir_all(&place).unwrap();
    let start = format!("mount --bind {} /tmp && exec \"$0\" run -- {application} \"$@\"", place.display());
    let program = scratch.command(&[]).get_program().to_owned();
    let steps = "push:decode push:decode_step launch:_Z4gemmPf*3 sleep:5 pop pop ".repeat(1500);
    let mut command = scratch.at_home(container());
    command.args(["sh", "-c", &start]).arg(program).args(["cuda", "print:ready"]).args(steps.split_whitespace());
    command.env("LLM_PERF_INJECT_CUPTI", &doubles().cupti).stdout(Stdio::piped());
    let mut outer = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(outer.stdout.take().unwrap()), &mut line).unwrap();
    assert_eq!(line, "ready\n");
    // `unshare` is its parent, so that its number does as well.
    let id = outer.id().to_string();
    let output = Output::of(scratch.command(&["attach", &id, "--for", "300ms", "--out", "run"]));
    let _ = (outer.kill(), outer.wait());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    assert!(metrics["totals"]["kernel_count"].as_u64().unwrap() > 10, "{metrics}");
}
