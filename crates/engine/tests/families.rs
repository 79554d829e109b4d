//! The engine against transformers, family by family, on the same random weights.

mod expected;

use std::path::{Path, PathBuf};

use expected::worst;
use llm_perf_engine::{Checkpoint, Features, PromptData, Session};
use network::config::ModelConfig;
use network::{Model, Preset};
use safetensors::Dtype;
use types::DType;

/// What single precision and another order of sums leave room for; logits are up to ten.
const TOLERANCE: f32 = 1e-3;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/families").join(name)
}

fn session(name: &str) -> Session {
    let text = std::fs::read_to_string(folder(name).join("config.json")).unwrap();
    let model = Model::new(&ModelConfig::from_json(name, &text).unwrap());
    Session::load(model, &Checkpoint::Safetensors(folder(name)), DType::Fp32).unwrap()
}

/// Largest difference of logits at prefill and at decode.
fn differences(name: &str) -> [f32; 2] {
    let session = session(name);
    assert_eq!(session.weights().unused(), &[] as &[String], "{name}");
    let expected = expected::load(&folder(name).join("expected.safetensors"));
    let ids = expected["ids"].longs();
    let length = expected["prefill_logits"].dims[1];
    let (mut prompt, rest) = (ids[..length].to_vec(), &ids[length..]);
    // Of one sequence: features of a sound or a picture, or tokens.
    let given = expected.get("source");
    assert!(given.is_none_or(|given| given.dims[0] == 1), "{name}");
    let features = given.filter(|given| given.dtype == Dtype::F32);
    let source = features.map(|given| Features { dims: [given.dims[1], given.dims[2]], values: given.floats() });
    if let Some(start) = session.model().start_token() {
        // The decoder starts from its token; the prompt is the encoder's.
        assert_eq!(prompt, [start as i64], "{name}");
        prompt = given.filter(|given| given.dtype != Dtype::F32).map_or(Vec::new(), |given| given.longs());
    }
    let mut run = session.start(ids.len());
    let prompt = PromptData { image_mask: vec![false; prompt.len()], ids: prompt, images: None, source };
    let prefill = run.prefill(&prompt, false).unwrap();
    assert_eq!(prefill.logits.dims(), expected["prefill_logits"].dims, "{name}");
    let prefill = worst(&prefill.logits, &expected["prefill_logits"].floats());
    let mut decode = 0f32;
    for (step, id) in rest.iter().enumerate() {
        let logits = run.step(*id).unwrap().logits;
        decode = decode.max(worst(&logits, &expected["decode_logits"].row(step)));
    }
    println!("{name}: prefill logits differ by {prefill:e}, decode logits by {decode:e}");
    [prefill, decode]
}

macro_rules! families {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            let [prefill, decode] = differences($name);
            assert!(prefill < TOLERANCE && decode < TOLERANCE, "{prefill:e}, {decode:e}");
        })*
    };
}

families! {
    logits_of_llama_equal_transformers: "llama",
    logits_of_qwen2_equal_transformers: "qwen2",
    logits_of_qwen3_moe_equal_transformers: "qwen3-moe",
    logits_of_deepseek_v2_equal_transformers: "deepseek-v2",
    logits_of_deepseek_v3_equal_transformers: "deepseek-v3",
    logits_of_mixtral_equal_transformers: "mixtral",
    logits_of_phi3_equal_transformers: "phi3",
    logits_of_gemma2_equal_transformers: "gemma2",
    logits_of_gemma3_equal_transformers: "gemma3",
    logits_of_gpt_oss_equal_transformers: "gpt-oss",
    logits_of_mamba2_equal_transformers: "mamba2",
    logits_of_bamba_equal_transformers: "bamba",
    logits_of_lfm2_equal_transformers: "lfm2",
    logits_of_qwen3_5_equal_transformers: "qwen3.5",
    logits_of_qwen3_5_moe_equal_transformers: "qwen3.5-moe",
    logits_of_t5_equal_transformers: "t5",
    logits_of_flan_t5_equal_transformers: "flan-t5",
    logits_of_mt5_equal_transformers: "mt5",
    logits_of_umt5_equal_transformers: "umt5",
    logits_of_whisper_equal_transformers: "whisper",
    logits_of_llama4_equal_transformers: "llama4",
    logits_of_deepseek_v3_2_equal_transformers: "deepseek-v3.2",
    logits_of_glm_with_an_indexer_equal_transformers: "glm-dsa",
    logits_of_mllama_with_a_picture_equal_transformers: "mllama",
}

#[test]
fn what_can_only_be_modelled_is_refused_by_name_before_weights_are_loaded() {
    let refused = |config: &ModelConfig| {
        let model = Model::new(config);
        // There is no such checkpoint: it must not matter.
        let nowhere = Checkpoint::Safetensors("no/such/folder".into());
        Session::load(model, &nowhere, DType::Fp32).unwrap_err().to_string()
    };
    let refusal = |name: &str| refused(&Preset::find(name).unwrap().config().unwrap());
    let cases = include_str!("../../meter/tests/fixtures/transformers.json");
    let cases: serde_json::Value = serde_json::from_str(cases).unwrap();
    let mut shared = cases["cases"]["glm-5"]["config"].clone();
    let layers = shared["num_hidden_layers"].as_u64().unwrap() as usize;
    shared["indexer_types"] = (0..layers).map(|layer| if layer % 2 == 0 { "full" } else { "shared" }).collect();
    let shared = refused(&ModelConfig::from_json("glm-5", &shared.to_string()).unwrap());
    let part = "sparse attention over positions chosen by another layer can only be modelled";
    assert!(shared.contains(part), "{shared}");
    let phi = refusal("phi-3.5-mini");
    assert!(phi.contains("does not support Phi3ForCausalLM: rotary scaling `longrope` can only be modelled"), "{phi}");
    for (name, part) in [
        ("qwen3.5-27b", "prompts with images"),
        ("deepseek-v4-flash", "compressed attention can only be modelled"),
        ("deepseek-v4-flash", "hyper-connections can only be modelled"),
        ("nemotron-3-nano", "its logits have not been checked against transformers"),
    ] {
        let text = refusal(name);
        assert!(text.contains(part), "{name}: {text}");
    }
    let qwen = refusal("qwen2.5-vl-7b");
    assert!(qwen.contains("does not support Qwen2_5_VLForConditionalGeneration"), "{qwen}");
    assert!(qwen.contains("--engine torch"), "{qwen}");
}

#[test]
fn an_encoder_of_sound_needs_features_and_its_decoder_ends_with_its_positions() {
    let session = session("whisper");
    let mut run = session.start(100);
    let tokens = PromptData { ids: vec![1, 2], image_mask: vec![false; 2], images: None, source: None };
    let error = run.prefill(&tokens, false).unwrap_err().to_string();
    assert!(error.contains("needs features in its prompt"), "{error}");
    let short = Features { dims: [10, 20], values: vec![0.0; 200] };
    let error = run.prefill(&PromptData { source: Some(short), ..tokens.clone() }, false).unwrap_err().to_string();
    assert!(error.contains("10 audio positions; this encoder takes 14"), "{error}");
    let source = Some(Features { dims: [10, 28], values: vec![0.0; 280] });
    run.prefill(&PromptData { source, ..tokens }, false).unwrap();
    (1..8).for_each(|_| drop(run.step(5).unwrap()));
    assert_eq!(run.step(5).unwrap_err().to_string(), "9 positions do not fit the KV cache of 8");
}
