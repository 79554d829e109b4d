//! What the tests of the whole program share.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

/// The program with nothing of the caller's terminal in its environment.
pub(crate) fn llm_perf() -> Command {
    let mut command = Command::new(cargo_bin!("llm-perf"));
    command.env_remove("NO_COLOR").env("COLUMNS", "100").env("TERM", "xterm");
    // Nothing is kept in the tester's own folder.
    command.env("LLM_PERF_DATA_DIR", std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("data"));
    command
}

/// Exit code, standard output and standard error of one call, as one text to compare.
#[allow(dead_code, reason = "each test file takes what it needs")]
pub(crate) fn transcript(arguments: &[&str]) -> String {
    let output = llm_perf().args(arguments).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "exit: {}\n----- stdout -----\n{}----- stderr -----\n{}",
        output.status.code().expect("the program was not killed"),
        text(&output.stdout),
        text(&output.stderr)
    )
}
