//! DeepSeek-OCR as the meter sees it, for comparison with counts of the published implementation.

use llm_perf_meter::{Prediction, WorkloadSettings, predict};
use network::{Model, Preset};
use types::{AttentionKind, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

/// What the flop counter counts as matrix work and the meter as vector work: the rotary angles, 128 FLOPs a position
/// and layer. It is 3e-7 of a prefill and 1.3e-6 of a decode step.
const TOLERANCE: f64 = 1e-5;

pub(crate) fn model() -> Model {
    Model::new(&Preset::find("deepseek-ocr").unwrap().config().unwrap())
}

pub(crate) fn settings(crop_grid: [u64; 2], seq_len: u64, steps: u64) -> WorkloadSettings {
    WorkloadSettings {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 1,
        batch: 1,
        dtype: None,
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        base_size: Some(1024),
        image_size: Some(640),
        crop_mode: None,
        crop_grid: Some(crop_grid),
        image_pixels: None,
        text_tokens: None,
        seq_len: Some(seq_len),
        max_new_tokens: None,
        decode_steps: Some(steps),
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

pub(crate) fn metered(model: &Model, settings: &WorkloadSettings) -> Prediction {
    let workload = settings.resolve(model, types::DType::Bf16).unwrap();
    predict(model, &workload).unwrap()
}

pub(crate) fn assert_close(what: &str, found: f64, wanted: f64) {
    let error = (found - wanted).abs() / wanted;
    assert!(error < TOLERANCE, "{what}: {found} against {wanted}, off by {error:e}");
}
