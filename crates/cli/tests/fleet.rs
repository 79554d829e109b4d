//! `llm-perf fleet` on a job whose troubles are known.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "a fleet needs less of it than a profile")]
mod scratch;
#[allow(dead_code, reason = "a fleet needs less of it than a profile")]
mod support;

use std::path::Path;

use scratch::{Output, Scratch};
use serde_json::{Value, json};

fn fleet(scratch: &Scratch, arguments: &[&str]) -> Value {
    let output = Output::of(scratch.command(&[&["fleet"][..], arguments, &["--out", "fleet"]].concat()));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let whole = Output::of(scratch.command(&["validate", "fleet/fleet.json", "fleet/manifest.json"]));
    assert_eq!(whole.code, 0, "{}{}", whole.stdout, whole.stderr);
    scratch.json("fleet", "fleet.json")
}

/// Traces of eight ranks with these troubles, in the folder `job`.
fn made(scratch: &Scratch, troubles: &[&str]) {
    testkit::fleet::write(&scratch.path("job"), [8, 12, 12], troubles).unwrap();
}

fn rules(fleet: &Value) -> Vec<(String, Value)> {
    let findings = fleet["jobs"][0]["findings"].as_array().unwrap();
    findings.iter().map(|finding| (finding["rule"].as_str().unwrap().to_owned(), finding["ranks"].clone())).collect()
}

#[test]
fn troubles_are_found_and_nothing_else() {
    let expected = [
        (vec![], vec![]),
        (vec!["straggler=5"], vec![("straggling-rank".to_owned(), json!([5]))]),
        (vec!["slow-pair=2"], vec![("slow-group".to_owned(), json!([2, 3]))]),
        (vec!["hot=6"], vec![("uneven-exchange".to_owned(), json!([6]))]),
    ];
    for (troubles, expected) in expected {
        let scratch = Scratch::new();
        made(&scratch, &troubles);
        let found = fleet(&scratch, &["job"]);
        assert_eq!(rules(&found), expected, "{troubles:?}: {}", found["jobs"][0]["findings"]);
        let job = &found["jobs"][0];
        assert_eq!((&job["world_size"], &job["missing_ranks"]), (&json!(8), &json!([])));
        assert_eq!(job["clock"]["basis"], "collectives");
        let uncertainty = job["clock"]["uncertainty_ns"].as_i64().unwrap();
        assert!(uncertainty < 5_000, "clocks off by a second and drifting: {uncertainty} ns");
        let shares: f64 =
            job["critical_path"].as_array().unwrap().iter().map(|part| part["share"].as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    }
}

#[test]
fn a_slow_device_holds_the_others_up_and_is_told_from_more_work() {
    let scratch = Scratch::new();
    made(&scratch, &["slow-device=3"]);
    let found = fleet(&scratch, &["job"]);
    let rules = rules(&found);
    for rule in ["straggling-rank", "slow-device"] {
        assert!(rules.contains(&(rule.to_owned(), json!([3]))), "{rules:?}");
    }
    let straggler = &found["jobs"][0]["findings"].as_array().unwrap()[0];
    let pace = found["jobs"][0]["ranks"][3]["kernel_pace"].as_f64().unwrap();
    assert!((pace - 1.3).abs() < 0.02, "{pace}");
    assert!(straggler["evidence"].to_string().contains("above the median"), "{straggler}");
}

#[test]
fn a_missing_rank_is_told_and_silences_what_it_may_have_caused() {
    let scratch = Scratch::new();
    made(&scratch, &["straggler=5", "missing=4"]);
    let found = fleet(&scratch, &["job"]);
    assert_eq!(found["jobs"][0]["missing_ranks"], json!([4]));
    assert!(rules(&found).iter().all(|(rule, _)| rule != "straggling-rank"), "{:?}", rules(&found));
    let page = scratch.text("fleet", "report.md");
    let (missing, here) = (page.find("1 of 8 ranks is missing (4)."), page.find("7 of 8 ranks recorded"));
    assert!(missing.is_some() && missing < here, "a caveat stands first: {page}");
}

#[test]
fn tables_of_ranks_written_one_by_one_give_the_same_fleet() {
    let scratch = Scratch::new();
    made(&scratch, &["straggler=5"]);
    let at_once = fleet(&scratch, &["job"]);
    for rank in 0..8 {
        let (file, out) = (format!("job/rank{rank}.json"), format!("run{rank}"));
        let output = Output::of(scratch.command(&["import", &file, "--tables", "tables", "--out", &out]));
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    let output = Output::of(scratch.command(&["fleet", "tables", "--json", "--out", "again"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let again: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(again["jobs"], at_once["jobs"]);
    let twice = Output::of(scratch.command(&["fleet", "tables", "fleet/tables", "--out", "twice"]));
    assert_eq!(twice.code, 2, "{}", twice.stderr);
    assert!(twice.stderr.contains("of job `job`, rank 0"), "{}", twice.stderr);
    // The same rank under another name is there twice, too.
    let job = scratch.path("tables").join("job=job");
    std::fs::create_dir(job.join("rank=8")).unwrap();
    for entry in std::fs::read_dir(job.join("rank=7")).unwrap().flatten() {
        std::fs::copy(entry.path(), job.join("rank=8").join(entry.file_name())).unwrap();
    }
    let twice = Output::of(scratch.command(&["fleet", "tables", "--out", "twice"]));
    assert_eq!(twice.code, 2, "{}", twice.stderr);
    assert!(twice.stderr.contains("duplicate rank 7 of job"), "{}", twice.stderr);
}

#[test]
fn a_trace_that_is_cut_is_told_in_the_fleet() {
    let scratch = Scratch::new();
    made(&scratch, &[]);
    let path = scratch.path("job").join("rank3.json");
    let content = std::fs::read(&path).unwrap();
    std::fs::write(&path, &content[..content.len() * 9 / 10]).unwrap();
    let output = Output::of(scratch.command(&["fleet", "job", "--out", "fleet"]));
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("rank3.json: The event list is cut off"), "{}", output.stderr);
    let found = scratch.json("fleet", "fleet.json");
    let quality = found["jobs"][0]["quality"].to_string();
    assert!(
        quality.contains("records_lost") && quality.contains("are incomplete or partly unreadable: 3."),
        "{quality}"
    );
}

#[test]
fn a_fleet_is_no_run_with_metrics_and_its_redacted_copy_names_no_job() {
    let scratch = Scratch::new();
    made(&scratch, &[]);
    std::fs::rename(scratch.path("job"), scratch.path("secret-project")).unwrap();
    fleet(&scratch, &["secret-project"]);
    for verb in ["show", "report"] {
        let output = Output::of(scratch.command(&[verb, "./fleet"]));
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains("has no metrics: it is a `fleet` run"), "{}", output.stderr);
    }
    for arguments in
        [&["pack", "./fleet", "--redact", "--out", "f.llmperf"][..], &["unpack", "f.llmperf", "--out", "back"]]
    {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(
            !format!("{}{}", output.stdout, output.stderr).contains("secret-project"),
            "{}{}",
            output.stdout,
            output.stderr
        );
    }
    for name in ["fleet.json", "report.md", "report.html", "manifest.json"] {
        let text = scratch.text("back", name);
        assert!(text.len() > 100 && !text.contains("secret-project"), "{name}: {text}");
    }
    assert!(scratch.text("back", "report.md").contains("8 of 8 ranks recorded"));
}

#[test]
fn folders_without_anything_are_refused_and_damaged_tables_are_named() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("empty")).unwrap();
    for (arguments, words) in [
        (vec!["fleet", "empty"], "contains neither tables nor traces"),
        (vec!["fleet", "--runs", "empty"], "contains no run with metrics"),
        (vec!["fleet", "nowhere"], "nowhere"),
    ] {
        let output = Output::of(scratch.command(&arguments));
        assert!(output.code != 0 && output.stderr.contains(words), "{}", output.stderr);
    }
    let rank = scratch.path("bad").join("job=x/rank=0");
    std::fs::create_dir_all(&rank).unwrap();
    std::fs::write(rank.join("runs.parquet"), b"PAR1 this is none PAR1").unwrap();
    let output = Output::of(scratch.command(&["fleet", "bad"]));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("bad/job=x/rank=0/runs.parquet"), "{}", output.stderr);
}

