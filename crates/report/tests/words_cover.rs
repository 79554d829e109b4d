//! Every counter and every remark that the crates below make has words, and no words are left over.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that conclude in data.
const SPEAKING: [&str; 4] = ["types", "analysis", "ingest", "flow"];

/// Files whose remarks have ids made of a kind and a name; `words/cause.rs` and `words/assumption.rs` say them and are tested there.
const COMPOSED: [&str; 4] = ["src/loss/mod.rs", "src/replay/path.rs", "src/replay/change.rs", "src/device/modules.rs"];

/// Sources below a folder, without their unit tests.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs")
            && !name.ends_with("tests.rs")
            && name != "sample.rs"
            && !COMPOSED.iter().any(|file| path.ends_with(file))
        {
            let text = fs::read_to_string(&path).unwrap();
            found.push(text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned());
        }
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The first argument of every such call, all of which must be literals: an id made elsewhere could not be looked up here.
fn ids(calls: &[&str]) -> BTreeSet<String> {
    let mut texts = Vec::new();
    SPEAKING.iter().for_each(|name| sources(&crates().join(name).join("src"), &mut texts));
    assert!(texts.len() > 100, "{}", texts.len());
    let mut ids = BTreeSet::new();
    for (text, call) in texts.iter().flat_map(|text| calls.iter().map(move |call| (text, call))) {
        for (_, rest) in text.split(call).skip(1).map(|rest| ((), rest.trim_start())) {
            let id = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let line = rest.lines().next().unwrap_or_default();
            ids.insert(id.unwrap_or_else(|| panic!("`{call}{line}` has no literal id")).0.to_owned());
        }
    }
    ids
}

/// Ids of the rows of a file of words, in the order they stand in.
fn rows(file: &str) -> Vec<String> {
    let text = fs::read_to_string(crates().join("report/src/words").join(file)).unwrap();
    let heads = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', ' ']));
    heads.map(|line| line.split(": ").next().unwrap().to_owned()).collect()
}

/// Rows and ids are the same, each once.
fn assert_covered(rows: Vec<String>, used: BTreeSet<String>) {
    let known: BTreeSet<String> = rows.iter().cloned().collect();
    assert_eq!(rows.len(), known.len(), "a row comes twice");
    let without: Vec<_> = used.difference(&known).collect();
    assert!(without.is_empty(), "without words: {without:#?}");
    let unused: Vec<_> = known.difference(&used).collect();
    assert!(unused.is_empty(), "words that nothing says: {unused:#?}");
}

#[test]
fn every_counter_has_a_row_and_every_row_is_used() {
    assert_covered(rows("counters.txt"), ids(&["QualityCounter::new(", "QualityCounter::some("]));
}

#[test]
fn every_remark_has_a_row_and_every_row_is_used() {
    assert_covered(rows("remarks.txt"), ids(&["Remark::new("]));
}

#[test]
fn every_rule_about_ranks_has_a_row_and_every_row_is_used() {
    let text = fs::read_to_string(crates().join("analysis/src/fleet/finding.rs")).unwrap();
    let used = text.split("finding(\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id.to_owned());
    assert_covered(rows("fleet_rules.txt"), used.collect());
}

/// Sentences are built in words: no other crate gives a counter its text.
#[test]
fn no_counter_gets_its_words_where_it_is_made() {
    let mut texts = Vec::new();
    SPEAKING.iter().for_each(|name| sources(&crates().join(name).join("src"), &mut texts));
    let built = texts.iter().flat_map(|text| text.split("QualityCounter {").skip(1));
    let told: Vec<&str> = built.filter(|rest| rest.split('}').next().unwrap().contains("remedy: ")).collect();
    // Only the definition of the type and its constructor name the field.
    assert_eq!(told.len(), 1, "{told:#?}");
}
