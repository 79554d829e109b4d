//! The road of `capacity` from a results file to its document, against runs of vLLM 0.24 on an H200.
//!
//! `cargo test -p llm-perf --test reference -- capacity --nocapture` prints the table of errors in `docs/concepts/capacity.md`.

use serde_json::Value;
use testkit::need::reference;

use crate::scratch::{Output, Scratch};

/// A measured run: its model, its load, the engine's settings as its server logged them, and the most that the forecast may be off.
struct Run {
    model: &'static str,
    load: &'static str,
    settings: &'static [&'static str],
    /// Of mean and 99th percentile of TTFT, TPOT and E2EL, and of the throughput.
    bounds: [f64; 7],
}

const RUNS: [Run; 3] = [
    Run { model: "llama-8b", load: "warm", settings: LARGE, bounds: [0.05, 0.12, 0.03, 0.05, 0.03, 0.08, 0.01] },
    Run { model: "llama-8b", load: "slow", settings: LARGE, bounds: [0.05, 0.12, 0.03, 0.05, 0.03, 0.03, 0.01] },
    Run { model: "llama-8b", load: "fast", settings: LARGE, bounds: [0.06, 0.10, 0.03, 0.03, 0.03, 0.03, 0.01] },
];

const LARGE: &[&str] = &["--max-num-seqs", "1024", "--max-num-batched-tokens", "8192", "--kv-blocks", "58351"];

/// Mean and 99th percentile of what the client measured, and their names in its file and in ours.
const FIGURES: [(&str, &str); 7] = [
    ("mean_ttft_ms", "/ttft_ms/mean/value"),
    ("p99_ttft_ms", "/ttft_ms/p99/value"),
    ("mean_tpot_ms", "/tpot_ms/mean/value"),
    ("p99_tpot_ms", "/tpot_ms/p99/value"),
    ("mean_e2el_ms", "/e2el_ms/mean/value"),
    ("p99_e2el_ms", "/e2el_ms/p99/value"),
    ("output_throughput", "/output_throughput/value"),
];

fn path(name: &str) -> String {
    reference("serving").join(name).display().to_string()
}

fn forecast(model: &str, load: &str, settings: &[&str]) -> Value {
    let (config, requests) = (path(&format!("{model}/config.json")), path(&format!("{model}/{load}.json")));
    let calibration = path("calibration-h200.json");
    let named = ["capacity", "--hardware", "h200", "--json", "--calibration", &calibration];
    let scratch = Scratch::new();
    let output =
        Output::of(scratch.command(&[&named[..], &["--model", &config, "--requests", &requests], settings].concat()));
    assert_eq!(output.code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

pub(crate) fn forecasts_are_as_far_off_as_the_documentation_says() {
    println!("run | TTFT mean | p99 | TPOT mean | p99 | E2EL mean | p99 | output tokens/s");
    for Run { model, load, settings, bounds } in RUNS {
        let found = forecast(model, load, settings);
        let measured: Value =
            serde_json::from_slice(&std::fs::read(path(&format!("{model}/{load}.json"))).unwrap()).unwrap();
        assert_eq!(found["origin"], "modelled");
        assert_eq!(found["requests"].as_array().unwrap().len() as u64, measured["completed"].as_u64().unwrap());
        let error = |(theirs, ours): (&str, &str)| {
            found.pointer(ours).unwrap().as_f64().unwrap() / measured[theirs].as_f64().unwrap() - 1.0
        };
        let errors = FIGURES.map(error);
        let shown: Vec<String> = errors.iter().map(|error| format!("{:+.1}%", error * 100.0)).collect();
        println!("{model} {load} | {}", shown.join(" | "));
        for ((error, bound), (name, _)) in errors.iter().zip(bounds).zip(FIGURES) {
            assert!(error.abs() <= bound, "{model} {load} {name}: {error:+.3}");
        }
    }
}

pub(crate) fn memory_holds_about_as_many_blocks_as_the_server_found() {
    // `GPU KV cache size` of the servers' logs, in blocks of 16 tokens.
    for (model, load, blocks) in [("llama-8b", "warm", 58_351.0), ("llama-1b", "traced", 257_836.0)] {
        let found = forecast(model, load, &[]);
        let ours = found["server"]["kv_blocks"].as_f64().unwrap();
        println!("{model}: {ours} KV blocks, {:+.1}%", (ours / blocks - 1.0) * 100.0);
        assert!((ours / blocks - 1.0).abs() < 0.02, "{model}: {ours}");
    }
}

/// A server that no constant of the simulator was read off: what was measured on it, milliseconds and tokens a second, and the most that
/// the forecast may be off.
const HELD_OUT: [(&str, f64, f64); 7] = [
    ("/ttft_ms/mean/value", 28.853, 0.10),
    ("/ttft_ms/p99/value", 54.854, 0.15),
    ("/tpot_ms/mean/value", 4.3144, 0.03),
    ("/tpot_ms/p99/value", 5.7542, 0.05),
    ("/e2el_ms/mean/value", 536.49, 0.03),
    ("/e2el_ms/p99/value", 915.20, 0.03),
    ("/output_throughput/value", 1_365.7, 0.01),
];

pub(crate) fn a_server_of_another_model_is_forecast_as_well() {
    let fixture = |name: &str| format!("{}/tests/fixtures/capacity/{name}", env!("CARGO_MANIFEST_DIR"));
    let (config, load, calibration) = (fixture("config.json"), fixture("load.csv"), path("calibration-h200.json"));
    let named = ["capacity", "--hardware", "h200", "--json", "--calibration", &calibration];
    let output = Output::of(Scratch::new().command(&[&named[..], &["--model", &config, "--replay", &load]].concat()));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    for (name, measured, bound) in HELD_OUT {
        let error = found.pointer(name).unwrap().as_f64().unwrap() / measured - 1.0;
        println!("held out {name}: {:+.1}%", error * 100.0);
        assert!(error.abs() <= bound, "{name}: {error:+.3}");
    }
}
