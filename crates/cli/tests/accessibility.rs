//! Every kind of page, checked by axe-core: what a screen reader, a keyboard or a weak eye would stumble over.

#[path = "support/browser.rs"]
#[allow(dead_code, reason = "each test file takes what it needs")]
mod browser;
#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "each test file takes what it needs")]
mod scratch;
#[allow(dead_code, reason = "each test file takes what it needs")]
mod support;

use std::path::{Path, PathBuf};

use browser::{Browser, browser};
use scratch::{Output, Scratch};
use serde_json::{Value, json};

/// Names `axe.min.js` of axe-core, which CI fetches; it is no part of the page.
const AXE: &str = "LLM_PERF_TEST_AXE";

fn done(scratch: &Scratch, arguments: &[&str]) {
    let output = Output::of(scratch.command(arguments));
    assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name);
    path.to_str().unwrap().to_owned()
}

/// One page of each kind.
fn pages(scratch: &Scratch) -> Vec<PathBuf> {
    done(scratch, &["import", &fixture("torch/dsocr-h200.json.gz"), "--out", "imported"]);
    done(scratch, &["import", &fixture("nsys/dsocr-h200.sqlite.gz"), "--out", "other"]);
    let (one, two) = (fixture("torch/two-ranks-h200-0.json.gz"), fixture("torch/two-ranks-h200-1.json.gz"));
    done(scratch, &["import", &one, &two, "--out", "ranks"]);
    let quick = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2", "infer.max_new_tokens=4"];
    let smoke = "dataset/sampling@dataset.sampling=sampling.smoke";
    done(scratch, &[&["profile", "--out", "native", smoke], &quick[..]].concat());
    done(scratch, &["report", "imported", "other", "--out", "comparison.html"]);
    testkit::fleet::write(&scratch.path("job"), [8, 12, 12], &["straggler=5"]).unwrap();
    done(scratch, &["fleet", "job", "--out", "fleet"]);
    let runs = ["imported", "ranks", "native", "fleet"].map(|run| scratch.path(run).join("report.html"));
    runs.into_iter().chain([scratch.path("comparison.html")]).collect()
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

#[test]
fn no_page_has_anything_that_axe_core_objects_to() {
    let Some(axe) = std::env::var_os(AXE) else {
        eprintln!("NOT CHECKED: {AXE} does not name axe.min.js of axe-core");
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap();
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new();
    for page in pages(&scratch) {
        for (scheme, width) in [("light", 1280), ("dark", 1280), ("light", 390)] {
            browser.emulate("screen", scheme);
            browser.resize(width);
            browser.open(&page);
            let found = violations(&browser, &axe);
            assert_eq!(found, Vec::<String>::new(), "{} in {scheme}, {width} wide", page.display());
        }
    }
    // It does object where there is reason to.
    browser.value("document.documentElement.removeAttribute('lang')");
    assert_eq!(violations(&browser, &axe).len(), 1);
    assert_eq!(browser.value("document.documentElement.lang"), json!(""));
}
