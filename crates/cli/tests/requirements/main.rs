//! What the program must do, row by row: each has a check that looks at what real runs left, and
//! `docs/reference/requirements.md` is what the checks say. `UPDATE_DOCS=1` rewrites the page.

#![cfg(unix)]

mod analytic;
mod bundles;
mod deep;
mod later;
mod profile;
mod regions;
#[path = "../support/scratch.rs"]
mod scratch;
#[path = "../support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::path::Path;

use bundles::Bundles;

/// One thing the program must do.
struct Row {
    id: &'static str,
    requirement: &'static str,
    /// Says what is missing.
    check: fn(&Bundles) -> Result<(), String>,
    /// The script that shows the same on a GPU; empty where none is needed.
    live: &'static str,
}

const GROUPS: [(&str, &[Row]); 5] = [
    ("Profiling", profile::ROWS),
    ("Deep profiling", deep::ROWS),
    ("Regions", regions::ROWS),
    ("Analytic model", analytic::ROWS),
    ("Across the verbs", later::ROWS),
];

const ABOUT: &str = "\
# Requirements

What the program must do, and whether it does. The test `requirements` of the crate `llm-perf` makes one check for every row and
writes this page: `UPDATE_DOCS=1 cargo test -p llm-perf --test requirements`. It runs the program on the CPU, with stand-ins for
`nsys`, `ncu` and `python3` that answer with captures of an NVIDIA H200. What only a GPU can show is shown by the script of the
last column, in `tests/live`; the test looks that it is there and does not run it.
";

#[test]
fn the_page_of_requirements_says_what_the_checks_find() {
    let bundles = Bundles::make();
    let (mut page, mut failed) = (ABOUT.to_owned(), String::new());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (title, rows) in GROUPS {
        write!(page, "\n## {title}\n\n| id | requirement | state | on a GPU |\n|---|---|---|---|\n").unwrap();
        for row in rows {
            let state = match (row.check)(&bundles) {
                Ok(()) => "whole".to_owned(),
                Err(missing) => {
                    writeln!(failed, "{}: {missing}", row.id).unwrap();
                    format!("missing: {}", missing.lines().next().unwrap_or_default())
                }
            };
            let scripts: Vec<&str> = row.live.split_terminator(' ').collect();
            assert!(
                scripts.iter().all(|script| root.join("tests/live").join(script).is_file()),
                "{}: {}",
                row.id,
                row.live
            );
            let scripts = scripts.iter().map(|script| format!("`{script}`")).collect::<Vec<_>>().join(", ");
            writeln!(page, "| {} | {} | {state} | {scripts} |", row.id, row.requirement).unwrap();
        }
    }
    let file = root.join("docs/reference/requirements.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, page).unwrap();
        return;
    }
    assert!(failed.is_empty(), "requirements that do not hold:\n{failed}");
    let written = std::fs::read_to_string(file).unwrap_or_default();
    let differs: Vec<_> = written.lines().zip(page.lines()).filter(|(is, should)| is != should).collect();
    assert!(written == page, "docs/reference/requirements.md is not what the checks find: {differs:#?}");
}

#[test]
fn every_row_has_an_id_of_its_own_in_order() {
    let counts = [11, 10, 9, 10, 11];
    for ((index, (_, rows)), count) in GROUPS.iter().enumerate().zip(counts) {
        let ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
        let expected: Vec<String> = (1..=count).map(|number| format!("S{}.{number}", index + 1)).collect();
        assert_eq!(ids, expected);
    }
}
