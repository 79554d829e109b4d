//! What workload settings resolve to, and which ones are refused.

use llm_perf_meter::{WorkloadSettings, predict};
use network::{Model, Preset};
use types::{AttentionKind, DType, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

fn model(name: &str) -> Model {
    Model::new(&Preset::find(name).unwrap().config().unwrap())
}

fn settings() -> WorkloadSettings {
    WorkloadSettings {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::MixedLayout,
        num_pages: 1,
        batch: 1,
        dtype: None,
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        base_size: Some(1024),
        image_size: Some(640),
        crop_mode: Some(true),
        crop_grid: Some([1, 2]),
        image_pixels: None,
        text_tokens: Some(19),
        seq_len: None,
        max_new_tokens: Some(512),
        decode_steps: None,
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

fn refusal(settings: &WorkloadSettings) -> String {
    settings.resolve(&model("deepseek-ocr"), DType::Bf16).unwrap_err().to_string()
}

#[test]
fn a_workload_past_what_can_be_counted_is_an_error_and_no_number() {
    let model = model("deepseek-ocr");
    let huge = WorkloadSettings { batch: 1_000_000, text_tokens: Some(90_000_000), ..settings() };
    let workload = huge.resolve(&model, DType::Bf16).unwrap();
    let error = predict(&model, &workload).unwrap_err().to_string();
    assert!(error.contains("more than 18 exabytes"), "{error}");
}

#[test]
fn the_standard_page_is_512_tokens() {
    let workload = settings().resolve(&model("deepseek-ocr"), DType::Bf16).unwrap();
    assert_eq!(workload.image.unwrap().image_tokens, 493);
    assert_eq!((workload.seq_len, workload.decode_steps, workload.dtype), (512, 511, DType::Bf16));
}

#[test]
fn setting_the_whole_sets_the_text() {
    let whole = WorkloadSettings { seq_len: Some(600), text_tokens: None, ..settings() };
    assert_eq!(whole.resolve(&model("deepseek-ocr"), DType::Bf16).unwrap().text_tokens, 107);
}

#[test]
fn another_grid_keeps_the_text() {
    let wide = WorkloadSettings { crop_grid: Some([2, 3]), ..settings() };
    let workload = wide.resolve(&model("deepseek-ocr"), DType::Bf16).unwrap();
    assert_eq!((workload.text_tokens, workload.seq_len), (19, 922));
}

#[test]
fn a_model_without_images_ignores_them() {
    let workload = settings().resolve(&model("llama-3-8b"), DType::Bf16).unwrap();
    assert_eq!((workload.image, workload.seq_len), (None, 19));
}

#[test]
fn a_network_without_tokens_wants_none() {
    let resnet = model("dummy-shallow-resnet");
    let none = WorkloadSettings { text_tokens: Some(0), max_new_tokens: Some(1), ..settings() };
    assert_eq!(none.resolve(&resnet, DType::Fp32).unwrap().seq_len, 0);
    let error = settings().resolve(&resnet, DType::Fp32).unwrap_err().to_string();
    assert_eq!(error, "workload.seq_len is 19; this model expects 0");
}

#[test]
fn contradictions_are_refused_with_their_numbers() {
    let both = WorkloadSettings { seq_len: Some(600), ..settings() };
    let text = "workload.seq_len and workload.text_tokens contradict each other: \
                600 tokens minus 493 image tokens is 107, not 19";
    assert_eq!(refusal(&both), text);
    let steps = WorkloadSettings { decode_steps: Some(3), ..settings() };
    assert!(refusal(&steps).contains("512 tokens take 511 decode steps, not 3"), "{}", refusal(&steps));
    let tiles = WorkloadSettings { crop_mode: Some(false), ..settings() };
    assert!(refusal(&tiles).contains("tiling is off, but the grid is 1 x 2"), "{}", refusal(&tiles));
}

#[test]
fn values_out_of_range_name_the_key() {
    let case = |change: fn(&mut WorkloadSettings)| {
        let mut changed = settings();
        change(&mut changed);
        refusal(&changed)
    };
    assert!(case(|s| s.batch = 0).contains("workload.batch is 0"));
    assert!(case(|s| s.num_pages = 0).contains("workload.num_pages is 0"));
    assert!(case(|s| s.dtype = Some("fp12".into())).contains("workload.dtype is `fp12`"));
    assert!(case(|s| s.dtype = Some("int64".into())).contains("workload.dtype is int64"));
    assert!(case(|s| s.seq_len = Some(10)).contains("at least the 493 image tokens"));
    assert!(case(|s| s.base_size = Some(1000)).contains("base_size must be a positive multiple of the patch size 16"));
    assert!(case(|s| s.base_size = None).contains("workload.base_size is not set"));
    assert!(case(|s| s.crop_grid = Some([0, 2])).contains("crop_grid must be at least [1, 1]"));
    assert!(case(|s| s.crop_grid = Some([9, 9])).contains("more than 64 tiles"));
    assert!(case(|s| s.crop_grid = Some([u64::MAX, 2])).contains("more than 64 tiles"));
    assert!(case(|s| s.max_new_tokens = Some(0)).contains("workload.max_new_tokens is 0"));
    assert!(case(|s| s.text_tokens = Some(u64::MAX)).contains("workload.seq_len is"));
}
