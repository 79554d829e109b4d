//! `llm-perf profile -- COMMAND`: any program, measured from outside.

#![cfg(unix)]

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use scratch::{Output, Scratch};

fn run(scratch: &Scratch, arguments: &[&str]) -> Output {
    Output::of(scratch.command(&[&["profile", "--out", "run"], arguments].concat()))
}

#[test]
fn a_command_is_timed_as_often_as_asked_and_its_words_are_kept() {
    let scratch = Scratch::new();
    let settings = ["dataset.sampling.warmup_rounds=1", "dataset.sampling.repeats=2"];
    let command = ["--", "sh", "-c", "echo out; echo err >&2; echo --json; sleep 0.05"];
    let output = run(&scratch, &[&settings[..], &command].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("median of 2") && !output.stdout.contains("out\n"), "{}", output.stdout);
    let metrics = scratch.json("run", "metrics.json");
    let command = &metrics["command"];
    assert_eq!(command["command"], "sh -c 'echo out; echo err >&2; echo --json; sleep 0.05'");
    let warm: Vec<bool> =
        command["runs"].as_array().unwrap().iter().map(|one| one["warmup"].as_bool().unwrap()).collect();
    assert_eq!(warm, [true, false, false]);
    assert!(command["runs"][0]["wall_ns"].as_i64().unwrap() >= 50_000_000);
    assert!(command["runs"][0]["peak_memory_bytes"].as_u64().unwrap() > 0);
    assert_eq!(command["wall_ms"]["n"], 2);
    assert_eq!(scratch.text("run", "logs/command-1.stdout"), "out\n--json\n");
    assert_eq!(scratch.text("run", "logs/command-1.stderr"), "err\n");
    for name in ["report.md", "assumptions.md", "env.json", "config.yaml", "logs/command-2.argv"] {
        assert!(!scratch.text("run", name).is_empty(), "{name}");
    }
    for name in ["run/metrics.json", "run/manifest.json", "run/env.json", "run/inputs.yaml"] {
        let checked = Output::of(scratch.command(&["validate", name]));
        assert_eq!(checked.code, 0, "{name}: {}{}", checked.stdout, checked.stderr);
    }
    assert_eq!(Output::of(scratch.command(&["runs", "./run", "--verify"])).code, 0);
}

#[test]
fn the_command_and_the_files_it_names_are_recorded_with_their_hashes() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("step.sh"), "cat \"$1\"\n").unwrap();
    std::fs::write(scratch.path("data.txt"), "abc").unwrap();
    let output = run(&scratch, &["--", "sh", "step.sh", "data.txt", "absent.txt"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let inputs: serde_json::Value = serde_saphyr::from_str(&scratch.text("run", "inputs.yaml")).unwrap();
    assert_eq!(inputs["command"]["program"], "sh");
    assert_eq!(inputs["command"]["arguments"], serde_json::json!(["step.sh", "data.txt", "absent.txt"]));
    let files = inputs["files"].as_array().unwrap();
    let names: Vec<_> =
        files.iter().map(|file| (file["role"].as_str().unwrap(), file["name"].as_str().unwrap())).collect();
    assert_eq!(names, [("program", "sh"), ("argument", "step.sh"), ("argument", "data.txt")]);
    assert_eq!(inputs["count"], 3);
    // FIPS 180-4 example: SHA-256("abc").
    assert_eq!(files[2]["sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(files[2]["bytes"], 3);
}

#[test]
fn a_command_that_fails_leaves_a_partial_run_that_says_so() {
    for (script, words) in [("echo why >&2; exit 7", "exited with code 7"), ("kill -TERM $$", "killed by signal 15")] {
        let scratch = Scratch::new();
        let output = run(&scratch, &["dataset.sampling.repeats=3", "--", "sh", "-c", script]);
        assert_eq!(output.code, 3, "{}", output.stderr);
        assert!(output.stderr.contains(words), "{}", output.stderr);
        let metrics = scratch.json("run", "metrics.json");
        assert_eq!(metrics["command"]["runs"].as_array().unwrap().len(), 1);
        assert!(metrics["command"]["wall_ms"].is_null());
        assert_eq!(scratch.manifest("run")["status"], "partial");
    }
}

#[test]
fn what_cannot_be_run_is_wrong_usage_and_leaves_no_folder() {
    let scratch = Scratch::new();
    let cases: [(&[&str], &str); 5] = [
        (&["--", "no-such-program-anywhere"], "there is no program `no-such-program-anywhere`"),
        (&["--", "./absent.sh"], "there is no program `./absent.sh`"),
        (&["--engine", "native", "--", "true"], "`--engine` does not apply"),
        (&["infer.seq_len=4", "--", "true"], "`infer.seq_len=4` does not apply"),
        (&["dataset.sampling.repeats=0", "--", "true"], "at least 1"),
    ];
    for (arguments, words) in cases {
        let output = run(&scratch, arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
        assert!(!scratch.path("run").exists(), "{arguments:?}");
    }
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let scratch = Scratch::new();
    let output = run(&scratch, &["--json", "--", "sh", "-c", "echo noise"]);
    let metrics: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(metrics["run"]["engine"], "command");
}
