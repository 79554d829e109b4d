//! Traces as `import` reads them, and what holds of every one.

use std::path::PathBuf;

use serde_json::Value;

use crate::scratch::{Output, Scratch};

/// An imported trace: its metrics, and all pages as one text.
pub(crate) struct Imported {
    pub(crate) metrics: Value,
    pub(crate) pages: String,
    pub(crate) terminal: String,
}

pub(crate) fn import(files: &[PathBuf], arguments: &[&str]) -> Imported {
    let scratch = Scratch::new();
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let all =
        ["import", "--out", "run"].into_iter().chain(files.iter().map(String::as_str)).chain(arguments.iter().copied());
    let output = Output::of(scratch.command(&all.collect::<Vec<_>>()));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let pages = ["report.md", "stakeholder_summary.md"].map(|page| scratch.text("run", page)).join("\n");
    Imported { metrics: scratch.json("run", "metrics.json"), pages, terminal: output.stdout }
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key}"))
}

pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

/// What must hold of any run with device work.
pub(crate) fn assert_invariants(metrics: &Value, name: &str) {
    for device in list(metrics, "device_time") {
        let of = |key: &str| number(&device[key]);
        assert_eq!(of("busy_ns") + of("idle_ns"), of("span_ns"), "{name}");
        let busy = of("compute_ns") + of("communication_exposed_ns") + of("copies_exposed_ns");
        assert_eq!(busy, of("busy_ns"), "{name}");
        let copies: i64 = list(device, "copies").iter().map(|copy| number(&copy["exposed_ns"])).sum();
        assert_eq!(copies, of("copies_exposed_ns"), "{name}");
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
    let path: i64 = list(metrics, "critical_path").iter().map(|part| number(&part["ns"])).sum();
    assert!(path <= metrics["replay"]["replayed_ns"].as_i64().unwrap_or(0), "{name}: a path of {path}");
    let replayed = metrics["replay"]["basis_ns"].as_f64();
    for finding in list(metrics, "findings") {
        if let (Some(whole), Some(saves), Some(_)) =
            (replayed, finding["saves_ns"].as_f64(), finding["saves_low_ns"].as_f64())
        {
            let share = finding["saves_share"].as_f64().unwrap();
            assert!((share - saves / whole).abs() <= 0.005, "{name}: {finding}");
        }
        assert!(finding["saves_share"].as_f64().is_none_or(|share| (0.0..=1.0).contains(&share)), "{name}: {finding}");
    }
}

/// Times of `facts.json` went through floating point: each is rounded to a nanosecond, and behind 2^53 of them, in traces
/// with whole microseconds since 1970, carries an error of up to 256 ns.
pub(crate) fn assert_near(found: i64, fact: &Value, rows: i64, name: &str) {
    let fact = number(fact);
    let most = if found % 1_000 == 0 && fact % 1_000 != 0 { 256 * rows } else { 2 };
    assert!((found - fact).abs() <= most, "{name}: {found} is not {fact}");
}

/// Every figure that another program has summed up.
pub(crate) fn assert_facts(metrics: &Value, fact: &Value, file: &str) {
    let devices = fact["devices"].as_object().unwrap();
    let found = list(metrics, "device_time");
    assert_eq!(found.len(), devices.len(), "{file}");
    for (ordinal, fact) in devices {
        let has_number =
            |device: &&Value| device["device"].as_str().is_some_and(|id| id.ends_with(&format!(":{ordinal}")));
        let device = found.iter().find(has_number).unwrap_or_else(|| panic!("{ordinal}"));
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
}
