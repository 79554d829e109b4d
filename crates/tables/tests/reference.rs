//! Keeps `docs/reference/tables.md` equal to the schema. `UPDATE_DOCS=1` rewrites it.

use std::fs;
use std::path::Path;

#[test]
fn the_page_is_what_the_schema_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tables.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, after) = page.split_once("<!-- tables -->\n").expect("the page has a place for the tables");
    let expected = format!("\n{}", llm_perf_tables::reference());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}<!-- tables -->\n{expected}")).unwrap();
    } else {
        assert_eq!(after, expected, "rewrite it with UPDATE_DOCS=1 cargo test -p llm-perf-tables --test reference");
    }
}
