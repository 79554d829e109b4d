//! What is concluded from traces of other people's runs, read in place where they are: every figure of `facts.json`, which an
//! independent program has summed up, and what is true and false of each.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod support;

use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;

/// The folder of the traces; absent where it is not there.
fn traces() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    let folder = std::env::var_os("LLM_PERF_REFERENCE").map_or_else(beside, PathBuf::from).join("third-party/traces");
    let is_there = folder.join("facts.json").is_file();
    if !is_there {
        println!("not checked, because it is not there: {}", folder.display());
    }
    is_there.then_some(folder)
}

/// An imported trace: its metrics, and all pages as one text.
struct Imported {
    metrics: Value,
    pages: String,
    terminal: String,
}

fn import(files: &[PathBuf], arguments: &[&str]) -> Imported {
    let scratch = Scratch::new();
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let all =
        ["import", "--out", "run"].into_iter().chain(files.iter().map(String::as_str)).chain(arguments.iter().copied());
    let output = Output::of(scratch.command(&all.collect::<Vec<_>>()));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let pages = ["report.md", "stakeholder_summary.md"].map(|page| scratch.text("run", page)).join("\n");
    Imported { metrics: scratch.json("run", "metrics.json"), pages, terminal: output.stdout }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key}"))
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

/// What must hold of any run with device work.
fn assert_invariants(metrics: &Value, name: &str) {
    for device in list(metrics, "device_time") {
        let of = |key: &str| number(&device[key]);
        assert_eq!(of("busy_ns") + of("idle_ns"), of("span_ns"), "{name}");
        let busy = of("compute_ns") + of("communication_exposed_ns") + of("copies_exposed_ns");
        assert_eq!(busy, of("busy_ns"), "{name}");
        let idle: i64 = list(device, "idle").iter().map(|idle| number(&idle["ns"])).sum();
        assert_eq!(idle, of("idle_ns"), "{name}");
    }
    for stage in list(metrics, "stages") {
        if let (Some(busy), Some(wall)) = (stage["gpu_busy_ns"].as_i64(), stage["wall_ns"].as_i64()) {
            assert!(busy <= wall * list(metrics, "devices").len().max(1) as i64, "{name}: {stage}");
        }
        if let (Some(roofline), Some(wall)) = (stage["speed_of_light_ns"].as_i64(), stage["wall_ns"].as_i64()) {
            assert!(roofline <= wall, "{name}: {stage}");
        }
    }
    for row in list(metrics, "lost_time") {
        assert!(number(&row["claimed_ns"]) <= number(&row["lost_ns"]), "{name}: {row}");
    }
    for finding in list(metrics, "findings") {
        assert!(finding["saves_share"].as_f64().is_none_or(|share| (0.0..=1.0).contains(&share)), "{name}: {finding}");
    }
}

/// Times of `facts.json` went through floating point: each is rounded to a nanosecond, and behind 2^53 of them, in traces
/// with whole microseconds since 1970, carries an error of up to 256 ns.
fn assert_near(found: i64, fact: &Value, rows: i64, name: &str) {
    let fact = number(fact);
    let most = if found % 1_000 == 0 && fact % 1_000 != 0 { 256 * rows } else { 2 };
    assert!((found - fact).abs() <= most, "{name}: {found} is not {fact}");
}

#[test]
fn every_figure_of_other_programs_is_found_again() {
    let Some(folder) = traces() else { return };
    let facts: Value = serde_json::from_slice(&std::fs::read(folder.join("facts.json")).unwrap()).unwrap();
    for (file, fact) in facts.as_object().unwrap() {
        let Imported { metrics, .. } = import(&[folder.join(file)], &[]);
        assert_invariants(&metrics, file);
        let devices = fact["devices"].as_object().unwrap();
        let found = list(&metrics, "device_time");
        assert_eq!(found.len(), devices.len(), "{file}");
        for (ordinal, fact) in devices {
            let id = format!("cuda:{ordinal}");
            let device = found.iter().find(|device| device["device"] == id.as_str()).unwrap_or_else(|| panic!("{id}"));
            let rows = number(&fact["kernels"]) + 1_000;
            for key in ["span_ns", "busy_ns", "idle_ns", "communication_ns", "communication_exposed_ns"] {
                assert_near(number(&device[key]), &fact[key], rows, &format!("{file}: {key}"));
            }
            for (kind, copies) in fact["copies"].as_object().unwrap() {
                let found = list(device, "copies").iter().find(|copy| copy["kind"] == kind.as_str()).unwrap();
                for key in ["calls", "ns", "bytes"] {
                    assert_eq!(found[key], copies[key], "{file}: {kind} {key}");
                }
            }
        }
        if !fact["idle_in_data_loader_ns"].is_null() {
            let idle = list(&found[0], "idle").iter().find(|idle| idle["cause"] == "data_loading").unwrap();
            assert_near(number(&idle["ns"]), &fact["idle_in_data_loader_ns"], 100, file);
        }
    }
}
