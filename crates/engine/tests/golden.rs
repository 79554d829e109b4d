//! The engine against the published implementation, on every case of the golden folder.

mod expected;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use expected::Stored;
use llm_perf_engine::{
    Checkpoint, EngineError, Forward, Generation, ImageBatch, PageImages, PromptData, Session, Tensor,
};
use network::Model;
use network::config::ModelConfig;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::Value;
use types::DType;

/// What the published implementation and this one may differ by, in single precision.
const TOLERANCE: f32 = 1e-4;

struct Golden {
    session: Session,
    expected: BTreeMap<String, Stored>,
    cases: Vec<Value>,
}

fn folder() -> PathBuf {
    std::env::var_os("LLM_PERF_GOLDEN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tiny-a"), PathBuf::from)
}

fn load(checkpoint: &Checkpoint) -> Result<Session, EngineError> {
    load_as(checkpoint, DType::Fp32)
}

fn load_as(checkpoint: &Checkpoint, dtype: DType) -> Result<Session, EngineError> {
    let file = folder().join("config.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let config = ModelConfig::from_json("config.json", &text).unwrap();
    Session::load(Model::new(&config), checkpoint, dtype)
}

impl Golden {
    fn read() -> Self {
        let folder = folder();
        let session = load(&Checkpoint::Safetensors(folder.join("model.safetensors"))).unwrap();
        let expected = expected::load(&folder.join("expected.safetensors"));
        let cases: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("cases.json")).unwrap()).unwrap();
        let cases = cases["cases"].as_array().unwrap().clone();
        assert!(!cases.is_empty());
        Self { session, expected, cases }
    }

    fn tensor(&self, case: &str, name: &str) -> &Stored {
        self.expected.get(&format!("{case}.{name}")).unwrap_or_else(|| panic!("{case}.{name} is in the file"))
    }

    fn prompt(&self, case: &Value) -> PromptData {
        let name = case["name"].as_str().unwrap();
        let images = |name_of: &str| {
            let tensor = self.tensor(name, name_of);
            ImageBatch { count: tensor.dims[0], side: tensor.dims[2], pixels: tensor.floats() }
        };
        let grid = [case["crop_grid"][0].as_u64().unwrap(), case["crop_grid"][1].as_u64().unwrap()];
        PromptData {
            ids: self.tensor(name, "input_ids").longs(),
            image_mask: self.tensor(name, "images_seq_mask").bytes.iter().map(|mask| *mask != 0).collect(),
            images: Some(PageImages {
                global: images("image"),
                tiles: (grid != [1, 1]).then(|| images("crops")),
                crop_grid: grid,
            }),
            source: None,
        }
    }
}

fn assert_close(what: &str, found: &Tensor, wanted: &[f32]) {
    let worst = expected::worst(found, wanted);
    println!("{what}: largest difference {worst:e}");
    assert!(worst <= TOLERANCE, "{what}: off by {worst:e}");
}

fn greedy(forward: &Forward) -> i64 {
    let logits = forward.last_logits().unwrap();
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    best.0 as i64
}

#[test]
fn golden_vision_equals_the_published_implementation() {
    let golden = Golden::read();
    for case in &golden.cases {
        let name = case["name"].as_str().unwrap();
        let prompt = golden.prompt(case);
        let mut run = golden.session.start(prompt.ids.len());
        for module in ["model.sam_model", "model.vision_model", "model.projector"] {
            assert!(run.watch(module), "{module}");
        }
        run.prefill(&prompt, false).unwrap();
        let parts = |run: &mut Generation<'_>, path: &str| {
            let mut outputs = run.watched(path);
            let global = outputs.pop().unwrap();
            (outputs.pop(), global)
        };
        for (module, stem) in [("model.sam_model", "sam"), ("model.vision_model", "clip")] {
            let (local, global) = parts(&mut run, module);
            let check = |part: &str, found: &Tensor| {
                let wanted = golden.tensor(name, &format!("{stem}_{part}"));
                assert_eq!(found.dims(), wanted.dims, "{name} {stem} {part}");
                assert_close(&format!("{name} {stem} {part}"), found, &wanted.floats());
            };
            check("global", &global);
            if let Some(local) = local {
                check("local", &local);
            }
        }
        let (_, projected) = parts(&mut run, "model.projector");
        assert_close(&format!("{name} projector"), &projected, &golden.tensor(name, "projected_global").floats());
    }
}

