//! Reports of Nsight Systems and Nsight Compute given to `import`, with stand-ins for the tools that replay real captures.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod support;

use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name)
}

/// Imports a report whose tool, where it is there, exports `capture`.
fn import(scratch: &Scratch, report: &str, capture: &str, tools: &[&str]) -> Output {
    let (folder, captures) = (scratch.path("tools"), scratch.path("captures"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&captures).unwrap();
    for tool in tools {
        std::fs::copy(tests().join("fake").join(tool), folder.join(tool)).unwrap();
    }
    std::fs::copy(fixture(capture), captures.join("timeline.sqlite.gz")).unwrap();
    std::fs::copy(fixture(capture), captures.join("counters.csv.gz")).unwrap();
    std::fs::write(scratch.path(report), "NVR\0 a report\n").unwrap();
    let mut command = scratch.command(&["import", report, "--out", "run"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display())).env("FAKE_CAPTURES", captures);
    command.env("FAKE_LOG", scratch.path("log"));
    Output::of(command)
}

/// What is read, without what differs because it came in another file.
fn content(mut metrics: Value) -> Value {
    for key in ["run", "trace"] {
        metrics.as_object_mut().unwrap().remove(key);
    }
    metrics
}

fn direct(capture: &str) -> Value {
    let scratch = Scratch::new();
    let output = Output::of(scratch.command(&["import", fixture(capture).to_str().unwrap(), "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    scratch.json("run", "metrics.json")
}

#[test]
fn a_report_gives_what_its_export_gives() {
    let captures = [
        ("run.nsys-rep", "nsys/dsocr-h200.sqlite.gz", "nsys", "nsys export --type=sqlite"),
        ("counters.ncu-rep", "ncu/ncu-kernel-replay-raw.csv.gz", "ncu", "--csv --page raw"),
    ];
    for (report, capture, tool, typed) in captures {
        let scratch = Scratch::new();
        let output = import(&scratch, report, capture, &[tool]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let metrics = scratch.json("run", "metrics.json");
        let source = &metrics["trace"]["sources"][0];
        // What was given is on record, not what was made of it.
        assert_eq!((&source["path"], &source["bytes"]), (&report.into(), &14.into()));
        assert_eq!(content(metrics), content(direct(capture)), "{report}");
        let log = std::fs::read_to_string(scratch.path("log")).unwrap();
        assert!(log.contains(typed), "{log}");
    }
}

#[test]
fn without_its_tool_a_report_is_refused_with_the_way_to_export_it() {
    let reports = [
        ("run.nsys-rep", "nsys export --type sqlite run.nsys-rep"),
        ("counters.ncu-rep", "ncu --import counters.ncu-rep --page raw --csv"),
    ];
    for (report, by_hand) in reports {
        let scratch = Scratch::new();
        let output = import(&scratch, report, "nsys/dsocr-h200.sqlite.gz", &[]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.stderr.contains(report) && output.stderr.contains(by_hand), "{}", output.stderr);
        assert!(!scratch.path("run").exists(), "nothing was started");
    }
}

#[test]
fn a_tool_that_fails_is_shown_with_its_command_and_its_words() {
    let scratch = Scratch::new();
    let output = import(&scratch, "run.nsys-rep", "nsys/dsocr-h200.sqlite.gz", &[]);
    assert_eq!(output.code, 1);
    let tool = scratch.path("tools").join("nsys");
    let script = "#!/bin/sh\n[ \"$1\" != --version ] || { echo NVIDIA Nsight Systems version 2025.3.1.90-1v0; exit 0; }\n\
                  echo 'The report was made by a newer version.' >&2\nexit 3\n";
    std::fs::write(&tool, script).unwrap();
    std::process::Command::new("chmod").arg("755").arg(&tool).status().unwrap();
    let output = import(&scratch, "run.nsys-rep", "nsys/dsocr-h200.sqlite.gz", &[]);
    assert_eq!(output.code, 1);
    for words in ["export --type=sqlite", "exited with code 3", "| The report was made by a newer version."] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
}
