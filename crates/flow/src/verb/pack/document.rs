//! Documents of a run: where in them a value belongs to the user, and the same documents without it.
//!
//! What a place in the table holds is replaced whole, whatever it says. Every other string is searched for the values found at
//! such places, and for what looks like a path, an address or a key.

use std::collections::BTreeSet;

use serde_json::Value;
use types::Stage;

use super::json_text::{Pointer, map_strings};
use super::scrubber::{Kind, Scrubber, Term};
use super::words::{is_telling, one_word};

/// Kind of document, place in it, and what stands there. `*` is any key and any element.
const PLACES: &[(&str, &[&str], Kind)] = &[
    ("analytic", &["model", "config_path"], Kind::Path),
    ("capacity", &["model", "config_path"], Kind::Path),
    ("capacity-sweep", &["model", "config_path"], Kind::Path),
    ("config", &["artifacts", "*"], Kind::Path),
    ("config", &["dataset", "exclude", "*"], Kind::Input),
    ("config", &["dataset", "file_list"], Kind::Path),
    ("config", &["dataset", "include", "*"], Kind::Input),
    ("config", &["dataset", "root"], Kind::Path),
    ("config", &["hydra", "run", "dir"], Kind::Path),
    ("config", &["infer", "prompt"], Kind::Text),
    ("config", &["model", "config_path"], Kind::Path),
    ("config", &["model", "target"], Kind::Path),
    ("config", &["model", "weights"], Kind::Path),
    ("config", &["run", "output_root"], Kind::Path),
    ("deep-plan", &["arguments", "*"], Kind::Word),
    ("deep-plan", &["folder"], Kind::Path),
    ("deep-plan", &["passes", "*", "command"], Kind::Text),
    ("deep-plan", &["target", "*"], Kind::Word),
    ("environment", &["frameworks", "python", "path"], Kind::Path),
    ("environment", &["gpus", "*", "pci_bus_id"], Kind::Device),
    ("environment", &["gpus", "*", "uuid"], Kind::Device),
    ("environment", &["tools", "*", "path"], Kind::Path),
    ("environment", &["variables", "*"], Kind::Value),
    ("fleet", &["jobs", "*", "job"], Kind::Input),
    ("fleet", &["trends", "*", "subject"], Kind::Text),
    ("inputs", &["command", "arguments", "*"], Kind::Word),
    ("inputs", &["command", "folder"], Kind::Path),
    ("inputs", &["command", "program"], Kind::Word),
    ("inputs", &["dataset_root"], Kind::Path),
    ("inputs", &["files", "*", "name"], Kind::Input),
    ("inputs", &["files", "*", "path"], Kind::Input),
    ("inputs", &["images", "*", "name"], Kind::Input),
    ("inputs", &["images", "*", "path"], Kind::Input),
    ("inputs", &["prompts", "*", "name"], Kind::Input),
    ("inputs", &["prompts", "*", "path"], Kind::Input),
    ("inputs", &["subset_filelist"], Kind::Path),
    ("kernels", &["devices", "*", "uuid"], Kind::Device),
    ("metrics", &["command", "command"], Kind::Text),
    ("metrics", &["devices", "*", "uuid"], Kind::Device),
    ("metrics", &["disturbance", "*", "input"], Kind::Input),
    ("metrics", &["findings", "*", "quantities", "input"], Kind::Input),
    ("metrics", &["inputs", "*", "name"], Kind::Input),
    ("metrics", &["requests", "*", "error"], Kind::Text),
    ("metrics", &["requests", "*", "id"], Kind::Text),
    ("metrics", &["run", "weights"], Kind::Path),
    ("metrics", &["samples", "*", "input"], Kind::Input),
    ("metrics", &["trace", "sources", "*", "path"], Kind::Input),
    ("regions", &["captures", "*", "command", "*"], Kind::Word),
    ("regions", &["target"], Kind::Text),
];

/// Inputs that ship with the program or are made by it, and how our documents say so.
const OURS: [&str; 7] = ["", "-", "builtin", "synthetic", "config", "command", "files"];

/// A document with the values at its places replaced, and every other string scrubbed.
pub(super) fn redacted(
    kind: &str,
    json: &str,
    scrubber: &Scrubber,
    ours: &BTreeSet<String>,
) -> Result<String, serde_json::Error> {
    let scrubbed = |value: &str| {
        let other = scrubber.scrub(value);
        (other != value).then(|| other.into_owned())
    };
    let words = words(kind);
    let mut change = |pointer: &Pointer<'_>, value: &str| match kind_at(kind, pointer) {
        _ if pointer == ["schema"] || ours.contains(value) => None,
        Some(_) if is_ours(value) => None,
        Some(Kind::Word) => Some(one_word(value, &[], scrubber)),
        Some(kind) => Some(scrubber.stand_in(kind, value)),
        // An input may be called `trace`, as a part of the document is.
        None if words.contains(value) => None,
        None => scrubbed(value),
    };
    map_strings(json, &mut change, &mut |key| if words.contains(key) { None } else { scrubbed(key) })
}

