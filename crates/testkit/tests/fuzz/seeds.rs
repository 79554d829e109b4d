//! What inputs are made from: the seeds of cargo-fuzz, fixtures of the readers, and parts of real captures that are small enough.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::body::import;
use network::Model;
use serde_json::{Map, Value, json};

/// Events of a real trace that are kept: enough for every kind, and few enough for thousands of readings.
const EVENTS: usize = 60;

/// Experts of a layer in a model that is a seed.
const MOST_EXPERTS: u64 = 64;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

pub(crate) fn files(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

/// All files of a folder, in the order of their names, without what explains them.
pub(crate) fn folder(name: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(path(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file() && path.extension().is_none_or(|ending| ending != "md"));
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

pub(crate) fn documents(names: &[&str]) -> Vec<Value> {
    files(names).iter().map(|text| serde_json::from_slice(text).unwrap()).collect()
}

/// The first rows of a table.
pub(crate) fn rows(name: &str, most: usize) -> Vec<Vec<u8>> {
    let text = String::from_utf8(files(&[name]).remove(0)).unwrap();
    vec![text.lines().take(most).collect::<Vec<_>>().join("\n").into_bytes()]
}

/// The configurations of built-in models. Those with thousands of experts take seconds to build, each expert like the others.
pub(crate) fn presets() -> Vec<Value> {
    let texts = folder("crates/network/presets");
    let configs = texts.iter().map(|text| serde_json::from_slice(text).unwrap());
    configs.filter(|config| largest(config, "expert") <= MOST_EXPERTS).collect()
}

/// The largest number of fields whose names contain some text, at any depth.
fn largest(value: &Value, name: &str) -> u64 {
    let Some(members) = value.as_object() else { return 0 };
    let of = |(key, value): (&String, &Value)| {
        let here = if key.contains(name) { value.as_u64().unwrap_or(0) } else { 0 };
        here.max(largest(value, name))
    };
    members.iter().map(of).max().unwrap_or(0)
}

/// A safetensors file with all parameters of a network, all of them zero.
pub(crate) fn checkpoint(model: &Model) -> Vec<u8> {
    let (mut description, mut end) = (Map::new(), 0);
    for (_, param) in model.blueprint().params() {
        let start = end;
        end += 4 * param.shape.elements();
        description.insert(
            param.path.clone(),
            json!({"dtype": "F32", "shape": param.shape.dims(), "data_offsets": [start, end]}),
        );
    }
    let description = Value::Object(description).to_string();
    let length = (description.len() as u64).to_le_bytes();
    [&length[..], description.as_bytes(), &vec![0; end as usize]].concat()
}

/// What is inside a compressed file.
pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The documents of a run folder that a trace is imported to, by their names.
pub(crate) fn imported(trace: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let request = import::request(&path(trace));
    flow::import::import(&request, import::run(&folder.path().join("run")), "", &mut |_| {}).unwrap();
    let mut files = Map::new();
    for entry in fs::read_dir(folder.path().join("run")).unwrap().map(|entry| entry.unwrap().path()) {
        let text = || fs::read_to_string(&entry).unwrap();
        let document = match entry.extension().and_then(|ending| ending.to_str()) {
            Some("json") => serde_json::from_str(&text()).unwrap(),
            Some("yaml") if entry.ends_with("inputs.yaml") => Value::String(text()),
            _ => continue,
        };
        files.insert(entry.file_name().unwrap().to_string_lossy().into_owned(), document);
    }
    assert!(files.contains_key("metrics.json") && files.contains_key("manifest.json"));
    Value::Object(files)
}

/// The tables of a job with one trace.
pub(crate) fn tables(trace: &str) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let trace = path(trace);
    let tables = flow::import::TablesRequest::new(folder.path(), Some("job"), &trace).unwrap();
    let request = flow::import::ImportRequest { tables: Some(tables), ..import::request(&trace) };
    flow::import::import(&request, import::run(&folder.path().join("run")), "", &mut |_| {}).unwrap();
    let rank = fs::read_dir(folder.path().join("job=job")).unwrap().next().unwrap().unwrap().path();
    let mut paths: Vec<PathBuf> = fs::read_dir(rank).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Traces of the torch profiler: a small one whole, and of a real one some events from everywhere in it.
pub(crate) fn traces() -> Vec<Value> {
    // Kineto writes `inf`, which is no JSON; as bytes it is among the seeds too.
    let small = files(&["crates/ingest/tests/fixtures/torch/small.json"]).remove(0);
    let small = String::from_utf8(small).unwrap().replace(": inf,", ": 1e300,");
    let mut traces = vec![serde_json::from_str(&small).unwrap()];
    let packed = files(&["crates/ingest/tests/fixtures/torch/two-ranks-h200-0.json.gz"]);
    let mut real: Value = serde_json::from_slice(&unpacked(&packed[0])).unwrap();
    let events = real["traceEvents"].as_array_mut().expect("a trace has events");
    let apart = events.len().div_ceil(EVENTS).max(1);
    *events = events.drain(..).step_by(apart).collect();
    traces.push(real);
    traces
}
