//! The quick reading of a network gives what the thorough one gives, for every built-in model.

use llm_perf_meter::hardware::Catalogue;
use llm_perf_meter::{Estimator, Roofline, Subject, WorkloadSettings, matrix_dtypes, predict, summarise};
use network::config::ModelConfig;
use network::{Model, PRESETS, Preset};
use types::{AttentionKind, DType, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

fn settings(model: &Model) -> WorkloadSettings {
    WorkloadSettings {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 1,
        batch: 1,
        dtype: Some("bf16".into()),
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        base_size: Some(640),
        image_size: Some(640),
        crop_mode: None,
        crop_grid: Some([2, 1]),
        image_pixels: None,
        text_tokens: Some(if model.takes_tokens() { model.prompt_length().unwrap_or(37) } else { 0 }),
        seq_len: None,
        max_new_tokens: None,
        decode_steps: Some(if model.takes_tokens() { 5 } else { 0 }),
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

/// Checks the estimate of `settings` against the prediction.
fn check(name: &str, settings: &WorkloadSettings) {
    check_config(name, Preset::find(name).unwrap().config().unwrap(), settings);
}

fn check_config(name: &str, config: ModelConfig, settings: &WorkloadSettings) {
    let model = Model::new(&config);
    let first = self::settings(&model).resolve(&model, DType::Bf16).unwrap();
    let workload = settings.resolve(&model, DType::Bf16).unwrap();
    // Layers are compared on another workload than they are estimated for.
    let estimate = Estimator::new(&model, &first).unwrap().estimate(&workload).unwrap();
    let prediction = predict(&model, &workload).unwrap();
    assert_eq!(estimate.prefill_cost(), prediction.prefill.total(), "{name}: prefill");
    let decode = prediction.decode.as_ref().map(|decode| decode.total()).unwrap_or_default();
    assert_eq!(estimate.decode_cost(), decode, "{name}: decode");
    assert_eq!(estimate.matrix_dtypes(), matrix_dtypes(&prediction), "{name}");

    let catalogue = Catalogue::built_in().unwrap();
    let roofline = Roofline::new(catalogue.find("h200").unwrap(), estimate.matrix_dtypes(), None).unwrap();
    let subject = Subject {
        model_id: name,
        config_path: name,
        config: &config,
        model: &model,
        workload: &workload,
        prediction: &prediction,
        tool_version: "0",
    };
    let report = summarise(&subject, &roofline, std::slice::from_ref(&roofline));
    let times = estimate.times(&roofline);
    let near = |quick: f64, thorough: f64| (quick - thorough).abs() <= 1e-9 * thorough.abs();
    let prefill = &report.stages["prefill"];
    assert!(near(times.prefill.total.as_millis(), prefill.time_ms), "{name}: {times:?} {}", prefill.time_ms);
    assert_eq!(times.prefill.bound().name(), prefill.bound, "{name}");
    if let Some(time) = times.decode {
        let decode = &report.stages["decode"];
        assert!(near(time.total.as_millis(), decode.time_ms), "{name}: {times:?} {}", decode.time_ms);
        assert_eq!(time.bound().name(), decode.bound, "{name}");
    }
    let footprint = estimate.footprint();
    assert_eq!(footprint.total(), report.memory.total_bytes, "{name}");
    assert_eq!(footprint.activations, report.memory.activations_peak_bytes, "{name}");
    assert_eq!(footprint.fits(roofline.hardware().memory_bytes), report.memory.fits, "{name}");
}

#[test]
fn an_estimate_equals_the_prediction_for_every_built_in_model() {
    for preset in PRESETS {
        let model = Model::new(&preset.config().unwrap());
        check(preset.name, &settings(&model));
    }
}

#[test]
fn it_does_where_devices_share_a_quantised_model() {
    let quantisation = Quantisation {
        weights: Some(DType::Int4),
        group: Some(32),
        zero_points: true,
        activations: None,
        kv: Some(DType::Fp8),
    };
    // One of each way to attend, to mix experts and to name matrices.
    for name in [
        "deepseek-ocr-tiny",
        "llama-3-8b",
        "gemma-2-9b",
        "phi-3.5-mini",
        "mixtral-8x7b",
        "gpt-oss-20b",
        "deepseek-v2-lite",
    ] {
        let model = Model::new(&Preset::find(name).unwrap().config().unwrap());
        for parallel in [
            Parallel::default(),
            Parallel { tensor: 2, ..Parallel::default() },
            Parallel { expert: 4, ..Parallel::default() },
            Parallel { tensor: 2, expert: 2, pipeline: 2 },
            Parallel { pipeline: 4, ..Parallel::default() },
        ] {
            let shared = WorkloadSettings { batch: 4, quantisation, parallel, ..settings(&model) };
            // Not every model can be shared in every way.
            if predict(&model, &shared.resolve(&model, DType::Bf16).unwrap()).is_ok() {
                check(name, &shared);
            }
        }
    }
}

#[test]
fn it_does_for_long_prompts_and_many_steps_past_any_window() {
    for preset in PRESETS {
        // The largest takes its time, and has no window.
        if preset.name == "deepseek-v3" {
            continue;
        }
        let model = Model::new(&preset.config().unwrap());
        if model.takes_tokens() {
            let long = WorkloadSettings {
                batch: 3,
                attention: AttentionKind::Flash,
                logits: LogitsKind::Last,
                text_tokens: Some(model.prompt_length().unwrap_or(3_000)),
                decode_steps: Some(model.most_tokens().map_or(4_000, |most| most - 1)),
                crop_grid: Some([1, 1]),
                ..settings(&model)
            };
            check(preset.name, &long);
        }
    }
}

#[test]
fn an_estimate_of_sparse_attention_equals_the_prediction_before_and_behind_what_it_keeps() {
    let reference: serde_json::Value = serde_json::from_str(include_str!("fixtures/transformers.json")).unwrap();
    for name in ["deepseek-v3.2", "glm-5"] {
        let mut config = reference["cases"][name]["config"].clone();
        config["num_hidden_layers"] = 5.into();
        config["mlp_layer_types"] = serde_json::Value::Null;
        let config = || ModelConfig::from_json(name, &config.to_string()).unwrap();
        // 2,048 positions are kept.
        for (prompt, steps) in [(100, 30), (2000, 100), (4000, 20)] {
            for attention in [AttentionKind::Eager, AttentionKind::Flash] {
                let all = settings(&Model::new(&config()));
                let (text_tokens, decode_steps) = (Some(prompt), Some(steps));
                check_config(name, config(), &WorkloadSettings { text_tokens, decode_steps, attention, ..all });
            }
        }
    }
}