/// Words that the schema of a document gives a meaning to: its keys, and the values that it names.
fn words(kind: &str) -> BTreeSet<String> {
    let schema = types::documents::find(kind).map(|kind| kind.schema()).unwrap_or_default();
    let (mut words, mut left) = (BTreeSet::new(), vec![&schema]);
    while let Some(value) = left.pop() {
        if let Some(members) = value.as_object() {
            words.extend(
                members.get("properties").and_then(Value::as_object).into_iter().flat_map(|keys| keys.keys().cloned()),
            );
            let named = members.get("enum").and_then(Value::as_array).into_iter().flatten().chain(members.get("const"));
            words.extend(named.filter_map(Value::as_str).map(str::to_owned));
            left.extend(members.values());
        }
        left.extend(value.as_array().into_iter().flatten());
    }
    words
}

/// Adds the values at the places of a document to what is looked for everywhere.
pub(super) fn gather(
    kind: &str,
    json: &str,
    ours: &BTreeSet<String>,
    terms: &mut Vec<Term>,
) -> Result<(), serde_json::Error> {
    let is_theirs = |value: &str| !is_ours(value) && !ours.contains(value);
    let mut add = |pointer: &Pointer<'_>, value: &str| {
        let kind = kind_at(kind, pointer);
        if let Some(kind) = kind.filter(|kind| is_theirs(value) && is_worth_looking_for(*kind, value)) {
            terms.push(Term { value: value.to_owned(), kind });
            // Reports name files without their folders.
            let file =
                value.rsplit('/').next().filter(|file| matches!(kind, Kind::Path | Kind::Input) && is_telling(file));
            terms.extend(file.map(|file| Term { value: file.to_owned(), kind }));
        }
        None
    };
    map_strings(json, &mut add, &mut |_| None).map(|_| ())
}

/// Names of inputs that ship with the program, which tell nothing of the user.
pub(super) fn names_of_ours(inputs: &types::InputSet) -> BTreeSet<String> {
    let images = inputs.images.iter().map(|image| (&image.name, &image.path));
    let prompts = inputs.prompts.iter().map(|prompt| (&prompt.name, &prompt.path));
    images.chain(prompts).filter(|(_, path)| is_ours(path)).map(|(name, _)| name.clone()).collect()
}

fn kind_at(document: &str, pointer: &Pointer<'_>) -> Option<Kind> {
    let fits = |place: &[&str]| {
        place.len() == pointer.len() && place.iter().zip(pointer).all(|(step, found)| *step == "*" || step == found)
    };
    PLACES.iter().find(|(kind, place, _)| *kind == document && fits(place)).map(|(_, _, kind)| *kind)
}

fn is_ours(value: &str) -> bool {
    let ours = |start: &str| value.strip_prefix(start).is_some_and(|rest| rest.starts_with(':'));
    // A pattern of endings, such as `*.png`.
    let is_pattern = || value.strip_prefix("*.").is_some_and(|ending| ending.chars().all(char::is_alphanumeric));
    OURS.contains(&value) || ["builtin", "synthetic", "config"].into_iter().any(ours) || is_pattern()
}

/// Whether a value means nothing else where it stands in another place.
fn is_worth_looking_for(kind: Kind, value: &str) -> bool {
    match kind {
        Kind::Device => true,
        Kind::Input => value.len() >= 4 && !Stage::ALL.iter().any(|stage| stage.name() == value),
        Kind::Text => value.len() >= 8,
        _ => is_telling(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_in_a_document_there_is() {
        for (kind, _, _) in PLACES {
            assert!(*kind == "config" || types::documents::find(kind).is_some(), "{kind}");
        }
    }

    #[test]
    fn a_value_found_at_its_place_is_replaced_in_every_other() {
        let inputs = r#"{"schema": "llm-perf/inputs/1", "images": [{"name": "tax return.png", "path": "/home/bob/tax return.png"}]}"#;
        let metrics = r#"{"schema": "llm-perf/metrics/1", "samples": [{"input": "tax return.png"}], "run": {"weights": "synthetic"},
            "findings": [{"evidence": ["tax return.png took 1.5 s"]}]}"#;
        let mut terms = Vec::new();
        gather("inputs", inputs, &BTreeSet::new(), &mut terms).unwrap();
        let scrubber = Scrubber::new([0; 32], terms);
        let text = redacted("metrics", metrics, &scrubber, &BTreeSet::new()).unwrap();
        assert!(!text.contains("tax") && text.contains("took 1.5 s") && text.contains("synthetic"), "{text}");
        let name = scrubber.stand_in(Kind::Input, "tax return.png");
        assert_eq!(text.matches(&name).count(), 2, "{text}");
    }

    #[test]
    fn an_input_that_is_called_as_a_part_of_a_document_takes_nothing_from_it() {
        let metrics = r#"{"schema": "llm-perf/metrics/1", "inputs": [{"name": "trace"}], "trace": {"format": "torch"}, "stages": []}"#;
        let mut terms = Vec::new();
        gather("metrics", metrics, &BTreeSet::new(), &mut terms).unwrap();
        let text = redacted("metrics", metrics, &Scrubber::new([0; 32], terms), &BTreeSet::new()).unwrap();
        assert!(text.contains(r#""trace": {"#) && !text.contains(r#""name": "trace""#), "{text}");
    }

    #[test]
    fn what_ships_with_the_program_stays() {
        let inputs = r#"{"dataset_root": "builtin:pages", "images": [{"name": "letter.png", "path": "builtin:pages/letter.png"}]}"#;
        let ours = ["letter.png".to_owned()].into();
        let scrubber = Scrubber::new([0; 32], Vec::new());
        assert_eq!(redacted("inputs", inputs, &scrubber, &ours).unwrap(), inputs);
    }
}
