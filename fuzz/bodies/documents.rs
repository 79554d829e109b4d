//! The documents of a run folder, as one JSON object of files: what can be read is shown, drawn, compared with itself and checked
//! against its schema, and commands no terminal.

use std::fs;
use std::path::Path;

use flow::compare::{CompareRequest, compare, markdown};
use flow::show::Glance;
use flow::{page, runs, show, validate};
use serde_json::{Map, Value};
use types::{FileValidation, Metrics};

/// What is in a run folder besides pages.
const FILES: [&str; 5] = ["manifest.json", "metrics.json", "kernels.json", "env.json", "inputs.yaml"];

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Ok(files) = serde_json::from_slice::<Map<String, Value>>(bytes) else { return false };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut written = Vec::new();
    for (name, content) in files.iter().filter(|(name, _)| FILES.contains(&name.as_str())) {
        written.push(folder.path().join(name));
        // What is no JSON is there as a text.
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        fs::write(folder.path().join(name), text).expect("a temporary file");
    }
    let validation: Vec<FileValidation> = validate::validate_files(&written).files;
    assert_eq!(validation.len(), written.len());
    shown(folder.path()).is_some()
}

fn shown(folder: &Path) -> Option<()> {
    let run = runs::StoredRun::open(folder).ok()?;
    let listed = runs::verify(&run).map(|found| found.checked);
    assert!(listed.is_ok_and(|checked| checked >= run.manifest().files.len() as u64));
    let metrics: Metrics = show::metrics(&run).ok()?;
    let text = show::text(&metrics, &Glance { stage: None, top: 10, width: 100 }, str::to_owned);
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    let page = page::of_run(&run, false).ok()?;
    assert!(page.html.trim_end().ends_with("</html>"));
    let sides = vec![folder.as_os_str().to_owned()];
    let request =
        CompareRequest { root: folder.to_owned(), base: sides.clone(), with: sides, tried: None, fail_over: None };
    let comparison = compare(&request).ok()?;
    assert!(!markdown(&comparison, 50).contains(['\u{1b}', '\u{7}', '\u{202e}']));
    Some(())
}
