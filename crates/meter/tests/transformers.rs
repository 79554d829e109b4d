//! Whole models of every family, at full depth, against transformers on the meta device.
//!
//! How the figures were counted is said in `fixtures/count_transformers.py`.

use llm_perf_meter::predict;
use network::config::ModelConfig;
use network::{CacheKind, Model};
use serde_json::Value;
use types::{AttentionKind, DType, LogitsKind, PageKind, RoutingKind, Workload};

const TOLERANCE: f64 = 1e-5;

fn workload(prompt: u64) -> Workload {
    Workload {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 0,
        batch: 1,
        image: None,
        text_tokens: prompt,
        seq_len: prompt,
        max_new_tokens: 2,
        decode_steps: 1,
        dtype: DType::Bf16,
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        quantisation: Default::default(),
        parallel: Default::default(),
    }
}

/// What is wrong with one case.
fn problems(name: &str, case: &Value) -> Vec<String> {
    let config = match ModelConfig::from_json(name, &case["config"].to_string()) {
        Ok(config) => config,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let mut wrong = Vec::new();
    if config.facts().class != case["class"] {
        wrong.push(format!("{name}: class {} against {}", config.facts().class, case["class"]));
    }
    let model = Model::new(&config);
    let prompt = case["prompt"].as_u64().unwrap();
    let prediction = match predict(&model, &workload(prompt)) {
        Ok(prediction) => prediction,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    if prediction.parameters != case["parameters"].as_u64().unwrap() {
        wrong.push(format!("{name}: {} parameters against {}", prediction.parameters, case["parameters"]));
    }
    let step = prediction.decode.as_ref().map_or(0.0, |decode| decode.total().flops_matrix.as_f64());
    for (what, found) in [("prefill", prediction.prefill.total().flops_matrix.as_f64()), ("decode_step", step)] {
        let wanted = case[what].as_f64().unwrap();
        if (found - wanted).abs() > TOLERANCE * wanted {
            wrong.push(format!("{name}: {what} {found} against {wanted}, {:+e}", (found - wanted) / wanted));
        }
    }
    wrong
}

#[test]
fn parameters_and_flops_of_every_family_equal_those_of_transformers() {
    let reference: Value = serde_json::from_str(include_str!("fixtures/transformers.json")).unwrap();
    let cases = reference["cases"].as_object().unwrap();
    assert!(cases.len() >= 200, "only {} cases", cases.len());
    let wrong: Vec<String> = cases.iter().flat_map(|(name, case)| problems(name, case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn caches_keep_as_many_elements_as_transformers_allocates() {
    let reference: Value = serde_json::from_str(include_str!("fixtures/transformers.json")).unwrap();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (name, case) in reference["cases"].as_object().unwrap() {
        let config = ModelConfig::from_json(name, &case["config"].to_string()).unwrap();
        let model = Model::new(&config);
        // Encoders keep nothing.
        if model.cache().is_none() {
            continue;
        }
        let positions = model.prefilled(case["prompt"].as_u64().unwrap()).and(1);
        let prompt = positions.own;
        // A prompt and a step; transformers keeps one position less of a window than the step itself sees.
        let windows =
            model.cache().unwrap().layers.iter().any(|layer| layer.window.is_some_and(|window| window <= prompt));
        let kept = model.cache().unwrap().elements(positions);
        if let Some(wanted) = case.get("entries") {
            let entries: u64 = model.cache().unwrap().layers.iter().map(|layer| layer.entries).sum();
            assert_eq!(entries * prompt, wanted.as_u64().unwrap(), "{name}");
        }
        let indexed = model.blueprint().modules().any(|(_, module)| module.name == "indexer");
        // Falcon keeps a copy of each key and value for every head; engines keep one for the group.
        let copied = name == "falcon-40b";
        // Keys and values of the sequence itself, and those of an encoder.
        let wanted: u64 = ["cache", "cross"].iter().filter_map(|part| case[part].as_u64()).sum();
        if !indexed && !windows && !copied {
            compared += 1;
            if kept != wanted {
                wrong.push(format!("{name}: {kept} against {wanted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 130, "only {compared} caches");
}

#[test]
fn states_keep_as_many_elements_as_transformers_allocates() {
    let reference: Value = serde_json::from_str(include_str!("fixtures/transformers.json")).unwrap();
    let mut compared = 0;
    for (name, case) in reference["cases"].as_object().unwrap() {
        let Some(wanted) = case.get("state").and_then(Value::as_array) else { continue };
        let config = ModelConfig::from_json(name, &case["config"].to_string()).unwrap();
        let model = Model::new(&config);
        let layers = &model.cache().unwrap().layers;
        let kept = [0, 1].map(|at: usize| layers.iter().map(|layer| layer.state[at]).sum::<u64>());
        assert_eq!(kept.to_vec(), wanted.iter().map(|size| size.as_u64().unwrap()).collect::<Vec<_>>(), "{name}");
        compared += usize::from(layers.iter().any(|layer| layer.kind == CacheKind::StateSpace));
    }
    assert!(compared >= 11, "only {compared} models with state-space layers");
}

#[test]
fn decode_steps_of_every_kind_of_cache_are_summed_past_windows_chunks_and_chosen_entries() {
    let reference: Value = serde_json::from_str(include_str!("fixtures/transformers.json")).unwrap();
    // A step sees 512 entries of four positions in DeepSeek-V4, and 2,048 positions in DeepSeek-V3.2: the last of these steps
    // are past them.
    for (name, prompt) in [
        ("deepseek-v4-flash", 1990),
        ("deepseek-v3.2", 2000),
        ("nemotron-3-nano", 100),
        ("llama-4-chunks", 10),
        ("gemma-3n-e4b", 500),
    ] {
        let config = ModelConfig::from_json(name, &reference["cases"][name]["config"].to_string()).unwrap();
        let model = Model::new(&config);
        for attention in [AttentionKind::Eager, AttentionKind::Flash] {
            let all = Workload { decode_steps: 80, attention, logits: LogitsKind::Last, ..workload(prompt) };
            let steps = predict(&model, &all).unwrap_or_else(|error| panic!("{name}: {error}")).decode.unwrap();
            let last = Workload { decode_steps: 1, seq_len: prompt + 79, ..all };
            let last = predict(&model, &last).unwrap().decode.unwrap();
            let summed: types::Cost = steps.ops.iter().map(|op| op.cost.at(79)).sum();
            assert_eq!(summed, last.total(), "{name} {attention:?}");
        }
    }
}
