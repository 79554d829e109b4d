//! Captures of this project, from the fixtures of the readers.
#![allow(dead_code, reason = "each test crate reads its own")]

use std::io::Read;
use std::path::PathBuf;
use std::sync::LazyLock;

use types::timeline::Timeline;

pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
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

pub(crate) fn torch(bytes: &[u8]) -> Timeline {
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
