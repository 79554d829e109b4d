//! `llm-perf query`: what is refused before an engine starts, and what is said of one that fails. Real engines are asked in the
//! suite `python`.

#![cfg(unix)]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "a query needs less of it than a profile")]
mod scratch;
mod support;

use std::os::unix::fs::PermissionsExt;

use scratch::{Output, Scratch};

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
