//! FLOPs of the metered network against those counted on the published implementation.

mod deepseek_ocr;

use deepseek_ocr::{assert_close, metered, model, settings};
use serde_json::Value;
use types::Bytes;

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
