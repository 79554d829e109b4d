//! How the program behaves at its edges: help, wrong usage, closed pipes, colour.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::{llm_perf, transcript};

mod support;

/// The verbs as `--help` lists them, without clap's own `help`.
fn verbs() -> Vec<String> {
    let output = llm_perf().arg("--help").output().expect("the program starts");
    let help = String::from_utf8(output.stdout).expect("help is text");
    help.lines()
        .skip_while(|line| *line != "Verbs:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next().map(String::from))
        .filter(|verb| verb != "help")
        .collect()
}

#[test]
fn help_lists_what_works() {
    insta::assert_snapshot!("help", transcript(&["--help"]));
}

#[test]
fn every_verb_explains_itself() {
    let verbs = verbs();
    assert!(verbs.contains(&"config".to_owned()), "{verbs:?}");
    for verb in verbs {
        insta::assert_snapshot!(format!("help_{verb}"), transcript(&[&verb, "--help"]));
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = llm_perf().arg("man").arg(folder.path()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for verb in verbs() {
        let page = std::fs::read_to_string(folder.path().join(format!("llm-perf-{verb}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH llm-perf-{verb} 1")) && page.contains("Examples:"), "{page}");
    }
    assert!(folder.path().join("llm-perf.1").is_file());
}

#[test]
fn no_arguments_show_help_as_wrong_usage() {
    let shown = transcript(&[]);
    assert!(shown.starts_with("exit: 2\n----- stdout -----\n----- stderr -----\n"), "{shown}");
    assert!(shown.contains("Usage: llm-perf"), "{shown}");
}

#[test]
fn a_misspelt_verb_names_the_nearest() {
    insta::assert_snapshot!(transcript(&["completion"]));
}

#[test]
fn an_unknown_option_is_wrong_usage() {
    insta::assert_snapshot!(transcript(&["completions", "--jsn", "bash"]));
}

#[test]
fn an_unknown_shell_lists_the_known_ones() {
    insta::assert_snapshot!(transcript(&["completions", "bsh"]));
}

#[test]
fn quiet_and_verbose_exclude_each_other() {
    insta::assert_snapshot!(transcript(&["completions", "bash", "-q", "-v"]));
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let shown = transcript(&["completions", shell]);
        assert!(shown.starts_with("exit: 0\n"), "{shown}");
        assert!(shown.contains("config-dir"), "{shell} completes the global options");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let mut child = llm_perf()
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The reader is gone before the first byte is read, so that every write finds a closed pipe.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_reader_that_stops_after_one_line_is_no_error() {
    let mut child = llm_perf()
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
    reader.read_line(&mut line).expect("one line");
    drop(reader);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(line, "#compdef llm-perf\n");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_under_standard_output_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = llm_perf().args(["completions", "bash"]).stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    error: cannot write to standard output
      caused by: No space left on device (os error 28)
    ");
}

#[test]
fn colour_follows_the_flag_and_not_the_pipe() {
    let stderr = |arguments: &[&str]| {
        let output = llm_perf().args(arguments).output().expect("the program starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(!stderr(&["completion"]).contains('\u{1b}'), "a pipe is no terminal");
    assert!(stderr(&["completion", "--color", "always"]).contains('\u{1b}'));
    assert!(!stderr(&["completion", "--color=never"]).contains('\u{1b}'));
}
