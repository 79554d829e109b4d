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
    let texts: Vec<_> = cases.into_iter().filter(|(_, case)| case.get("picture").is_none()).collect();
    assert!(texts.len() >= 13, "only {} families", texts.len());
    for (name, case) in texts {
        let model = model(&name, &case);
        let prediction = predict(&model, &workload(case["prompt"].as_u64().unwrap(), AttentionKind::Eager)).unwrap();
        assert_eq!(prediction.parameters, case["parameters"].as_u64().unwrap(), "{name}");
        let prefill = prediction.prefill.total().flops_matrix.as_f64();
        assert_close(&format!("{name} prefill"), prefill, case["prefill"].as_f64().unwrap());
        let step = prediction.decode.unwrap().total().flops_matrix.as_f64();
        assert_close(&format!("{name} decode"), step, case["decode_step"].as_f64().unwrap());
    }
}

#[test]
fn images_become_patches_and_tokens_by_the_models_own_rule_and_cost_what_was_counted() {
    let seeing: Vec<_> = cases().into_iter().filter(|(_, case)| case.get("picture").is_some()).collect();
    assert_eq!(seeing.len(), 5);
    for (name, case) in seeing {
        let pair = |key: &str| [case[key][0].as_u64().unwrap(), case[key][1].as_u64().unwrap()];
        let model = model(&name, &case);
        let image = model.resized(pair("picture")).unwrap();
        assert_eq!((image.pixels, image.image_tokens), (Some(pair("resized")), case["image_tokens"].as_u64().unwrap()));
        let text = workload(case["prompt"].as_u64().unwrap(), AttentionKind::Eager);
        let text_tokens = text.seq_len - image.image_tokens;
        let workload = Workload { num_pages: 1, image: Some(image), text_tokens, decode_steps: 0, ..text };
        let prediction = predict(&model, &workload).unwrap();
        assert_eq!(prediction.parameters, case["parameters"].as_u64().unwrap(), "{name}");
        let vision = prediction.prefill.ops.iter().filter(|op| model.blueprint().stage_of(op.module).is_some());
        let vision: f64 = vision.map(|op| op.cost.flops_matrix.as_f64()).sum();
        assert_close(&format!("{name} vision"), vision, case["vision"].as_f64().unwrap());
        let prefill = prediction.prefill.total().flops_matrix.as_f64();
        assert_close(&format!("{name} prefill"), prefill, case["prefill"].as_f64().unwrap());
    }
}

#[test]
fn a_decode_step_reads_what_the_cache_keeps_once_in_either_form_of_attention() {
    for (name, case) in cases().into_iter().filter(|(_, case)| case.get("picture").is_none()) {
        let model = model(&name, &case);
        let prompt = case["prompt"].as_u64().unwrap();
        let kept = DType::Fp32.bytes_for(model.cache().unwrap().elements(model.prefilled(prompt).and(1)));
        for attention in [AttentionKind::Eager, AttentionKind::Flash] {
            let step = predict(&model, &workload(prompt, attention)).unwrap().decode.unwrap();
            assert_eq!(step.total().bytes.kv_read, kept, "{name} {attention:?}");
        }
    }
}

#[test]
fn one_token_at_a_time_latent_attention_is_cheaper_without_expanding_the_cache() {
    let (name, case) = cases().into_iter().find(|(name, _)| name == "deepseek_v3").unwrap();
    let model = model(&name, &case);
    let step = |attention| predict(&model, &workload(24, attention)).unwrap().decode.unwrap().total().flops_matrix;
    // Four layers, 25 positions, four heads. Expanded: 25 latents of 24 to 4 * (12 + 10), then pairs of 20 and 10.
    // Absorbed: the query's 12 to 24 and the result's 24 to 10 for each head, then pairs of 24 + 8 and 24.
    let expanded: u128 = 4 * 2 * (25 * 24 * 4 * 22 + 4 * 25 * (20 + 10));
    let absorbed: u128 = 4 * 2 * (4 * (12 * 24 + 24 * 10) + 4 * 25 * (32 + 24));
    assert_eq!(step(AttentionKind::Eager).get() - step(AttentionKind::Flash).get(), expanded - absorbed);
}
