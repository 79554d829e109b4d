//! Every kind of page, checked by axe-core: what a screen reader, a keyboard or a weak eye would stumble over.

use std::path::Path;

use crate::browser::{Browser, browser};
use crate::scratch::{Output, Scratch};
use serde_json::{Value, json};

fn done(scratch: &Scratch, arguments: &[&str]) {
    let output = Output::of(scratch.command(arguments));
    assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name);
    path.to_str().unwrap().to_owned()
}

/// What axe-core finds wrong with the whole page, every part of it open.
fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    let script = format!(
        "{axe};\nconst answer = arguments[arguments.length - 1];
         document.querySelectorAll('details').forEach((one) => (one.open = true));
         axe.run(document, {{ resultTypes: ['violations'] }}).then(
           ({{ violations, passes }}) => answer({{ violations, passes: passes.length }}), (error) => answer(String(error)));"
    );
    let found = browser.answer(&script);
    assert!(found["passes"].as_u64() > Some(10), "axe-core looked at the page: {found}");
    let said = |one: &Value| format!("{}: {} {:?}", one["id"], one["help"], one["nodes"][0]["html"]);
    found["violations"].as_array().unwrap().iter().map(said).collect()
}

/// Nothing, in any width and colour; the browser stays at the last.
fn assert_accessible(page: &Path) -> Browser {
    let (browser, axe) = (browser(), axe());
    for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 390)] {
        browser.emulate("screen", scheme);
        browser.resize(width);
        browser.open(page);
        let found = violations(&browser, &axe);
        assert_eq!(found, Vec::<String>::new(), "{} in {scheme}, {width} wide", page.display());
    }
    browser
}

fn axe() -> String {
    std::fs::read_to_string(testkit::need::axe()).unwrap()
}

pub(crate) fn the_page_of_an_imported_run_has_nothing_that_axe_core_objects_to() {
    let scratch = Scratch::new();
    done(&scratch, &["import", &fixture("torch/dsocr-h200.json.gz"), "--out", "run"]);
    let browser = assert_accessible(&scratch.path("run").join("report.html"));
    // It does object where there is reason to.
    browser.value("document.documentElement.removeAttribute('lang')");
    assert_eq!(violations(&browser, &axe()).len(), 1);
    assert_eq!(browser.value("document.documentElement.lang"), json!(""));
}

pub(crate) fn the_page_of_two_ranks_has_nothing_that_axe_core_objects_to() {
    let scratch = Scratch::new();
    let (one, two) = (fixture("torch/two-ranks-h200-0.json.gz"), fixture("torch/two-ranks-h200-1.json.gz"));
    done(&scratch, &["import", &one, &two, "--out", "run"]);
    assert_accessible(&scratch.path("run").join("report.html"));
}

pub(crate) fn the_page_of_a_load_has_nothing_that_axe_core_objects_to() {
    let scratch = Scratch::served();
    let browser = assert_accessible(&scratch.path("run").join("report.html"));
    let canvas = "document.querySelector('#requests canvas')";
    browser.wait(&format!("!!{canvas}.dataset.ready"));
    browser.value(&format!("{canvas}.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'ArrowDown' }}))"));
    browser.value("document.querySelector('#requests .panel td button').click()");
    assert_eq!(browser.value("document.querySelectorAll('#requests .panel table').length"), json!(3));
    assert_eq!(violations(&browser, &axe()), Vec::<String>::new(), "with a request and a step selected");
}

pub(crate) fn the_page_of_a_run_of_our_own_has_nothing_that_axe_core_objects_to() {
    let scratch = Scratch::new();
    let quick = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2", "infer.max_new_tokens=4"];
    let smoke = "dataset/sampling@dataset.sampling=sampling.smoke";
    done(&scratch, &[&["profile", "--out", "run", smoke], &quick[..]].concat());
    assert_accessible(&scratch.path("run").join("report.html"));
}

pub(crate) fn the_pages_of_an_analysis_and_a_sweep_have_nothing_that_axe_core_objects_to() {
    let scratch = Scratch::new();
    done(&scratch, &["analyze", "--model", "llama-3-8b", "--out", "model"]);
    let browser = assert_accessible(&scratch.path("model").join("report.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let drawn =
        browser.value("[...document.querySelectorAll('section svg')].map((one) => one.getAttribute('aria-label'))");
    assert!(drawn.as_array().unwrap().len() >= 4, "{drawn}");
    done(&scratch, &["analyze", "--sweep", "workload.batch=1,2", "--out", "sweep"]);
    let browser = assert_accessible(&scratch.path("sweep").join("report.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

pub(crate) fn the_page_of_a_fleet_has_nothing_that_axe_core_objects_to() {
    let scratch = Scratch::new();
    testkit::fleet::write(&scratch.path("job"), [8, 12, 12], &["straggler=5"]).unwrap();
    done(&scratch, &["fleet", "job", "--out", "fleet"]);
    assert_accessible(&scratch.path("fleet").join("report.html"));
}

pub(crate) fn the_page_of_a_comparison_has_nothing_that_axe_core_objects_to() {
    let scratch = Scratch::new();
    done(&scratch, &["import", &fixture("torch/dsocr-h200.json.gz"), "--out", "imported"]);
    done(&scratch, &["import", &fixture("nsys/dsocr-h200.sqlite.gz"), "--out", "other"]);
    done(&scratch, &["report", "imported", "other", "--out", "comparison.html"]);
    assert_accessible(&scratch.path("comparison.html"));
}
