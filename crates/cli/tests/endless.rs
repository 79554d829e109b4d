//! Inputs and outputs without an end: devices, pipes, links to them, floods, full disks.

#![cfg(unix)]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "each test file takes what it needs")]
mod scratch;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};

/// Files beneath a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn what_has_no_end_is_refused_by_name() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink("/dev/zero", scratch.path("endless.json")).unwrap();
    for arguments in [&["import", "endless.json"][..], &["analyze", "--model", "endless.json"]] {
        let output = Output::of(scratch.command(arguments));
        assert!([1, 2].contains(&output.code), "{}", output.stderr);
        assert!(output.stderr.contains("endless.json"), "{}", output.stderr);
        assert!(output.stderr.contains("device") || output.stderr.contains("larger than"), "{}", output.stderr);
    }
}

#[test]
fn a_temporary_folder_that_cannot_be_written_is_named_and_not_the_trace() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["import", "-"]);
    command.env("TMPDIR", scratch.path("not-there"));
    let output = Output::of(command);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("not-there") && output.stderr.contains("set TMPDIR"), "{}", output.stderr);
}

#[test]
fn a_temporary_folder_that_is_full_is_named_and_not_the_trace() {
    let scratch = Scratch::new();
    // Files of this process may have 64 blocks of 512 bytes and no more: what is put aside does not fit, as on a full disk.
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        "ulimit -f 64; trap '' XFSZ; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_llm-perf"),
        "import",
        "-",
    ]);
    let mut command = scratch.at_home(command);
    let folder = scratch.path("temporary");
    fs::create_dir(&folder).unwrap();
    command.env("TMPDIR", &folder).stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The reader goes away when its disk is full, and so does the pipe.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), &vec![b' '; 4 << 20]);
    let output = Output::of_child(child);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("temporary") && output.stderr.contains("set TMPDIR"), "{}", output.stderr);
}

#[test]
fn output_without_end_does_not_fill_the_disk() {
    let scratch = Scratch::new();
    let arguments = ["profile", "--out", "run", "dataset.sampling.repeats=1", "dataset.sampling.warmup_rounds=0", "--"];
    let output = Output::of(scratch.command(&[&arguments[..], &["sh", "-c", "head -c 300000000 /dev/zero"]].concat()));
    assert!([0, 1, 3].contains(&output.code), "{}", output.stderr);
    let bytes: u64 = files(&scratch.path("run")).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < 80_000_000, "{bytes}");
}

/// A named pipe, and a shell that writes to it whatever the command prints.
fn pipe(scratch: &Scratch, name: &str, command: &str) -> std::process::Child {
    let path = scratch.path(name);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let shell = format!("exec {command} > '{}'", path.display());
    std::process::Command::new("sh").args(["-c", &shell]).stderr(std::process::Stdio::null()).spawn().unwrap()
}

#[test]
fn a_pipe_is_read_like_a_file_to_its_end_and_refused_where_it_has_none() {
    let scratch = Scratch::new();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/torch/small.json");
    let mut writer = pipe(&scratch, "trace.json", &format!("cat '{}'", trace.display()));
    let output = Output::of(scratch.command(&["import", "trace.json", "--out", "piped"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(writer.wait().unwrap().success());
    fs::copy(&trace, scratch.path("plain.json")).unwrap();
    assert_eq!(Output::of(scratch.command(&["import", "plain.json", "--out", "plain"])).code, 0);
    let totals = |run: &str| scratch.json(run, "metrics.json")["totals"].clone();
    assert_eq!(totals("piped"), totals("plain"));

    let mut writer = pipe(&scratch, "config.json", "cat /dev/zero");
    let output = Output::of(scratch.command(&["analyze", "--model", "config.json"]));
    assert!([1, 2].contains(&output.code), "{}", output.stderr);
    assert!(output.stderr.contains("config.json") && output.stderr.contains("larger than"), "{}", output.stderr);
    // The writer's pipe is broken now.
    assert!(!writer.wait().unwrap().success());
}

/// What nothing will ever write to.
fn silent_pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_pipe_that_nothing_writes_to_is_refused_by_whatever_reads_a_file() {
    let scratch = Scratch::new();
    for name in ["silent", "config.json", "model.safetensors", "conf/workload/mine.yaml", "inputs/page.png"] {
        fs::create_dir_all(scratch.path(name).parent().unwrap()).unwrap();
        silent_pipe(&scratch.path(name));
    }
    for arguments in [
        &["import", "silent"][..],
        &["import", "silent", "--out", "run", "--model", "config.json"],
        &["analyze", "--model", "config.json"],
        &["validate", "silent"],
        &["regions", "--from", "silent"],
        &["unpack", "silent"],
        &["config", "--config-dir", "conf", "workload=mine"],
        &["hardware", "h200", "--predict", "silent"],
        &["profile", "--engine", "native", "--model", "decoder-tiny", "--weights", "model.safetensors"],
        &["profile", "--engine", "native", "--inputs", "inputs"],
    ] {
        let output = Output::of(scratch.command(arguments));
        assert!([1, 2].contains(&output.code), "{arguments:?}: {} {}", output.code, output.stderr);
        let said = output.stdout + &output.stderr;
        assert!(said.contains("it is a pipe") || said.contains("a device or pipe"), "{arguments:?}: {said}");
    }
}

#[test]
fn files_of_a_run_that_became_pipes_are_not_waited_for() {
    let scratch = Scratch::new();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/torch/small.json");
    assert_eq!(Output::of(scratch.command(&["import", trace.to_str().unwrap(), "--out", "run"])).code, 0);
    for name in ["metrics.json", "env.json", "config.yaml", "report.md"] {
        let path = scratch.path("run").join(name);
        fs::remove_file(&path).unwrap();
        silent_pipe(&path);
    }
    for verb in [
        &["show", "./run"][..],
        &["report", "./run"],
        &["compare", "./run", "./run"],
        &["pack", "./run"],
        &["pack", "./run", "--redact"],
        &["export", "./run", "--format", "perfetto"],
        &["whatif", "./run"],
        &["fleet", "./run"],
        &["runs", "./run", "--verify"],
        &["profile", "--from", "./run"],
    ] {
        let output = Output::of(scratch.command(verb));
        assert!(output.code != 0 && output.code != 101, "{verb:?}: {} {}", output.code, output.stdout);
    }
}

#[test]
fn a_pipe_in_place_of_a_manifest_is_refused_and_not_waited_for() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("run")).unwrap();
    let manifest = scratch.path("run/manifest.json");
    assert!(std::process::Command::new("mkfifo").arg(&manifest).status().unwrap().success());
    for verb in [&["show", "./run"][..], &["compare", "./run", "./run"], &["pack", "./run"], &["report", "./run"]] {
        let output = Output::of(scratch.command(verb));
        assert_eq!(output.code, 1, "{verb:?}: {}", output.stderr);
        assert!(output.stderr.contains("manifest.json is a device or pipe"), "{verb:?}: {}", output.stderr);
    }
}
