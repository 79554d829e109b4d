use std::collections::BTreeMap;

use ingest::gguf::{GgufTensor, GgufValue, TensorType};
use network::Model;

use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/gguf")
}

/// Bytes of all parameters as they are stored.
fn bytes(config: &ModelConfig) -> u64 {
    let model = Model::new(config);
    let of = |param: &network::ParamEntry| {
        let format = param.format.as_ref().unwrap_or_else(|| panic!("{} has no type", param.path));
        (format.dtype.bytes_for(param.shape.elements()) + format.scale_bytes(param.shape)).get()
    };
    model.blueprint().params().map(|(_, param)| of(param)).sum()
}

#[test]
fn every_architecture_has_the_parameters_of_transformers_and_the_bytes_of_its_tensors() {
    let sums: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(fixtures().join("sums.json")).unwrap()).unwrap();
    let sums = sums.as_object().unwrap();
    assert!(sums.len() >= 17, "only {} files", sums.len());
    for (name, sum) in sums {
        let config = read(&fixtures().join(format!("{name}.gguf"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        let model = Model::new(&config);
        assert_eq!(model.blueprint().parameters_under(""), sum["parameters"].as_u64().unwrap(), "{name}");
        assert_eq!(bytes(&config), sum["bytes"].as_u64().unwrap(), "{name}");
    }
}

#[test]
fn a_file_says_how_many_tensors_are_of_which_type() {
    let config = read(&fixtures().join("tiny-llama-q4_k.gguf")).unwrap();
    let quantisation = config.quantisation().unwrap();
    assert_eq!(quantisation.description(), "gguf: 11 tensors in Q4_K, 5 tensors in Q6_K, 5 tensors in F32");
}

fn whole() -> GgufHeader {
    header(&fixtures().join("tiny-llama-q4_k.gguf")).unwrap()
}

/// What is wrong with a header as a model, and what to do.
fn refusal(header: &GgufHeader) -> (String, String) {
    let error = match config::json(header, "model.gguf") {
        Err(error) => error,
        Ok(text) => {
            let config = ModelConfig::from_json("model.gguf", &text).unwrap();
            tensors::stored(Model::new(&config).blueprint(), header, "model.gguf").unwrap_err()
        }
    };
    (error.to_string(), error.hints.concat())
}

#[test]
fn a_header_that_is_no_known_model_names_the_file_the_place_and_the_fix() {
    let mut unknown = whole();
    unknown.values.insert("general.architecture".to_owned(), GgufValue::Text("rwkv7".to_owned()));
    let (text, fix) = refusal(&unknown);
    assert!(text.starts_with("model.gguf: architecture `rwkv7` is not supported; expected one of llama, "), "{text}");
    assert!(fix.contains("config.json"), "{fix}");

    let mut without = whole();
    without.values.remove("general.architecture");
    assert!(refusal(&without).0.contains("no `general.architecture`"));

    let mut short = whole();
    short.values.remove("llama.embedding_length");
    assert!(refusal(&short).0.contains("no `llama.embedding_length`"));

    let mut uneven = whole();
    let list = GgufValue::List(vec![GgufValue::Integer(4), GgufValue::Integer(8)]);
    uneven.values.insert("llama.attention.head_count_kv".to_owned(), list);
    assert!(refusal(&uneven).0.contains("not the same for all layers"));
}

#[test]
fn a_list_of_equal_sizes_is_one_size() {
    let mut header = whole();
    let list = GgufValue::List(vec![GgufValue::Integer(2), GgufValue::Integer(2)]);
    header.values.insert("llama.attention.head_count_kv".to_owned(), list);
    assert_eq!(config::json(&header, "").unwrap(), config::json(&whole(), "").unwrap());
}

#[test]
fn tensors_have_to_be_those_of_the_architecture() {
    let mut less = whole();
    less.tensors.retain(|tensor| tensor.name != "blk.1.attn_q.weight");
    let (text, fix) = refusal(&less);
    assert!(text.contains("no tensor found for the parameter `model.layers.1.self_attn.q_proj.weight`"), "{text}");
    assert!(fix.contains("does not match its metadata"), "{fix}");

    let extra = GgufTensor {
        name: "blk.0.attn_gate.weight".to_owned(),
        dimensions: vec![256, 4],
        kind: TensorType::of_id(0).unwrap(),
        elements: 1024,
        bytes: 4096,
    };
    let mut more = whole();
    more.tensors.push(extra.clone());
    assert!(refusal(&more).0.contains("tensor `blk.0.attn_gate.weight` has 1024 elements"));

    // Angles, and layers that predict further tokens, are no parameters of the model.
    let mut angles = whole();
    angles.tensors.push(GgufTensor { name: "rope_freqs.weight".to_owned(), ..extra.clone() });
    angles.tensors.push(GgufTensor { name: "blk.2.nextn.eh_proj.weight".to_owned(), ..extra });
    let config = ModelConfig::from_json("", &config::json(&angles, "").unwrap()).unwrap();
    assert!(tensors::stored(Model::new(&config).blueprint(), &angles, "").is_ok());
}

#[test]
fn a_parameter_of_two_types_has_the_bytes_of_both() {
    // Keys in Q8_0, values in Q2_K: rows of keys are too short for blocks of 256.
    let path = fixtures().join("deepseek3.gguf");
    let mut header = header(&path).unwrap();
    let mut saved = 0;
    for tensor in header.tensors.iter_mut().filter(|tensor| tensor.name.ends_with("attn_v_b.weight")) {
        let kind = TensorType::of_id(10).unwrap();
        let smaller = kind.bytes_of(tensor.elements).unwrap();
        saved += tensor.bytes - smaller;
        (tensor.kind, tensor.bytes) = (kind, smaller);
    }
    assert!(saved > 0);
    let config = ModelConfig::from_json("", &config::json(&header, "").unwrap()).unwrap();
    let stored = tensors::stored(Model::new(&config).blueprint(), &header, "").unwrap();
    assert_eq!(bytes(&config.stored_as(stored)), bytes(&read(&path).unwrap()) - saved);
}

#[test]
fn parts_of_a_model_are_read_from_the_first_one() {
    let folder = tempfile::tempdir().unwrap();
    let split = |no: i128, count: i128| {
        let values = [("split.no", no), ("split.count", count)];
        let values = values.map(|(key, number)| (key.to_owned(), GgufValue::Integer(number)));
        GgufHeader { values: BTreeMap::from(values), tensors: Vec::new() }
    };
    let first = folder.path().join("m-00001-of-00002.gguf");
    let absent = parts(&first, &split(0, 2)).unwrap_err();
    assert!(absent.to_string().contains("m-00002-of-00002.gguf is missing"), "{absent}");
    let second = folder.path().join("m-00002-of-00002.gguf");
    std::fs::write(&second, "GGUF").unwrap();
    assert_eq!(parts(&first, &split(0, 2)).unwrap(), [second.as_path()]);
    let later = parts(&second, &split(1, 2)).unwrap_err();
    assert!(later.to_string().contains("this is part 2 of 2"), "{later}");
    let renamed = parts(Path::new("m.gguf"), &split(0, 2)).unwrap_err();
    assert!(renamed.to_string().contains("does not end in `-00001-of-00002.gguf`"), "{renamed}");
    assert!(parts(&first, &split(0, 1 << 40)).unwrap_err().to_string().contains("at most 1000"));
    assert!(parts(Path::new("m.gguf"), &split(0, 1)).unwrap().is_empty());
}
