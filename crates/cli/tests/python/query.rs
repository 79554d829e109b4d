//! `llm-perf query` with the engines that an interpreter has.

use std::process::Command;

use serde_json::Value;
use testkit::need::{has_package, interpreter};

use crate::scratch::{Output, Scratch};

const ENGINES: [&str; 2] = ["duckdb", "datafusion"];

/// Those that the interpreter imports; at least one.
fn engines() -> impl Iterator<Item = &'static str> {
    ENGINES.into_iter().filter(|engine| has_package(engine))
}

/// Tables of a job that never ran, and what is known of it.
fn made() -> (Scratch, Value) {
    let scratch = Scratch::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/live/make_tables.py");
    let output = Output::of({
        let mut command = Command::new(interpreter());
        command.arg(script).arg(scratch.path("tables")).args(["--ranks", "3", "--steps", "3", "--straggler", "1"]);
        command
    });
    assert_eq!(output.code, 0, "{}", output.stderr);
    let facts = scratch.json("tables", "facts.json");
    (scratch, facts)
}

fn ask(scratch: &Scratch, engine: &str, sql: &str, more: &[&str]) -> Output {
    let mut command = scratch.command(&[&["query", "tables", sql, "--engine", engine], more].concat());
    command.arg("--python").arg(interpreter());
    Output::of(command)
}