#[test]
fn golden_logits_and_tokens_equal_the_published_implementation() {
    let golden = Golden::read();
    for case in &golden.cases {
        let name = case["name"].as_str().unwrap();
        let prompt = golden.prompt(case);
        let wanted: Vec<i64> =
            case["greedy_tokens"].as_array().unwrap().iter().map(|token| token.as_i64().unwrap()).collect();
        let mut run = golden.session.start(prompt.ids.len() + wanted.len());
        let prefill = run.prefill(&prompt, false).unwrap();
        let all = golden.tensor(name, "prefill_logits");
        assert_eq!(prefill.logits.dims(), all.dims, "{name}");
        assert_close(&format!("{name} prefill logits"), &prefill.logits, &all.floats());
        // Row n of the decode logits is what comes of feeding token n.
        let rows = golden.tensor(name, "decode_logits");
        let mut tokens = vec![greedy(&prefill)];
        for step in 0..wanted.len() {
            let forward = run.step(tokens[step]).unwrap();
            assert_close(&format!("{name} decode step {step}"), &forward.logits, &rows.row(step));
            tokens.push(greedy(&forward));
        }
        tokens.pop();
        assert_eq!(tokens, wanted, "{name}");
    }
}

#[test]
fn golden_logits_of_the_last_position_are_the_last_of_all() {
    let golden = Golden::read();
    let prompt = golden.prompt(&golden.cases[0]);
    let all = golden.session.start(64).prefill(&prompt, false).unwrap().last_logits().unwrap();
    let last = golden.session.start(64).prefill(&prompt, true).unwrap().last_logits().unwrap();
    let worst = all.iter().zip(&last).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(worst < 1e-5, "off by {worst:e}");
}

/// Rounding to bf16 moves a weight by up to one part in 512, each its own way; through all layers the logits move by this
/// share of their size at most.
const NARROW_TOLERANCE: f32 = 0.02;

/// Root mean square of what differs, as a share of the root mean square of what is wanted.
fn difference(found: &Tensor, wanted: &[f32]) -> f32 {
    let found = found.in_order().unwrap();
    assert_eq!(found.len(), wanted.len());
    let off: f32 = found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).powi(2)).sum();
    (off / wanted.iter().map(|wanted| wanted.powi(2)).sum::<f32>()).sqrt()
}

#[test]
fn golden_logits_with_weights_in_half_the_bytes_stay_close() {
    let golden = Golden::read();
    let narrow = load_as(&Checkpoint::Safetensors(folder().join("model.safetensors")), DType::Bf16).unwrap();
    assert_eq!(narrow.dtype(), DType::Bf16);
    assert_eq!(narrow.weights().bytes().get() * 2, golden.session.weights().bytes().get());
    for case in &golden.cases {
        let name = case["name"].as_str().unwrap();
        let prompt = golden.prompt(case);
        let mut run = narrow.start(prompt.ids.len() + 1);
        let prefill = run.prefill(&prompt, false).unwrap();
        let prefill = difference(&prefill.logits, &golden.tensor(name, "prefill_logits").floats());
        let first = case["greedy_tokens"][0].as_i64().unwrap();
        let logits = run.step(first).unwrap().logits;
        let decode = difference(&logits, &golden.tensor(name, "decode_logits").row(0));
        println!("{name}: prefill logits differ by {prefill:e}, decode logits by {decode:e}");
        assert!(prefill < NARROW_TOLERANCE && decode < NARROW_TOLERANCE, "{name}: {prefill:e}, {decode:e}");
        assert!(prefill > 0.0, "bf16 weights give exactly what single precision gives");
    }
}

