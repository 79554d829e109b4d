//! NVTX ranges, as a tool that listens sees them.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use llm_perf_engine::nvtx::{Range, listening, problem};

/// The test that pushes ranges.
const CHILD: &str = "ranges_are_pushed_whether_or_not_a_tool_listens";

/// The tests below run this one in a process of its own, because a process attaches to a tool once, and read what it prints.
#[test]
fn ranges_are_pushed_whether_or_not_a_tool_listens() {
    {
        let _prefill = Range::push("prefill");
        drop(Range::push("sam"));
        drop(Range::push("clip"));
    }
    let _decode = Range::push("decode_all");
    println!("listening: {}; problem: {}", listening(), problem().unwrap_or("none"));
}

/// What the child prints, with the tool's library in its environment.
fn run(library: Option<&Path>, more: &[(&str, &Path)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", CHILD, "--nocapture"]).env_remove("NVTX_INJECTION64_PATH");
    command.envs(more.iter().copied());
    if let Some(library) = library {
        command.env("NVTX_INJECTION64_PATH", library);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("listening: ")).unwrap_or_else(|| panic!("{text}"));
    line[line.find("listening: ").unwrap()..].to_owned()
}

fn tool(folder: &Path) -> PathBuf {
    let library = folder.join("tool.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvtx/tool.c");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
    assert!(status.success());
    library
}

#[test]
fn a_tool_sees_ranges_nested_in_their_domain() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let said = run(Some(&tool(folder.path())), &[("NVTX_TEST_LOG", &log)]);
    assert_eq!(said, "listening: true; problem: none");
    let seen = std::fs::read_to_string(log).unwrap();
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        [
            "domain LLM",
            "push LLM prefill",
            "push LLM sam",
            "pop LLM",
            "push LLM clip",
            "pop LLM",
            "pop LLM",
            "push LLM decode_all",
            "pop LLM",
        ]
    );
}

#[test]
fn without_a_tool_nothing_listens() {
    assert_eq!(run(None, &[]), "listening: false; problem: none");
}

#[test]
fn a_tool_that_refuses_is_a_problem_and_no_crash() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(Some(&tool(folder.path())), &[("NVTX_TEST_REFUSE", Path::new("1"))]);
    assert!(said.starts_with("listening: false; problem: NVTX_INJECTION64_PATH is /"), "{said}");
    assert!(said.ends_with("tool.so: the library refused to attach"), "{said}");
}

#[test]
fn a_library_that_is_missing_or_is_no_tool_is_a_problem_and_no_crash() {
    let missing = run(Some(Path::new("gone/tool.so")), &[]);
    assert!(missing.starts_with("listening: false; problem: NVTX_INJECTION64_PATH is gone/tool.so: "), "{missing}");

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    assert!(run(Some(&text), &[]).starts_with("listening: false; problem: "));
}
