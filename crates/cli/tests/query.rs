//! `llm-perf query`: what is refused before an engine starts, and the driver in a real interpreter where one with duckdb or
//! datafusion is there. With `LLM_PERF_TEST_QUERY` set, an interpreter without either is a failure.

#![cfg(unix)]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "a query needs less of it than a profile")]
mod scratch;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use scratch::{Output, Scratch};
use serde_json::Value;

/// A scratch folder with a file where a table would be.
fn with_file() -> Scratch {
    let scratch = Scratch::new();
    let folder = scratch.path("tables/job=x/rank=0");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("kernels.parquet"), "").unwrap();
    scratch
}

fn query(scratch: &Scratch, arguments: &[&str]) -> Output {
    Output::of(scratch.command(&[&["query"], arguments].concat()))
}

#[test]
fn questions_tables_and_views_are_listed_and_the_sql_of_each_is_shown() {
    let scratch = Scratch::new();
    let listed = query(&scratch, &["--list"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    for part in
        ["top-kernels", "Kernels that take the most device time", "exposed_communication", "job, rank, device, stream"]
    {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    let shown = query(&scratch, &["--list", "stragglers", "gaps"]);
    assert!(shown.stdout.contains("FROM device_time") && shown.stdout.contains("FROM device_work"), "{}", shown.stdout);
    let unknown = query(&scratch, &["--list", "straggler"]);
    assert_eq!((unknown.code, unknown.stderr.contains("did you mean `stragglers`?")), (2, true), "{}", unknown.stderr);
}

#[test]
fn wrong_requests_are_refused_before_an_engine_is_looked_for() {
    let scratch = with_file();
    for (arguments, said) in [
        (&["tables", "DROP TABLE kernels"][..], "error: `DROP` is not allowed: a query must be a single SELECT"),
        (&["tables", "COPY kernels TO 'x'"], "`COPY` is not allowed"),
        (&["tables", "SELECT 1; DELETE FROM kernels"], "found a second statement: `DELETE FROM kernels`"),
        (&["tables", " "], "the statement is empty"),
        (&["tables", "top-kernel"], "unknown query `top-kernel`"),
        (&["SELECT 1"], "missing run or folder"),
        (&["tables"], "missing query after `tables`"),
        (&["gone", "SELECT 1"], "run `gone` not found in"),
        (&["tables/job=x/rank=0/kernels.parquet", "SELECT 1"], "is a file, not a folder of tables"),
        (&["tables", "SELECT 1", "--format", "parquet"], "cannot print Parquet"),
        (&["tables", "SELECT 1", "--engine", "spark"], "expected auto, duckdb, datafusion or ballista://HOST:PORT"),
        (&["tables", "SELECT 1", "--memory", "2"], "expected a size such as 2GB or 512MiB"),
        (&["tables", "SELECT 1", "--out", "tables"], "tables already exists"),
    ] {
        let output = query(&scratch, arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(said), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
}

#[test]
fn where_no_engine_is_found_the_message_says_what_to_install() {
    let scratch = with_file();
    let python = scratch.path("python3");
    let answer = r#"{"version":"3.11","executable":"x","folders":[]}"#;
    std::fs::write(&python, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = query(&scratch, &["tables", "SELECT 1", "--python", python.to_str().unwrap()]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("no Python interpreter with duckdb or datafusion found"), "{}", output.stderr);
    assert!(output.stderr.contains("hint: run `pip install duckdb`"), "{}", output.stderr);
    let cluster = ["tables", "SELECT 1", "--engine", "ballista://head:1", "--python", python.to_str().unwrap()];
    let output = query(&scratch, &cluster);
    assert!(output.stderr.contains("hint: run `pip install ballista datafusion`"), "{}", output.stderr);
}

#[test]
fn the_driver_is_python_that_old_interpreters_read() {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../collect/src/tool/query/query.py");
    let parse = "import ast, sys; ast.parse(open(sys.argv[1]).read(), feature_version=(3, 8))";
    let Ok(output) = Command::new("python3").args(["-c", parse, driver]).output() else {
        return eprintln!("not checked: there is no python3");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A driver of its own in place of the interpreter, so that what engines do is told without one.
fn with_driver(script: &str) -> (Scratch, Output) {
    let scratch = with_file();
    let python = scratch.path("python3");
    let answer = r#"{"version":"3.11","executable":"x","duckdb":"1.4.0","folders":[]}"#;
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = -c ]; then echo '{answer}'; exit 0; fi\nexec 3>&\"$LLM_PERF_CHANNEL\"\n{script}\n"
    );
    std::fs::write(&python, text).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = query(&scratch, &["tables", "SELECT 1 AS a", "--python", python.to_str().unwrap()]);
    (scratch, output)
}

#[test]
fn an_engine_that_dies_is_told_with_its_last_words() {
    let (_scratch, output) = with_driver("echo 'terminate called' >&2; kill -SEGV $$");
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("duckdb was killed by signal 11 (SIGSEGV) before the query finished"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("| terminate called"), "{}", output.stderr);
}

#[test]
fn an_engine_that_does_not_answer_in_time_is_ended() {
    let scratch = with_file();
    let python = scratch.path("python3");
    let answer = r#"{"version":"3.11","executable":"x","duckdb":"1.4.0","folders":[]}"#;
    std::fs::write(&python, format!("#!/bin/sh\n[ \"$1\" = -c ] && echo '{answer}' && exit\nsleep 600\n")).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = query(&scratch, &["tables", "SELECT 1", "--timeout", "1", "--python", python.to_str().unwrap()]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("error: the query did not finish within 1 s"), "{}", output.stderr);
}

#[test]
fn what_values_say_does_not_reach_the_terminal_as_a_command() {
    let script = r#"printf '%s\n' '{"event":"columns","names":["a"],"types":["VARCHAR"]}' \
        '{"event":"rows","rows":[["\u001b[2Jx\u009b31m"]]}' '{"event":"done","rows":1,"more":false}' >&3"#;
    let (_scratch, output) = with_driver(script);
    assert_eq!((output.code, output.stdout.as_str()), (0, "a\n\\u{1b}[2Jx\\u{9b}31m\n"), "{}", output.stderr);
}

/// An interpreter, and the engines it has.
fn live() -> Option<(PathBuf, Vec<&'static str>)> {
    let program = std::env::var_os("LLM_PERF_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let imports = |package: &str| {
        let status = Command::new(&program).args(["-c", &format!("import {package}")]).output();
        status.is_ok_and(|output| output.status.success())
    };
    let engines: Vec<&str> = ["duckdb", "datafusion"].into_iter().filter(|engine| imports(engine)).collect();
    if engines.is_empty() {
        assert!(std::env::var_os("LLM_PERF_TEST_QUERY").is_none(), "{} has no engine", program.display());
        eprintln!("not checked: {} imports neither duckdb nor datafusion", program.display());
        return None;
    }
    Some((program, engines))
}

/// Tables of a job that never ran, and what is known of it.
fn made(python: &PathBuf) -> (Scratch, Value) {
    let scratch = Scratch::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/live/make_tables.py");
    let output = Output::of({
        let mut command = Command::new(python);
        command.arg(script).arg(scratch.path("tables")).args(["--ranks", "3", "--steps", "3", "--straggler", "1"]);
        command
    });
    assert_eq!(output.code, 0, "{}", output.stderr);
    let facts = scratch.json("tables", "facts.json");
    (scratch, facts)
}

fn ask(scratch: &Scratch, python: &PathBuf, engine: &str, sql: &str, more: &[&str]) -> Output {
    let mut command = scratch.command(&[&["query", "tables", sql, "--engine", engine], more].concat());
    command.arg("--python").arg(python);
    Output::of(command)
}

fn rows(scratch: &Scratch, python: &PathBuf, engine: &str, sql: &str) -> Vec<Value> {
    let output = ask(scratch, python, engine, sql, &["--format", "json"]);
    assert_eq!(output.code, 0, "{engine}: {sql}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn the_interval_views_find_what_the_script_knows() {
    let Some((python, engines)) = live() else { return };
    let (scratch, facts) = made(&python);
    for engine in engines {
        let found = rows(&scratch, &python, engine, "device-time");
        assert_eq!(found.len(), 3);
        for row in &found {
            let known = &facts["ranks"][row["rank"].to_string()];
            for key in ["span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_exposed_ns", "copies_exposed_ns"]
            {
                assert_eq!(row[key], known[key], "{engine}: rank {} {key}", row["rank"]);
            }
        }
        let gaps = rows(&scratch, &python, engine, "launch-gaps");
        assert!(gaps.iter().all(|row| row["gaps"] == facts["ranks"][row["rank"].to_string()]["gaps"]), "{gaps:?}");
        assert_eq!(rows(&scratch, &python, engine, "stragglers")[0]["rank"], 1);
        assert_eq!(rows(&scratch, &python, engine, "last-to-arrive")[0]["last_rank"], 1);
        let busy = "SELECT rank, SUM(duration_ns) AS ns FROM busy GROUP BY rank";
        for row in rows(&scratch, &python, engine, busy) {
            assert_eq!(row["ns"], facts["ranks"][row["rank"].to_string()]["busy_ns"], "{engine}");
        }
    }
}

#[test]
fn an_imported_trace_is_answered_as_its_metrics_say() {
    let Some((python, engines)) = live() else { return };
    let scratch = Scratch::new();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/fixtures/torch/dsocr-h200.json.gz");
    let imported = Output::of(scratch.command(&["import", trace, "--tables", "tables", "--out", "run"]));
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let kernel_time: i64 =
        metrics["kernels"].as_array().unwrap().iter().filter_map(|row| row["total_ns"].as_i64()).sum();
    for engine in engines {
        let found = rows(&scratch, &python, engine, "device-time");
        assert_eq!((found.len(), &found[0]["rank"]), (1, &Value::Null), "{engine}");
        for key in ["span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_exposed_ns", "copies_exposed_ns"] {
            assert_eq!(found[0][key], metrics["device_time"][0][key], "{engine}: {key}");
        }
        let families = rows(&scratch, &python, engine, "families");
        assert_eq!(families.iter().filter_map(|row| row["total_ns"].as_i64()).sum::<i64>(), kernel_time, "{engine}");
        // Asked of the run itself, for which tables are made, the answer is the same.
        let python = python.to_str().unwrap();
        let asked =
            |of: &str| query(&scratch, &[of, "families", "--format", "csv", "--engine", engine, "--python", python]);
        let (run, tables) = (asked("run"), asked("tables"));
        let without_job = |text: &str| -> Vec<String> {
            text.lines().filter_map(|line| Some(line.split_once(',')?.1.to_owned())).collect()
        };
        assert_eq!((run.code, without_job(&run.stdout)), (0, without_job(&tables.stdout)), "{engine}: {}", run.stderr);
    }
}

#[test]
fn every_question_is_answered_alike_by_every_engine_and_empty_tables_are_there() {
    let Some((python, engines)) = live() else { return };
    let (scratch, _) = made(&python);
    for question in flow::query::QUESTIONS {
        let answers: Vec<Vec<Value>> =
            engines.iter().map(|engine| rows(&scratch, &python, engine, question.name)).collect();
        let has_rows = !["stages", "modules", "findings"].contains(&question.name);
        assert_eq!(!answers[0].is_empty(), has_rows, "{}", question.name);
        for other in &answers[1..] {
            assert_eq!(&answers[0], other, "{}", question.name);
        }
    }
}

#[test]
fn answers_are_written_in_every_form() {
    let Some((python, engines)) = live() else { return };
    let (scratch, facts) = made(&python);
    let sql = "SELECT rank, COUNT(*) AS n, SUM(duration_ns) AS ns FROM kernels GROUP BY rank ORDER BY rank";
    let known = facts["ranks"]["0"]["kernels"].to_string();
    for engine in engines {
        let table = ask(&scratch, &python, engine, sql, &[]);
        assert!(table.stdout.starts_with("rank") && table.stdout.contains(&known), "{}", table.stdout);
        assert!(table.stderr.contains(&format!("3 rows by {engine} ")), "{}", table.stderr);
        let csv = ask(&scratch, &python, engine, sql, &["--format", "csv"]);
        assert!(csv.stdout.starts_with(&format!("rank,n,ns\n0,{known},")), "{}", csv.stdout);
        let written = format!("{engine}/steps.parquet");
        std::fs::create_dir(scratch.path(engine)).unwrap();
        let parquet = ask(&scratch, &python, engine, sql, &["--out", &written]);
        assert_eq!((parquet.code, parquet.stdout.as_str()), (0, ""), "{}", parquet.stderr);
        let bytes = std::fs::read(scratch.path(&written)).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let again = ask(&scratch, &python, engine, sql, &["--out", &written]);
        assert_eq!(again.code, 2, "{}", again.stderr);
    }
}

#[test]
fn a_statement_sees_nothing_but_the_folders_named_and_changes_nothing() {
    let Some((python, engines)) = live() else { return };
    let (scratch, _) = made(&python);
    std::fs::write(scratch.path("secret.csv"), "a\n1\n").unwrap();
    let secret = scratch.path("secret.csv").display().to_string();
    for engine in engines {
        for sql in [
            format!("SELECT * FROM read_csv('{secret}')"),
            format!("SELECT * FROM '{secret}'"),
            format!("SELECT * FROM read_text('{}/tables/../secret.csv')", scratch.path("").display()),
            "SELECT * FROM glob('/etc/*')".to_owned(),
            "WITH a AS (SELECT 1) INSERT INTO kernels SELECT * FROM a".to_owned(),
            "SELECT no_such_column FROM kernels".to_owned(),
        ] {
            let output = ask(&scratch, &python, engine, &sql, &[]);
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{engine}: {sql}: {}", output.stderr);
        }
    }
}

#[test]
fn a_damaged_file_is_an_error_that_names_it() {
    let Some((python, engines)) = live() else { return };
    let (scratch, _) = made(&python);
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
        for engine in &engines {
            let output =
                ask(&scratch, &python, engine, "SELECT MAX(name), MAX(start_ns), MAX(duration_ns) FROM kernels", &[]);
            assert_eq!(output.code, 1, "{engine}: {case}: {}{}", output.stdout, output.stderr);
            assert!(output.stderr.contains("rank=1/kernels.parquet"), "{engine}: {case}: {}", output.stderr);
        }
    }
}

/// The tables that engines are tried on are made by a script; where no engine is installed, nothing else would notice a column it lacks.
#[test]
fn made_tables_have_every_column_of_the_reference() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = std::fs::read_to_string(root.join("tests/live/make_tables.py")).unwrap();
    let reference = std::fs::read_to_string(root.join("docs/reference/tables.md")).unwrap();
    let mut looked_at = 0;
    for section in reference.split("\n## `").skip(1) {
        let table = section.split('`').next().unwrap();
        let Some(made) = script.split(&format!("\"{table}\": [(")).nth(1) else { continue };
        let made = made.split(")]").next().unwrap();
        for column in section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()) {
            assert!(made.contains(&format!("\"{column}\"")), "{table} is made without `{column}`");
            looked_at += 1;
        }
    }
    assert!(looked_at > 60, "{looked_at} columns");
}