fn save(tensors: &BTreeMap<String, Stored>, file: &Path) {
    let views = tensors
        .iter()
        .map(|(name, Stored { dims, dtype, bytes })| (name, TensorView::new(*dtype, dims.clone(), bytes).unwrap()));
    safetensors::serialize_to_file(views, None, file).unwrap();
}

#[test]
fn weights_kept_in_other_types_are_refused() {
    let error = load_as(&Checkpoint::Synthetic { seed: 1 }, DType::Fp16).unwrap_err().to_string();
    assert_eq!(error, "the native engine keeps weights as fp32 or bf16, not fp16");
}

#[test]
fn golden_checkpoint_is_used_whole_and_in_shards() {
    let golden = Golden::read();
    assert_eq!(golden.session.weights().unused(), &[] as &[String]);
    // The same tensors in two files behind an index.
    let all = expected::load(&folder().join("model.safetensors"));
    let shards = tempfile::tempdir().unwrap();
    let names: Vec<_> = all.keys().cloned().collect();
    let mut map = serde_json::Map::new();
    for (index, half) in names.chunks(names.len() / 2 + 1).enumerate() {
        let file = format!("part-{index}.safetensors");
        let part = half.iter().map(|name| (name.clone(), all[name].clone())).collect();
        save(&part, &shards.path().join(&file));
        map.extend(half.iter().map(|name| (name.clone(), Value::from(file.clone()))));
    }
    let index = serde_json::json!({ "weight_map": map });
    std::fs::write(shards.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    let sharded = load(&Checkpoint::Safetensors(shards.path().to_owned())).unwrap();
    let prompt = golden.prompt(&golden.cases[0]);
    let logits = |session: &Session| session.start(64).prefill(&prompt, true).unwrap().last_logits().unwrap();
    assert_eq!(logits(&sharded), logits(&golden.session));
    // A download that was not finished.
    std::fs::remove_file(shards.path().join("part-1.safetensors")).unwrap();
    let cut = load(&Checkpoint::Safetensors(shards.path().to_owned())).unwrap_err().to_string();
    assert!(cut.contains("model.safetensors.index.json lists 2 files, of which 1 are missing; the first is "), "{cut}");
    assert!(cut.ends_with("part-1.safetensors"), "{cut}");
}

#[test]
fn golden_checkpoint_with_a_missing_or_misshapen_tensor_is_refused_by_name() {
    let all = expected::load(&folder().join("model.safetensors"));
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("model.safetensors");
    let changed = |change: &dyn Fn(&mut BTreeMap<String, Stored>)| {
        let mut tensors = all.clone();
        change(&mut tensors);
        save(&tensors, &file);
        load(&Checkpoint::Safetensors(file.clone())).unwrap_err().to_string()
    };
    let missing = changed(&|tensors| drop(tensors.remove("model.norm.weight")));
    assert!(missing.contains("has no tensor `model.norm.weight`") && missing.contains("[64]"), "{missing}");
    let misshapen = changed(&|tensors| {
        let small = Stored { dims: vec![3, 4], dtype: Dtype::F32, bytes: vec![0; 48] };
        tensors.insert("lm_head.weight".into(), small);
    });
    assert!(misshapen.contains("`lm_head.weight`") && misshapen.contains("[3, 4]"), "{misshapen}");
    assert!(misshapen.contains("the network needs [512, 64]"), "{misshapen}");
    std::fs::write(&file, b"no checkpoint").unwrap();
    let garbage = load(&Checkpoint::Safetensors(file.clone())).unwrap_err().to_string();
    assert!(garbage.contains("is not a safetensors checkpoint"), "{garbage}");
    let nowhere = load(&Checkpoint::Safetensors("no/such/file".into())).unwrap_err().to_string();
    assert!(nowhere.contains("cannot read no/such/file"), "{nowhere}");
}
