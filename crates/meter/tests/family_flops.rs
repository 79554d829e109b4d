//! FLOPs of small-width models of every family against those a flop counter counted on transformers.

use llm_perf_meter::predict;
use network::Model;
use network::config::ModelConfig;
use serde_json::Value;
use types::{AttentionKind, DType, LogitsKind, PageKind, RoutingKind, Workload};

const TOLERANCE: f64 = 1e-5;

fn workload(prompt: u64, attention: AttentionKind) -> Workload {
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
        dtype: DType::Fp32,
        attention,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        quantisation: Default::default(),
        parallel: Default::default(),
    }
}

fn assert_close(what: &str, found: f64, wanted: f64) {
    let error = (found - wanted).abs() / wanted;
    assert!(error < TOLERANCE, "{what}: {found} against {wanted}, off by {error:e}");
}

fn cases() -> Vec<(String, Value)> {
    let text = include_str!("fixtures/family-flops.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    let cases = reference["cases"].as_object().unwrap();
    cases.iter().map(|(name, case)| (name.clone(), case.clone())).collect()
}

fn model(name: &str, case: &Value) -> Model {
    Model::new(&ModelConfig::from_json(name, &case["config"].to_string()).unwrap())
}

#[test]
fn prefill_and_decode_of_every_family_equal_the_flop_counter() {
    let cases = cases();
    assert!(cases.len() >= 13, "only {} families", cases.len());
    for (name, case) in cases {
        let model = model(&name, &case);
        let prediction = predict(&model, &workload(case["prompt"].as_u64().unwrap(), AttentionKind::Eager)).unwrap();
        assert_eq!(prediction.parameters, case["parameters"].as_u64().unwrap(), "{name}");
        let prefill = prediction.prefill.total().flops_matrix.as_f64();
        assert_close(&format!("{name} prefill"), prefill, case["prefill"].as_f64().unwrap());
        let step = prediction.decode.unwrap().total().flops_matrix.as_f64();
        assert_close(&format!("{name} decode"), step, case["decode_step"].as_f64().unwrap());
    }
}
