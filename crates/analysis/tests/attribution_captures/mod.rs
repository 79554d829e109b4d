//! Captures the tests read: those of this project from the fixtures of the readers, those of others in place.
#![allow(dead_code, reason = "each test crate reads its own")]

use std::io::Read;
use std::path::PathBuf;
use std::sync::LazyLock;

use types::timeline::Timeline;

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/fixtures")).join(name)
}

/// A fixture as text.
pub(crate) fn text(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}

/// A file of other projects, which is not part of this one.
pub(crate) fn third_party(name: &str) -> Option<Vec<u8>> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference"));
    let folder = std::env::var_os("LLM_PERF_REFERENCE").map_or_else(beside, PathBuf::from);
    let path = folder.join("third-party").join(name);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        println!("not checked, because it is not there: {}", path.display());
    }
    bytes
}

fn torch(bytes: &[u8]) -> Timeline {
    ingest::torch::read("trace.json", bytes, &ingest::torch::TorchSettings::default()).unwrap().timeline
}

/// DeepSeek-OCR on an H200 under the torch profiler: a page of 1024 pixels, four decode steps.
pub(crate) fn torch_h200() -> Timeline {
    // Without optimisation reading takes seconds, and every test wants it.
    static READ: LazyLock<Timeline> =
        LazyLock::new(|| torch(&unpacked(&std::fs::read(fixture("torch/dsocr-h200.json.gz")).unwrap())));
    READ.clone()
}

/// The same workload under Nsight Systems.
pub(crate) fn nsys_h200() -> Timeline {
    let bytes = unpacked(&std::fs::read(fixture("nsys/dsocr-h200.sqlite.gz")).unwrap());
    ingest::nsys::sqlite::read("dsocr-h200.sqlite", &bytes).unwrap()
}

/// A decoder on an H100 under the torch profiler; the trace begins after its first launches.
pub(crate) fn torch_h100() -> Option<Timeline> {
    third_party("kineto/h100-qwen1.5-0.5b.json.gz").map(|packed| torch(&unpacked(&packed)))
}

/// A program with nested ranges in two domains on a T4 under Nsight Systems.
pub(crate) fn nsys_t4() -> Option<Timeline> {
    let bytes = third_party("nsys-t4/power_iteration__baseline.sqlite")?;
    Some(ingest::nsys::sqlite::read("power_iteration.sqlite", &bytes).unwrap())
}

/// The traces of other people's runs, by file name.
pub(crate) fn strangers() -> Vec<(String, Timeline)> {
    let Some(facts) = third_party("traces/facts.json") else { return Vec::new() };
    let facts: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&facts).unwrap();
    let read = |file: &String| {
        let bytes = third_party(&format!("traces/{file}"))?;
        let timeline = if file.ends_with(".sqlite") {
            ingest::nsys::sqlite::read(file, &bytes).unwrap()
        } else {
            torch(&unpacked(&bytes))
        };
        Some((file.clone(), timeline))
    };
    facts.keys().filter_map(read).collect()
}
