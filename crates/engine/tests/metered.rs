//! The engine against the meter: what ran, priced from its recorded shapes, is what was predicted.

use std::path::Path;

use llm_perf_engine::{Checkpoint, ImageBatch, PageImages, PromptData, Session, Trace};
use meter::predict;
use meter::price::price;
use network::Model;
use network::config::ModelConfig;
use types::{
    AttentionKind, Cost, DType, ImageWorkload, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind, Spec,
    Workload,
};

const BASE: usize = 256;
const TILE: usize = 160;

fn session() -> Session {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tiny-a/config.json");
    let config = ModelConfig::from_json("config.json", &std::fs::read_to_string(file).unwrap()).unwrap();
    Session::load(Model::new(&config), &Checkpoint::Synthetic { seed: 1 }, DType::Fp32).unwrap()
}

fn images(count: usize, side: usize) -> ImageBatch {
    ImageBatch { count, side, pixels: (0..count * 3 * side * side).map(|i| (i % 255) as f32 / 127.5 - 1.0).collect() }
}

fn workload(crop_grid: [u64; 2], text_tokens: u64, steps: u64) -> Workload {
    let image_tokens = network::deepseek_ocr::image_tokens(BASE as u64, TILE as u64, crop_grid);
    Workload {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 1,
        batch: 1,
        image: Some(ImageWorkload {
            base_size: BASE as u64,
            image_size: TILE as u64,
            crop_grid,
            image_tokens,
            pixels: None,
        }),
        text_tokens,
        seq_len: image_tokens + text_tokens,
        max_new_tokens: steps + 1,
        decode_steps: steps,
        dtype: DType::Fp32,
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

fn prompt(workload: &Workload) -> PromptData {
    let image = workload.image.unwrap();
    let [wide, high] = image.crop_grid;
    let tiles = (wide * high) as usize;
    PromptData {
        ids: (0..workload.seq_len).map(|id| (id % 500) as i64).collect(),
        image_mask: (0..workload.seq_len).map(|position| (1..=image.image_tokens).contains(&position)).collect(),
        images: Some(PageImages {
            global: images(1, BASE),
            tiles: (tiles > 1).then(|| images(tiles, TILE)),
            crop_grid: image.crop_grid,
        }),
        source: None,
    }
}

fn priced(trace: &Trace) -> Cost {
    let of = |op: &llm_perf_engine::OpTrace| {
        let inputs: &[Spec] = &op.inputs;
        price(op.op, inputs, op.output, AttentionKind::Eager).cost()
    };
    trace.ops.iter().map(of).sum()
}

#[test]
fn the_flops_of_what_ran_equal_the_prediction_exactly() {
    let session = session();
    for (grid, text, steps) in [([1, 1], 13, 3), ([2, 1], 5, 2), ([2, 3], 13, 1)] {
        let workload = workload(grid, text, steps);
        let predicted = predict(session.model(), &workload).unwrap();
        let mut run = session.start((workload.seq_len + steps) as usize);
        run.set_tracing(true);
        let prefill = run.prefill(&prompt(&workload), false).unwrap();
        let ran = priced(&prefill.trace);
        let wanted = predicted.prefill.total();
        assert_eq!((ran.flops_matrix, ran.flops_vector), (wanted.flops_matrix, wanted.flops_vector), "{grid:?}");
        let decoded: Cost = (0..steps).map(|step| priced(&run.step(step as i64).unwrap().trace)).sum();
        let wanted = predicted.decode.as_ref().unwrap().total();
        assert_eq!((decoded.flops_matrix, decoded.flops_vector), (wanted.flops_matrix, wanted.flops_vector));
        assert_eq!(decoded.bytes.kv_read, wanted.bytes.kv_read);
        // One token touches exactly its own experts, so even the expected weights are exact.
        assert_eq!(decoded.bytes.weights, wanted.bytes.weights);
    }
}

#[test]
fn loaded_weights_take_the_predicted_bytes() {
    let session = session();
    let predicted = predict(session.model(), &workload([1, 1], 1, 1)).unwrap();
    assert_eq!(session.weights().bytes(), predicted.footprint.weights);
}

#[test]
fn ranges_of_the_vision_stages_are_timed_and_operations_only_when_asked() {
    let session = session();
    let workload = workload([2, 1], 5, 1);
    let mut run = session.start(workload.seq_len as usize);
    let forward = run.prefill(&prompt(&workload), true).unwrap();
    let names: Vec<_> = forward.trace.ranges.iter().map(|range| range.name).collect();
    assert_eq!(names, ["sam", "clip", "projector", "sam", "clip", "projector"]);
    assert!(forward.trace.ops.is_empty());
    let inside: i64 = forward.trace.ranges.iter().map(|range| range.duration.get()).sum();
    assert!(inside > 0 && inside <= forward.duration.get());
    // Every token went to three experts in each of the two layers that mix.
    let rows: u64 = run.take_routed().values().flatten().sum();
    assert_eq!(rows, workload.seq_len * 3 * 2);
}

#[test]
fn a_prompt_longer_than_the_cache_is_refused() {
    let session = session();
    let workload = workload([1, 1], 5, 1);
    let error = session.start(10).prefill(&prompt(&workload), true).unwrap_err().to_string();
    assert!(error.contains("26 positions do not fit the KV cache of 10"), "{error}");
}