fn rows(scratch: &Scratch, engine: &str, sql: &str) -> Vec<Value> {
    let output = ask(scratch, engine, sql, &["--format", "json"]);
    assert_eq!(output.code, 0, "{engine}: {sql}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

pub(crate) fn the_interval_views_find_what_the_script_knows() {
    let (scratch, facts) = made();
    for engine in engines() {
        let found = rows(&scratch, engine, "device-time");
        assert_eq!(found.len(), 3);
        for row in &found {
            let known = &facts["ranks"][row["rank"].to_string()];
            for key in ["span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_exposed_ns", "copies_exposed_ns"]
            {
                assert_eq!(row[key], known[key], "{engine}: rank {} {key}", row["rank"]);
            }
        }
        let gaps = rows(&scratch, engine, "launch-gaps");
        assert!(gaps.iter().all(|row| row["gaps"] == facts["ranks"][row["rank"].to_string()]["gaps"]), "{gaps:?}");
        assert_eq!(rows(&scratch, engine, "stragglers")[0]["rank"], 1);
        assert_eq!(rows(&scratch, engine, "last-to-arrive")[0]["last_rank"], 1);
        let busy = "SELECT rank, SUM(duration_ns) AS ns FROM busy GROUP BY rank";
        for row in rows(&scratch, engine, busy) {
            assert_eq!(row["ns"], facts["ranks"][row["rank"].to_string()]["busy_ns"], "{engine}");
        }
    }
}

pub(crate) fn an_imported_trace_is_answered_as_its_metrics_say() {
    let scratch = Scratch::new();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/fixtures/torch/dsocr-h200.json.gz");
    let imported = Output::of(scratch.command(&["import", trace, "--tables", "tables", "--out", "run"]));
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let kernel_time: i64 =
        metrics["kernels"].as_array().unwrap().iter().filter_map(|row| row["total_ns"].as_i64()).sum();
    for engine in engines() {
        let found = rows(&scratch, engine, "device-time");
        assert_eq!((found.len(), &found[0]["rank"]), (1, &Value::Null), "{engine}");
        for key in ["span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_exposed_ns", "copies_exposed_ns"] {
            assert_eq!(found[0][key], metrics["device_time"][0][key], "{engine}: {key}");
        }
        let families = rows(&scratch, engine, "families");
        assert_eq!(families.iter().filter_map(|row| row["total_ns"].as_i64()).sum::<i64>(), kernel_time, "{engine}");
        // Asked of the run itself, for which tables are made, the answer is the same.
        let asked = |of: &str| {
            let arguments = ["query", of, "families", "--format", "csv", "--engine", engine];
            let mut command = scratch.command(&arguments);
            command.arg("--python").arg(interpreter());
            Output::of(command)
        };
        let (run, tables) = (asked("run"), asked("tables"));
        let without_job = |text: &str| -> Vec<String> {
            text.lines().filter_map(|line| Some(line.split_once(',')?.1.to_owned())).collect()
        };
        assert_eq!((run.code, without_job(&run.stdout)), (0, without_job(&tables.stdout)), "{engine}: {}", run.stderr);
    }
}

pub(crate) fn every_question_is_answered_and_empty_tables_are_there() {
    let (scratch, _) = made();
    for engine in engines() {
        for question in flow::query::QUESTIONS {
            let has_rows = !["stages", "modules", "findings"].contains(&question.name);
            let found = rows(&scratch, engine, question.name);
            assert_eq!(!found.is_empty(), has_rows, "{engine}: {}", question.name);
        }
    }
}

pub(crate) fn every_question_is_answered_alike_by_both_engines() {
    let (scratch, _) = made();
    for question in flow::query::QUESTIONS {
        let [one, other] = ENGINES.map(|engine| rows(&scratch, engine, question.name));
        assert_eq!(one, other, "{}", question.name);
    }
}

pub(crate) fn answers_are_written_in_every_form() {
    let (scratch, facts) = made();
    let sql = "SELECT rank, COUNT(*) AS n, SUM(duration_ns) AS ns FROM kernels GROUP BY rank ORDER BY rank";
    let known = facts["ranks"]["0"]["kernels"].to_string();
    for engine in engines() {
        let table = ask(&scratch, engine, sql, &[]);
        assert!(table.stdout.starts_with("rank") && table.stdout.contains(&known), "{}", table.stdout);
        assert!(table.stderr.contains(&format!("3 rows, {engine} ")), "{}", table.stderr);
        let csv = ask(&scratch, engine, sql, &["--format", "csv"]);
        assert!(csv.stdout.starts_with(&format!("rank,n,ns\n0,{known},")), "{}", csv.stdout);
        let written = format!("{engine}/steps.parquet");
        std::fs::create_dir(scratch.path(engine)).unwrap();
        let parquet = ask(&scratch, engine, sql, &["--out", &written]);
        assert_eq!((parquet.code, parquet.stdout.as_str()), (0, ""), "{}", parquet.stderr);
        let bytes = std::fs::read(scratch.path(&written)).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let again = ask(&scratch, engine, sql, &["--out", &written]);
        assert_eq!(again.code, 2, "{}", again.stderr);
    }
}

pub(crate) fn a_statement_sees_nothing_but_the_folders_named_and_changes_nothing() {
    let (scratch, _) = made();
    std::fs::write(scratch.path("secret.csv"), "a\n1\n").unwrap();
    let secret = scratch.path("secret.csv").display().to_string();
    for engine in engines() {
        for sql in [
            format!("SELECT * FROM read_csv('{secret}')"),
            format!("SELECT * FROM '{secret}'"),
            format!("SELECT * FROM read_text('{}/tables/../secret.csv')", scratch.path("").display()),
            "SELECT * FROM glob('/etc/*')".to_owned(),
            "WITH a AS (SELECT 1) INSERT INTO kernels SELECT * FROM a".to_owned(),
            "SELECT no_such_column FROM kernels".to_owned(),
        ] {
            let output = ask(&scratch, engine, &sql, &[]);
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{engine}: {sql}: {}", output.stderr);
        }
    }
}

pub(crate) fn a_damaged_file_is_an_error_that_names_it() {
    let (scratch, _) = made();
    let path = scratch.path("tables/job=made/rank=1/kernels.parquet");
    let whole = std::fs::read(&path).unwrap();
    let steps = std::fs::read(scratch.path("tables/job=made/rank=1/steps.parquet")).unwrap();
    let mut scrambled = whole.clone();
    scrambled[40..2_500].iter_mut().for_each(|byte| *byte ^= 0x5a);
    let cases = [
        ("truncated", whole[..whole.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("another table", steps),
        ("scrambled", scrambled),
    ];
    for (case, bytes) in cases {
        std::fs::write(&path, bytes).unwrap();
        for engine in engines() {
            let output = ask(&scratch, engine, "SELECT MAX(name), MAX(start_ns), MAX(duration_ns) FROM kernels", &[]);
            assert_eq!(output.code, 1, "{engine}: {case}: {}{}", output.stdout, output.stderr);
            assert!(output.stderr.contains("rank=1/kernels.parquet"), "{engine}: {case}: {}", output.stderr);
        }
    }
}
