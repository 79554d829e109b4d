//! The examples of the configuration guide are what the program prints.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

/// The `console` blocks of a page: a command after `$ `, then its output.
fn examples(page: &str) -> Vec<(String, Vec<String>)> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    blocks
        .filter_map(|(block, _)| {
            let mut lines = block.lines();
            let command = lines.next()?.strip_prefix("$ ")?.to_owned();
            Some((command, lines.map(String::from).collect()))
        })
        .collect()
}

/// Whether the output is the expected lines, where `...` stands for any number of lines.
fn matches(expected: &[String], output: &[&str]) -> bool {
    match expected.split_first() {
        None => output.is_empty(),
        Some((gap, rest)) if gap == "..." => (0..=output.len()).any(|skipped| matches(rest, &output[skipped..])),
        Some((line, rest)) => {
            output.split_first().is_some_and(|(first, others)| first == line && matches(rest, others))
        }
    }
}

#[test]
fn every_example_of_the_guide_is_what_the_program_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/configuration.md");
    let examples = examples(&std::fs::read_to_string(page).expect("the guide"));
    assert_eq!(examples.len(), 8);
    let folder = Path::new(cargo_bin!("llm-perf")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    for (command, expected) in examples {
        let output = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .env("PATH", format!("{}:{path}", folder.display()))
            .output()
            .expect("a shell");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(matches(&expected, &lines), "$ {command}\nexpected:\n{}\nshown:\n{shown}", expected.join("\n"));
    }
}

#[test]
fn gaps_stand_for_any_number_of_lines() {
    let expected = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    assert!(matches(&expected("...\nb\n..."), &["a", "b", "c"]));
    assert!(matches(&expected("a\n..."), &["a"]));
    assert!(!matches(&expected("a"), &["a", "b"]));
    assert!(!matches(&expected("...\nd"), &["a", "b"]));
}
