//! What becomes of a configuration when one of its fields is taken away: an error, something that is said, or the same parameters and
//! caches. FLOPs are not compared, and fields of objects in lists are not taken away.

use std::collections::BTreeMap;

use network::config::{ConfigFile, ModelConfig};
use network::{CacheLayout, Model, PRESETS};
use serde_json::{Map, Value};

/// Fields that change what is computed, or what it is called, and no count.
const NO_COUNTS: &[&str] = &["architectures", "dtype", "torch_dtype", "quantization_config"];

fn cases() -> BTreeMap<String, Value> {
    let mut cases: BTreeMap<String, Value> =
        PRESETS.iter().map(|preset| (preset.name.to_owned(), serde_json::from_str(preset.config).unwrap())).collect();
    for text in [include_str!("fixtures/transformers.json"), include_str!("fixtures/family-flops.json")] {
        let document: Value = serde_json::from_str(text).unwrap();
        let listed = document["cases"].as_object().unwrap();
        cases.extend(listed.iter().map(|(name, case)| (name.clone(), case["config"].clone())));
    }
    cases
}

/// The configuration without each of its fields, and without each of its parts' fields, by path.
fn without_one(config: &Map<String, Value>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value) in config {
        if NO_COUNTS.contains(&name.as_str()) {
            continue;
        }
        let mut less = config.clone();
        less.remove(name);
        found.push((name.clone(), Value::Object(less)));
        let inner = value.as_object().filter(|_| name.ends_with("_config"));
        for (path, part) in inner.map(without_one).unwrap_or_default() {
            let mut less = config.clone();
            less.insert(name.clone(), part);
            found.push((format!("{name}.{path}"), Value::Object(less)));
        }
    }
    found
}

fn numbers(config: &ModelConfig) -> (u64, Option<CacheLayout>) {
    let model = Model::new(config);
    (model.blueprint().parameters_under(""), model.cache().cloned())
}

#[test]
fn a_field_that_is_missing_is_an_error_or_is_said_or_changes_no_parameter_and_no_cache() {
    let (mut silent, mut tried) = (Vec::new(), 0);
    for (name, config) in cases() {
        let read = |config: &Value| ConfigFile::from_json(&name, &config.to_string());
        let whole = read(&config).unwrap();
        let mut counted = None;
        for (path, less) in without_one(config.as_object().unwrap()) {
            tried += 1;
            let Ok(found) = read(&less) else { continue };
            let is_said = found.assumed.iter().any(|said| whole.assumed.get(said.0) != Some(said.1));
            if found.config == whole.config || is_said {
                continue;
            }
            let counted = counted.get_or_insert_with(|| numbers(&whole.config));
            let now = numbers(&found.config);
            if *counted != now {
                silent.push(format!("{name} without {path}: {} parameters become {}", counted.0, now.0));
            }
        }
    }
    assert!(silent.is_empty(), "{} of {tried}:\n{}", silent.len(), silent.join("\n"));
    assert!(tried > 3_000, "{tried}");
}
