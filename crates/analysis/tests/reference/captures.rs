//! Captures of other projects, read in place.

use std::sync::LazyLock;

use testkit::need::reference;
use types::timeline::Timeline;

use crate::attribution_captures::{torch, unpacked};

/// A file, by its path among those of other projects.
pub(crate) fn third_party(name: &str) -> Vec<u8> {
    let path = reference("third-party").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn torch_trace(name: &str) -> Timeline {
    torch(&unpacked(&third_party(name)))
}

/// A decoder on an H100 under the torch profiler; the trace begins after its first launches.
pub(crate) fn torch_h100() -> Timeline {
    torch_trace("kineto/h100-qwen1.5-0.5b.json.gz")
}

/// A program with nested ranges in two domains on a T4 under Nsight Systems.
pub(crate) fn nsys_t4() -> Timeline {
    let bytes = third_party("nsys-t4/power_iteration__baseline.sqlite");
    ingest::nsys::sqlite::read("power_iteration.sqlite", &bytes).unwrap()
}

/// The traces of other people's runs, by file name.
pub(crate) fn strangers() -> &'static [(String, Timeline)] {
    static READ: LazyLock<Vec<(String, Timeline)>> = LazyLock::new(|| {
        let facts = third_party("traces/facts.json");
        let facts: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&facts).unwrap();
        assert!(!facts.is_empty());
        facts.keys().map(|file| (file.clone(), stranger(file))).collect()
    });
    &READ
}

fn stranger(file: &str) -> Timeline {
    let bytes = third_party(&format!("traces/{file}"));
    match file.ends_with(".sqlite") {
        true => ingest::nsys::sqlite::read(file, &bytes).unwrap(),
        false => torch(&unpacked(&bytes)),
    }
}
