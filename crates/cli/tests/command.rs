//! `llm-perf profile -- COMMAND`: any program, measured from outside.

#![cfg(unix)]

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::path::Path;

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
    let memory = ["peak_memory_bytes", "peak_memory_at_most_bytes"].map(|key| command["runs"][0][key].as_u64());
    assert_eq!(memory.iter().flatten().count(), 1, "{memory:?}");
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
    assert_eq!(files[2]["blake3"], "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
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
        (&["--", "no-such-program-anywhere"], "program `no-such-program-anywhere` not found on PATH"),
        (&["--", "./absent.sh"], "program `./absent.sh` not found"),
        (&["--engine", "native", "--", "true"], "`--engine` has no effect"),
        (&["infer.seq_len=4", "--", "true"], "`infer.seq_len=4` has no effect"),
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

#[test]
fn commands_take_turns_and_stand_relative_to_the_fastest() {
    let scratch = Scratch::new();
    let options = ["--runs", "3", "--warmup", "1", "--csv", "times.csv"];
    let lines = ["--command", "echo a >>order", "--command", "echo b >>order; sleep 0.05"];
    let output = run(&scratch, &[&options[..], &lines].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("relative") && output.stdout.contains("1.00"), "{}", output.stdout);
    assert_eq!(std::fs::read_to_string(scratch.path("order")).unwrap(), "a\nb\n".repeat(4));
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(metrics["command"]["wall_ms"]["n"], 3);
    assert!(metrics["command"]["start_cost_ns"].as_i64().unwrap() > 0);
    assert_eq!(metrics["commands_beside"][0]["command"], "/bin/sh -c 'echo b >>order; sleep 0.05'");
    let csv = std::fs::read_to_string(scratch.path("times.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("command,mean,stddev,median,user,system,min,max"));
    assert!(lines.next().unwrap().starts_with("\"/bin/sh -c 'echo a >>order'\",0."), "{csv}");
    assert_eq!(Output::of(scratch.command(&["validate", "run/metrics.json"])).code, 0);
}

#[test]
fn a_run_that_is_not_kept_leaves_what_it_printed_and_nothing_else() {
    let scratch = Scratch::new();
    let arguments = ["profile", "--no-save", "--json", "--runs", "2", "--csv", "times.csv", "--", "true"];
    let output = Output::of(scratch.command(&arguments));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!output.stderr.contains("report"), "{}", output.stderr);
    let metrics: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(metrics["command"]["wall_ms"]["n"], 2);
    assert!(scratch.path("times.csv").is_file() && !scratch.path("tmp").exists());
    let listed = Output::of(scratch.command(&["runs", "--json"])).stdout;
    assert!(!listed.contains(metrics["run"]["id"].as_str().unwrap()), "{listed}");
    let both = run(&scratch, &["--no-save", "--", "true"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
    let nowhere = run(&scratch, &["--csv", "nowhere/times.csv", "--", "sh", "-c", "echo >ran"]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("--csv nowhere/times.csv: its folder does not exist"), "{}", nowhere.stderr);
    assert!(!scratch.path("ran").exists());
}

#[test]
fn what_prepares_and_cleans_up_runs_around_every_run_and_what_fails_there_is_said() {
    let scratch = Scratch::new();
    let around = ["--prepare", "echo p >>order", "--cleanup", "echo c >>order", "--runs", "2"];
    let output = run(&scratch, &[&around[..], &["--", "sh", "-c", "echo r >>order"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(std::fs::read_to_string(scratch.path("order")).unwrap(), "p\nr\nc\n".repeat(2));
    let scratch = Scratch::new();
    let output = run(&scratch, &["--prepare", "exit 5", "--", "sh", "-c", "echo r >>order"]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("the command of --prepare exited with code 5"), "{}", output.stderr);
    assert!(!scratch.path("order").exists());
}

#[test]
fn what_a_command_prints_is_shown_as_it_comes_unless_nobody_wants_it() {
    let scratch = Scratch::new();
    let command = ["--", "sh", "-c", "echo to-out; echo to-err >&2"];
    let output = run(&scratch, &command);
    assert!(output.stderr.contains("to-out\n") && output.stderr.contains("to-err\n"), "{}", output.stderr);
    let scratch = Scratch::new();
    let quiet = run(&scratch, &[&["-q"], &command[..]].concat());
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    assert_eq!(scratch.text("run", "logs/command-0.stdout"), "to-out\n");
}

#[test]
fn a_server_ends_when_the_user_wants_it_to() {
    let server = ["--", "sh", "-c", "echo ready to serve; sleep 600"];
    let ends: [(&[&str], &str); 3] = [
        (&["--for", "200ms"], "--for 0.2s"),
        (&["--until", "ready .. serve"], "--until 'ready .. serve'"),
        (&["--ready", "^ready", "--request", "echo asked >asked"], "--request"),
    ];
    for (options, reason) in ends {
        let scratch = Scratch::new();
        let output = run(&scratch, &[options, &server].concat());
        assert_eq!(output.code, 0, "{reason}: {}", output.stderr);
        let metrics = scratch.json("run", "metrics.json");
        assert_eq!(metrics["command"]["runs"][0]["ended_for"], reason);
        assert_eq!(metrics["command"]["wall_ms"]["n"], 1);
    }
    let scratch = Scratch::new();
    let output = run(&scratch, &["--until", "[", "--", "true"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("a regular expression"), "{}", output.stderr);
    let output = run(&scratch, &["--runs", "3"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("`--runs` applies only to a command"), "{}", output.stderr);
}

#[test]
fn memory_is_the_commands_own_and_disturbance_is_measured() {
    let scratch = Scratch::new();
    let output = run(&scratch, &["--", "/bin/true"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let one = &scratch.json("run", "metrics.json")["command"]["runs"][0];
    let known = one["peak_memory_bytes"].as_u64();
    assert!(
        known.is_some_and(|bytes| bytes < 8_000_000) || one["peak_memory_at_most_bytes"].as_u64().is_some(),
        "{one}"
    );
    let disturbance = &one["disturbance"];
    assert!(disturbance["cpu_ns"].as_i64().is_some() && disturbance["causes"].is_array(), "{one}");
}

#[test]
fn two_runs_of_a_command_compare_and_a_run_passes_every_gate_against_itself() {
    let scratch = Scratch::new();
    for (out, time) in [("a", "0.02"), ("b", "0.2")] {
        let arguments = ["profile", "-q", "--runs", "6", "--out", out, "--", "sleep", time];
        assert_eq!(Output::of(scratch.command(&arguments)).code, 0);
    }
    let same = Output::of(scratch.command(&["compare", "./a", "./a", "--fail-over", "0%,memory=0%"]));
    assert_eq!(same.code, 0, "{}{}", same.stdout, same.stderr);
    assert!(same.stdout.ends_with("gate passed\n"), "{}", same.stdout);
    let apart = Output::of(scratch.command(&["compare", "./a", "./b", "--json"]));
    let comparison: serde_json::Value = serde_json::from_str(&apart.stdout).unwrap();
    let row = &comparison["commands"][0];
    assert_eq!(row["name"], "command");
    // Ten times as long, unless the machine is too busy to say so.
    let is_slower = row["verdict"] == "slower" && row["change"].as_f64().is_some_and(|change| change > 1.0);
    assert!(is_slower || row["untested"].is_string(), "{row}");
}

#[test]
fn runs_are_deleted_one_by_one_or_all_but_the_newest() {
    let scratch = Scratch::new();
    for _ in 0..3 {
        assert_eq!(Output::of(scratch.command(&["profile", "-q", "--", "true"])).code, 0);
    }
    let count = || std::fs::read_dir(scratch.path("tmp/profile-output")).unwrap().count();
    assert_eq!(count(), 3);
    let latest = Output::of(scratch.command(&["runs", "latest:command"]));
    assert_eq!(latest.code, 0, "{}", latest.stderr);
    assert_eq!(Output::of(scratch.command(&["runs", "latest:no-such-kind"])).code, 2);
    assert_eq!(Output::of(scratch.command(&["runs", "--keep", "2"])).code, 0);
    assert_eq!(count(), 2);
    let entries = std::fs::read_dir(scratch.path("tmp/profile-output")).unwrap().flatten();
    let [first, second] = entries.map(|entry| entry.path()).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(Output::of(scratch.command(&["runs", &first.display().to_string(), "--delete"])).code, 0);
    assert_eq!(count(), 1);
    std::fs::write(second.join("notes.txt"), "mine").unwrap();
    let refused = Output::of(scratch.command(&["runs", &second.display().to_string(), "--delete"]));
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("files that are not part of the run, such as notes.txt"), "{}", refused.stderr);
}

/// Every text of a document, in order.
fn texts(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Array(list) => list.iter().flat_map(texts).collect(),
        serde_json::Value::Object(map) => map.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_snippets_for_ci_in_the_guide_are_yaml_and_their_commands_run() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/compare.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks: Vec<&str> = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let snippet: serde_json::Value = serde_saphyr::from_str(block).unwrap();
        let commands: Vec<String> = texts(&snippet).into_iter().filter(|text| text.starts_with("llm-perf ")).collect();
        assert_eq!(commands.len(), 2, "{block}");
        let scratch = Scratch::new();
        let command = ["profile", "-q", "--out", "baseline", "--runs", "10", "--", "sleep", "0.01"];
        assert_eq!(Output::of(scratch.command(&command)).code, 0);
        for command in commands {
            let command = command.replace("python generate.py", "sleep 0.01");
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let output = Output::of(scratch.command(&words));
            // Whether the machine was quiet enough to decide is not up to us.
            assert!([0, 3, 4].contains(&output.code), "{command}: {} {}", output.code, output.stderr);
        }
        assert!(std::fs::read_to_string(scratch.path("comparison.md")).unwrap().contains("command"));
    }
}
