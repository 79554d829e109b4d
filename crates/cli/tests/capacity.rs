//! Forecasts of loads on servers: what they hold, and input that makes none.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "a forecast needs less of it than a profile")]
mod scratch;
#[path = "support/mod.rs"]
#[allow(dead_code, reason = "a forecast needs less of it than a profile")]
mod support;

use scratch::{Output, Scratch};
use serde_json::Value;

fn capacity(scratch: &Scratch, arguments: &[&str]) -> Output {
    Output::of(scratch.command(&[&["capacity"], arguments].concat()))
}

fn document(scratch: &Scratch, arguments: &[&str]) -> Value {
    let output = capacity(scratch, &[&["--model", "llama-3-8b", "--json"], arguments].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn value(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"))
}

#[test]
fn a_forecast_has_every_figure_with_its_interval() {
    let scratch = Scratch::new();
    let found = document(&scratch, &["--requests", "30", "--output", "32", "--price", "3.5/h", "--power", "700W"]);
    for latency in ["ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"] {
        for figure in ["mean", "p50", "p99"] {
            let of = |part: &str| value(&found, &format!("/{latency}/{figure}/{part}"));
            assert!(0.0 < of("low") && of("low") <= of("value") && of("value") <= of("high"), "{latency} {figure}");
        }
    }
    assert_eq!((found["requests"].as_array().unwrap().len(), value(&found, "/preemptions/value")), (30, 0.0));
    // Without a calibration nothing is called modelled.
    assert_eq!(found["origin"], "assumed");
    let assumed: Vec<&str> = found["assumptions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(["not_calibrated", "host", "power"].iter().all(|name| assumed.contains(name)), "{assumed:?}");
    // All that a device costs in the time of the load is what its tokens cost.
    let seconds = 30.0 / value(&found, "/request_throughput/value");
    let price =
        |side: &str, tokens: f64| value(&found, &format!("/price/per_million_{side}_tokens/value")) * tokens / 1e6;
    let spent = price("input", 30.0 * 512.0) + price("output", 30.0 * 32.0);
    assert!((spent / (3.5 / 3600.0 * seconds) - 1.0).abs() < 0.02, "{spent}");
}

#[test]
fn a_run_folder_has_a_document_that_validates_and_a_page() {
    let scratch = Scratch::new();
    let arguments = ["--model", "llama-3-8b", "--requests", "20", "--output", "16", "--out", "run"];
    let output = capacity(&scratch, &arguments);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.starts_with("Read this first:\n  - The forecast rests at least partly on assumptions"));
    let file = scratch.path("run").join("capacity.json");
    let valid = Output::of(scratch.command(&["validate", file.to_str().unwrap()]));
    assert_eq!(valid.code, 0, "{}", valid.stdout);
    let page = scratch.text("run", "capacity.md");
    assert!(page.contains("| TTFT ") && page.contains("## Assumptions"), "{page}");
}

#[test]
fn the_same_seed_gives_the_same_forecast_and_more_load_a_longer_one() {
    let scratch = Scratch::new();
    let at = |rate: &str| document(&scratch, &["--rate", rate, "--requests", "60", "--input", "64..2048"]);
    let (slow, again, fast) = (at("2"), at("2"), at("60"));
    assert!(slow == again, "the same seed gave two forecasts");
    for pointer in ["/ttft_ms/mean/value", "/tpot_ms/mean/value", "/batch/value", "/output_throughput/value"] {
        assert!(value(&slow, pointer) < value(&fast, pointer), "{pointer}");
    }
}

#[test]
fn half_the_highest_rate_holds_the_target_and_twice_as_much_does_not() {
    let scratch = Scratch::new();
    let slo = ["--slo", "ttft=1s,tpot=15ms", "--input", "512", "--output", "32"];
    let found = document(&scratch, &[&["--requests", "100"], &slo[..]].concat());
    let rate = value(&found, "/highest/requests_per_second/value");
    let (low, high) = ("/highest/requests_per_second/low", "/highest/requests_per_second/high");
    let (low, high) = (value(&found, low), value(&found, high));
    assert!(low <= rate && rate <= high);
    let share = |rate: f64| {
        let rate = rate.to_string();
        value(
            &document(&scratch, &[&["--requests", "1000", "--rate", &rate], &slo[..]].concat()),
            "/goodput_share/value",
        )
    };
    let shares = [share(0.5 * low), share(2.0 * high)];
    assert!(shares[0] > 0.98 && shares[1] < 0.9, "{low} {rate} {high}: {shares:?}");
}

#[test]
fn preemptions_come_with_too_few_blocks() {
    let scratch = Scratch::new();
    let load = ["--rate", "200", "--requests", "60", "--input", "500", "--output", "300"];
    let with = |blocks: &str| document(&scratch, &[&load[..], &["--kv-blocks", blocks]].concat());
    let (few, many) = (with("400"), with("40000"));
    assert!(value(&few, "/preemptions/value") > 1.0 && value(&few, "/kv_peak/value") > 0.95);
    assert_eq!(value(&many, "/preemptions/value"), 0.0);
    assert!(value(&few, "/e2el_ms/mean/value") > value(&many, "/e2el_ms/mean/value"));
}

#[test]
fn what_makes_no_forecast_is_refused_with_its_cause() {
    let scratch = Scratch::new();
    let file = |name: &str, text: &str| std::fs::write(scratch.path(name), text).unwrap();
    file("back.csv", "time_s,input_tokens,output_tokens\n0,10,10\n5,10,10\n3,10,10\n");
    file("negative.csv", "time_s,input_tokens,output_tokens\n0,-10,10\n");
    let results = |start: &str, input: &str| {
        format!(
            r#"{{"ttfts":[0.1,0.1],"itls":[[0.01],[0.01]],"input_lens":[{input},5],"output_lens":[2,2],"errors":["",""],
               "start_times":[{start}]}}"#
        )
    };
    file("back.json", &results("3.0, 2.0", "5"));
    file("negative.json", &results("2.0, 3.0", "-5"));
    file("calibration.json", "{}");
    let long = ["--model", "llama-3-8b", "--kv-blocks", "4", "--requests", "5"];
    let cases: [(&[&str], &str); 12] = [
        (&["--model", "llama-3.1-70b", "--hardware", "a100-pcie-40gb"], "llama-3.1-70b does not fit a100-pcie-40gb"),
        (&["--model", "llama-3-8b", "--slo", "tpot=1ms"], "tpot is"),
        (&["--model", "llama-3-8b", "--slo", "ttft=1us,tpot=1s"], "ttft is"),
        (&["--model", "llama-3-8b", "--replay", "back.csv"], "back.csv: request 3 is sent before request 2"),
        (&["--model", "llama-3-8b", "--replay", "negative.csv"], "line 2 of the CSV trace: `input_tokens` is -10"),
        (&["--model", "llama-3-8b", "--requests", "back.json"], "back.json: request 2 is sent before request 1"),
        (&["--model", "llama-3-8b", "--requests", "negative.json"], "-5"),
        (&["--model", "llama-3-8b", "--requests", "-5"], "expected a number above 0"),
        (
            &["--model", "llama-3-8b", "--calibration", "calibration.json"],
            "--calibration calibration.json cannot be used",
        ),
        (&["--model", "flan-t5-xxl"], "flan-t5-xxl is not simulated in a server"),
        (&["--model", "llama-3-8b", "workload.seq_len=5"], "has no effect on `capacity`"),
        (&long, "no request of the load fits the KV cache"),
    ];
    for (arguments, cause) in cases {
        let output = capacity(&scratch, arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains(cause), "{arguments:?}: {}", output.stderr);
    }
}