#[test]
fn runs_over_time_are_followed() {
    let scratch = Scratch::new();
    made(&scratch, &[]);
    for rank in 0..3 {
        let (file, out) = (format!("job/rank{rank}.json"), format!("runs/run{rank}"));
        assert_eq!(Output::of(scratch.command(&["import", &file, "--out", &out])).code, 0);
    }
    let found = fleet(&scratch, &["--runs", "runs"]);
    let trend = &found["trends"][0];
    assert_eq!((&trend["quantity"], trend["points"].as_array().unwrap().len()), (&json!("step, ms"), 3));
    assert_eq!(trend["changes"], json!([]));
}

#[test]
fn two_ranks_of_a_gpu_meet_on_one_clock_and_the_one_with_more_layers_is_late() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("two")).unwrap();
    for rank in 0..2 {
        let name = format!("two-ranks-h200-{rank}.json.gz");
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/torch").join(&name);
        std::fs::copy(fixture, scratch.path("two").join(&name)).unwrap();
    }
    let found = fleet(&scratch, &["two"]);
    let job = &found["jobs"][0];
    let uncertainty = job["clock"]["uncertainty_ns"].as_i64().unwrap();
    assert!(uncertainty < 1_000, "both clocks are of one host: {uncertainty} ns");
    assert_eq!(rules(&found), [("straggling-rank".to_owned(), json!([1]))]);
    assert_eq!(job["collectives"][0]["calls"], 20);
    let evidence = job["findings"][0]["evidence"].to_string();
    assert!(
        evidence.contains("arrives last in 20 of 20 collectives") && evidence.contains("Its compute time is"),
        "{evidence}"
    );
}
