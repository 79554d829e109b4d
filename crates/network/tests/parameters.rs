//! Parameters of the built-in models against those transformers counts from the same configurations.

use llm_perf_network::{Model, PRESETS};
use serde_json::Value;

/// Networks transformers does not have; they are held to other figures elsewhere.
const OURS: [&str; 4] = ["deepseek-ocr", "deepseek-ocr-tiny", "deepseek-ocr-small", "dummy-shallow-resnet"];

#[test]
fn parameters_equal_those_transformers_counts() {
    let reference: Value = serde_json::from_str(include_str!("fixtures/parameters.json")).unwrap();
    let models = reference["models"].as_object().unwrap();
    let mut compared = 0;
    for preset in PRESETS.iter().filter(|preset| !OURS.contains(&preset.name)) {
        let wanted = models.get(preset.name).unwrap_or_else(|| panic!("{} was not counted", preset.name));
        let model = Model::new(&preset.config().unwrap());
        let under = |path: &str| model.blueprint().parameters_under(path);
        assert_eq!(under(""), wanted["total"].as_u64().unwrap(), "{}", preset.name);
        for (key, suffixes) in [("layer_0", ["layers.0", "block.0"]), ("layer_1", ["layers.1", "block.1"])] {
            let is_layer = |path: &str| suffixes.iter().any(|suffix| path.ends_with(suffix));
            let is_decoder = |path: &str| is_layer(path) && !path.contains("vision") && !path.contains("visual");
            let path = model.blueprint().modules().find(|(_, entry)| is_decoder(&entry.path)).unwrap().1.path.clone();
            assert_eq!(under(&path), wanted[key].as_u64().unwrap(), "{} {path}", preset.name);
        }
        compared += 1;
    }
    assert!(compared >= 12, "only {compared} models were compared");
}

#[test]
fn every_counted_model_is_built_in() {
    let reference: Value = serde_json::from_str(include_str!("fixtures/parameters.json")).unwrap();
    for name in reference["models"].as_object().unwrap().keys() {
        assert!(PRESETS.iter().any(|preset| preset.name == name), "{name}");
    }
}
