//! The Python reader of runs, on runs that the program makes. Needs `python3`; without it nothing is checked, and that is said.

#![cfg(unix)]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "each test file takes what it needs")]
mod scratch;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use scratch::{Output, Scratch};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn has_python() -> bool {
    let found = Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        eprintln!("NOT CHECKED: there is no python3 of at least 3.9 on PATH");
    }
    found
}

#[test]
fn the_reader_reads_what_the_program_wrote() {
    if !has_python() {
        return;
    }
    let scratch = Scratch::new();
    let trace = root().join("crates/ingest/tests/fixtures/torch/small.json");
    let made = Output::of(scratch.command(&["import", trace.to_str().unwrap(), "--out", "run"]));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let mut tests = Command::new("python3");
    tests.arg(root().join("python/tests/test_reader.py")).env("LLM_PERF_TEST_RUN", scratch.path("run"));
    // Nothing is left in the checkout.
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tests.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("OK") && !said.contains("skipped"), "{said}");
}

#[test]
fn the_wheel_has_the_reader_its_types_and_the_program() {
    let text = std::fs::read_to_string(root().join("pyproject.toml")).unwrap();
    for line in [
        "bindings = \"bin\"",
        "python-source = \"python\"",
        "module-name = \"llm_perf\"",
        "manifest-path = \"crates/cli/Cargo.toml\"",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    for file in
        ["python/llm_perf/__init__.py", "python/llm_perf/py.typed", "LICENSE-MIT", "LICENSE-APACHE", "README.md"]
    {
        assert!(root().join(file).is_file(), "{file}");
    }
}
