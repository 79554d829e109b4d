//! FLOPs of the metered network against those counted on the published implementation.

use std::path::PathBuf;

use llm_perf_meter::{Prediction, WorkloadSettings, predict};
use network::{Model, Preset};
use serde_json::Value;
use types::{AttentionKind, Bytes, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind, Stage};

/// What the flop counter counts as matrix work and the meter as vector work: the rotary angles, 128 FLOPs a position
/// and layer. It is 3e-7 of a prefill and 1.3e-6 of a decode step.
const TOLERANCE: f64 = 1e-5;

fn model() -> Model {
    Model::new(&Preset::find("deepseek-ocr").unwrap().config().unwrap())
}

fn settings(crop_grid: [u64; 2], seq_len: u64, steps: u64) -> WorkloadSettings {
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

fn metered(model: &Model, settings: &WorkloadSettings) -> Prediction {
    let workload = settings.resolve(model, types::DType::Bf16).unwrap();
    predict(model, &workload).unwrap()
}

fn assert_close(what: &str, found: f64, wanted: f64) {
    let error = (found - wanted).abs() / wanted;
    assert!(error < TOLERANCE, "{what}: {found} against {wanted}, off by {error:e}");
}

fn vision_flops(model: &Model, prediction: &Prediction) -> f64 {
    let vision = [Stage::Sam, Stage::Clip, Stage::Projector];
    let inside = |stage: Option<Stage>| stage.is_some_and(|stage| vision.contains(&stage));
    let ops = prediction.prefill.ops.iter().filter(|op| inside(model.blueprint().stage_of(op.module)));
    ops.map(|op| op.cost.flops_matrix.as_f64()).sum()
}

#[test]
fn prefill_and_decode_equal_the_flop_counter_on_both_workloads() {
    let text = include_str!("fixtures/deepseek-ocr-flop-counter.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    let model = model();
    let workloads = reference["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 2);
    for workload in workloads {
        let grid = [workload["crop_grid"][0].as_u64().unwrap(), workload["crop_grid"][1].as_u64().unwrap()];
        let prompt = workload["prompt_tokens"].as_u64().unwrap();
        let prediction = metered(&model, &settings(grid, prompt, 1));
        let name = workload["name"].as_str().unwrap();
        let prefill = prediction.prefill.total().flops_matrix.as_f64();
        assert_close(name, prefill, workload["prefill_total_flops"].as_f64().unwrap());
        let step = prediction.decode.unwrap();
        assert_eq!(step.first_length, workload["decode_first_step"]["kv_len"].as_u64().unwrap());
        let wanted = workload["decode_first_step"]["total_flops"].as_f64().unwrap();
        assert_close(name, step.total().flops_matrix.as_f64(), wanted);
    }
}

#[test]
fn one_token_reads_each_active_weight_once() {
    let model = model();
    let prediction = metered(&model, &settings([1, 1], 286, 1));
    // The flop counter counted 1,148,190,720 matmul FLOPs for one token: two for each weight, and a weight
    // takes two bytes in bf16. To these come 25 norms of 1280 and one row of the token table.
    let weights = prediction.decode.unwrap().total().bytes.weights;
    assert_eq!(weights, Bytes::new(1_148_190_720 + 25 * 1280 * 2 + 1280 * 2));
    assert_eq!(prediction.footprint.kv_per_token, Some(Bytes::new(61_440)));
    assert_eq!(prediction.parameters, 3_336_106_240);
    assert_eq!(prediction.footprint.weights, Bytes::new(6_672_212_480));
}

#[test]
fn every_row_of_the_published_crop_grid_figures_is_matched() {
    let root = std::env::var_os("LLM_PERF_REFERENCE")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference"), PathBuf::from);
    let file = root.join("third-party/crop-grid-flops.csv");
    let Ok(text) = std::fs::read_to_string(&file) else {
        eprintln!("not compared: {} is not there", file.display());
        return;
    };
    let model = model();
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |index: usize| cells[index].parse::<u64>().unwrap();
        let (grid, context, steps) = ([number(2), number(1)], number(3), number(4));
        let wanted = cells[5].parse::<f64>().unwrap();
        let found = match cells[0] {
            "vision" => vision_flops(&model, &metered(&model, &settings(grid, 5000, 1))),
            "vision+prefill" => metered(&model, &settings(grid, context, 1)).prefill.total().flops_matrix.as_f64(),
            "decode" => {
                let decode = metered(&model, &settings(grid, context, steps)).decode.unwrap();
                decode.total().flops_matrix.as_f64()
            }
            other => panic!("unknown stage {other}"),
        };
        assert_close(line, found, wanted);
        rows += 1;
    }
    assert!(rows > 0, "the file has no rows");
}
