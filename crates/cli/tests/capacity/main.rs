//! Forecasts of loads on servers: what they hold, and input that makes none.

#[path = "../support/scratch.rs"]
#[allow(dead_code, reason = "a forecast needs less of it than a profile")]
mod scratch;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "a forecast needs less of it than a profile")]
mod support;
mod sweep;

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
fn a_results_file_is_forecast_beside_what_its_client_measured() {
    let scratch = Scratch::new();
    let file = |name: &str| format!("{}/tests/fixtures/serving/{name}", env!("CARGO_MANIFEST_DIR"));
    let (requests, model) = (file("requests.json"), file("config.json"));
    let forecast = |more: &[&str]| -> Value {
        let load = ["--model", &model, "--requests", &requests, "--json"];
        let output = capacity(&scratch, &[&load[..], more].concat());
        assert_eq!(output.code, 0, "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let (found, client): (Value, Value) =
        (forecast(&[]), serde_json::from_slice(&std::fs::read(&requests).unwrap()).unwrap());
    let row = |figure: &str| {
        let rows = found["measured"].as_array().unwrap();
        rows.iter().find(|row| row["figure"] == figure).unwrap_or_else(|| panic!("{figure}")).clone()
    };
    for (figure, key) in [
        ("ttft_ms.mean", "mean_ttft_ms"),
        ("tpot_ms.p99", "p99_tpot_ms"),
        ("e2el_ms.p50", "median_e2el_ms"),
        ("output_throughput", "output_throughput"),
    ] {
        let (row, theirs) = (row(figure), client[key].as_f64().unwrap());
        let (measured, forecast) = (value(&row, "/measured"), value(&row, "/forecast/value"));
        // The client's throughput counts the time until it has noticed the last answer.
        let apart = if key == "output_throughput" { 0.05 } else { 1e-5 };
        assert!((measured / theirs - 1.0).abs() < apart, "{figure}: {measured} and {theirs}");
        assert!((value(&row, "/error") - (forecast / measured - 1.0)).abs() < 1e-9, "{figure}");
    }
    assert!((value(&found, "/requests/3/measured/ttft_ms") - client["ttfts"][3].as_f64().unwrap() * 1e3).abs() < 1e-3);
    // At another rate nobody has measured it.
    let faster = forecast(&["--rate", "100"]);
    assert_eq!((faster["measured"].as_array().unwrap().len(), &faster["requests"][3]["measured"]), (0, &Value::Null));
    assert!(value(&faster, "/batch/value") > value(&found, "/batch/value"));
}

/// A run of `serve` with three requests half a second apart, and the words that it was started with.
fn serve_run(scratch: &Scratch, command: &[&str]) {
    let made = capacity(scratch, &["--model", "llama-3-8b", "--requests", "2", "--output", "2", "--out", "run"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let folder = scratch.path("run");
    let line = |at: u64, error: &str| {
        let start = 500_000_000 * at;
        format!(
            r#"{{"due_ns":{start},"chunks_ns":[40000000,45000000,50000000],"end_ns":50000000,"input_tokens":64,"output_tokens":3,"error":{error}}}"#
        )
    };
    let header = r#"{"schema":"llm-perf/requests/1","clock":"epoch"}"#.to_owned();
    let lines = [header, line(0, "null"), line(1, "null"), line(2, "null"), line(3, r#""refused""#)];
    std::fs::write(folder.join("requests.jsonl"), lines.join("\n") + "\n").unwrap();
    let path = folder.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    manifest["command"] = [&["llm-perf", "serve"], command].concat().into();
    let mut file = manifest["files"][0].clone();
    file["path"] = "requests.jsonl".into();
    file.as_object_mut().unwrap().remove("document");
    manifest["files"].as_array_mut().unwrap().push(file);
    std::fs::write(&path, manifest.to_string()).unwrap();
}

#[test]
fn a_measured_server_is_compared_only_where_nothing_was_changed() {
    let scratch = Scratch::new();
    let server = ["--", "vllm", "serve", "m", "--max-num-seqs", "64", "--enforce-eager", "--port", "8123"];
    serve_run(&scratch, &[&["--model", "llama-3-8b", "--hardware", "h200"], &server[..]].concat());
    let forecast = |more: &[&str]| -> Value {
        let output = capacity(&scratch, &[&["--from", "run", "--json"], more].concat());
        assert_eq!(output.code, 0, "{more:?}: {}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let found = forecast(&[]);
    let number = |pointer: &str| value(&found, pointer);
    assert_eq!((number("/load/requests"), number("/load/failed"), number("/server/max_num_seqs")), (3.0, 1.0, 64.0));
    assert_eq!(found["ignored_options"], serde_json::json!(["--enforce-eager"]));
    let compared = |found: &Value| !found["measured"].as_array().unwrap().is_empty();
    assert!(compared(&found) && found["requests"][0]["measured"]["ttft_ms"] == 40.0, "{}", found["measured"]);
    for same in [&["--hardware", "h200"][..], &["--max-num-seqs", "64"], &["--price", "2/h"], &["--slo", "ttft=1s"]] {
        assert!(compared(&forecast(same)), "{same:?}");
    }
    for changed in [
        &["--hardware", "h100-sxm"][..],
        &["--max-num-seqs", "32"],
        &["--max-num-batched-tokens", "4096"],
        &["--engine", "sglang"],
        &["--attention-backend", "triton"],
        &["--kv-blocks", "1000"],
        &["--rate", "9"],
        &["--concurrency", "2"],
        &["workload.quantisation.weights=fp8"],
    ] {
        assert!(!compared(&forecast(changed)), "{changed:?}");
    }
    let page = capacity(&scratch, &["--from", "run"]);
    for said in ["leaves out 1 request that failed", "not simulated: `--enforce-eager`", "forecast off by"] {
        assert!(page.stdout.contains(&said.replace('`', "")) || page.stdout.contains(said), "{said}: {}", page.stdout);
    }
}

#[test]
fn what_a_run_does_not_say_is_asked_for_and_not_guessed() {
    for (command, cause) in [
        (&["--hardware", "h200", "--url", "http://localhost:1"][..], "which model was served"),
        (&["--model", "llama-3-8b", "--", "vllm", "serve", "m"], "which device the server ran on"),
        (
            &["--model", "llama-3-8b", "--hardware", "h200", "--", "./server", "models/vllm-7b"],
            "which engine the server was",
        ),
        (
            &["--model", "llama-3-8b", "--hardware", "h200", "--", "vllm", "serve", "m", "--block-size", "big"],
            "`--block-size big`",
        ),
    ] {
        let scratch = Scratch::new();
        serve_run(&scratch, command);
        let output = capacity(&scratch, &["--from", "run"]);
        assert_eq!(output.code, 2, "{command:?}: {}", output.stdout);
        assert!(output.stderr.contains(cause), "{command:?}: {}", output.stderr);
    }
}

#[test]
fn the_requests_of_a_file_come_as_the_options_say_or_the_options_are_refused() {
    let scratch = Scratch::new();
    let row = |at: u64| format!("{}.0,64,4\n", at / 4);
    let rows: String = (0..40).map(row).collect();
    std::fs::write(scratch.path("load.csv"), format!("time_s,input_tokens,output_tokens\n{rows}")).unwrap();
    std::fs::write(scratch.path("together.csv"), "time_s,input_tokens,output_tokens\n0,64,4\n0,64,4\n").unwrap();
    let arrivals = |more: &[&str]| {
        let found = document(&scratch, &[&["--replay", "load.csv"], more].concat());
        found["load"]["arrivals"].clone()
    };
    assert_eq!(arrivals(&["--concurrency", "3"]), serde_json::json!({"kind": "concurrency", "requests": 3}));
    let swept = document(&scratch, &["--replay", "load.csv", "--sweep", "rate=2,20"]);
    let of = |point: usize| &swept["points"][point]["figures"];
    assert_eq!(
        (&of(0)["load"]["arrivals"]["per_second"], &of(1)["load"]["arrivals"]["per_second"]),
        (&2.0.into(), &20.0.into())
    );
    assert!(value(of(0), "/request_throughput/value") < value(of(1), "/request_throughput/value"));
    let refused: [(&[&str], &str); 9] = [
        (&["--replay", "load.csv", "--input", "5"], "cannot be used with"),
        (&["--replay", "load.csv", "--constant"], "cannot be used with"),
        (&["--requests", "load.json", "--output", "5"], "--output has no effect on the requests of a results file"),
        (&["--requests", "load.json", "--seed", "5"], "--seed has no effect on the requests of a results file"),
        (&["--requests", "load.json", "--rate", "1..5"], "the requests of a results file have one rate"),
        (&["--requests", "load.json", "--concurrency", "0"], "expected a whole number above 0"),
        (&["--replay", "together.csv", "--sweep", "rate=1,2"], "all start at once"),
        (&["--sweep", "rate=1,2", "--sweep", "concurrency=1,2"], "are two loads"),
        (&["--kv-blocks", "1000000000"], "KV blocks of 16 tokens take"),
    ];
    for (arguments, cause) in refused {
        let output = capacity(&scratch, &[&["--model", "llama-3-8b"], arguments].concat());
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stdout);
        assert!(output.stderr.contains(cause), "{arguments:?}: {}", output.stderr);
    }
}

#[test]
fn a_short_file_is_repeated_until_it_shows_the_highest_rate() {
    let scratch = Scratch::new();
    let rows: String = (0..5).map(|at| format!("{at}.0,512,32\n")).collect();
    std::fs::write(scratch.path("load.csv"), format!("time_s,input_tokens,output_tokens\n{rows}")).unwrap();
    let slo = ["--slo", "ttft=1s,tpot=15ms"];
    let highest = |load: &[&str]| {
        let found = document(&scratch, &[load, &slo[..]].concat())["highest"].clone();
        (value(&found, "/requests_per_second/value"), found["limited_by"].as_str().unwrap().to_owned())
    };
    let (file, limit) = highest(&["--replay", "load.csv"]);
    // Equal intervals of the same requests are the same load.
    let (constant, _) = highest(&["--constant", "--rate", "1", "--input", "512", "--output", "32", "--requests", "30"]);
    assert!(limit != "not_reached" && (file / constant - 1.0).abs() < 0.1, "{file} and {constant}");
    // Where every number of requests that may run at a time meets the target, the target was not reached.
    let few = ["--concurrency", "1", "--max-num-seqs", "4", "--requests", "20", "--output", "8", "--slo", "ttft=100s"];
    let found = document(&scratch, &few);
    assert_eq!(
        (&found["highest"]["limited_by"], value(&found, "/highest/concurrency/value")),
        (&"not_reached".into(), 4.0)
    );
    let text = capacity(&scratch, &[&["--model", "llama-3-8b"], &few[..]].concat());
    assert!(text.stdout.contains("at least 4 requests at a time"), "{}", text.stdout);
}

#[test]
fn refused_requests_and_rare_long_ones_do_not_decide_a_target() {
    let scratch = Scratch::new();
    // One of 250 requests is long: it misses, and 99.6% do not; it is among the first.
    let row = |at: u64| format!("{}.0,{},8\n", at / 10, if at == 3 { 60_000 } else { 64 });
    let rows: String = (0..250).map(row).collect();
    std::fs::write(scratch.path("long.csv"), format!("time_s,input_tokens,output_tokens\n{rows}")).unwrap();
    let load = ["--replay", "long.csv", "--slo", "ttft=500ms"];
    let found = document(&scratch, &load);
    assert!(value(&found, "/highest/requests_per_second/value") > 0.1, "{}", found["highest"]);
    // The same request never fits a small cache: refused, and no reason to miss anything.
    let refused = document(&scratch, &[&load[..], &["--kv-blocks", "1000"]].concat());
    assert_eq!((value(&refused, "/load/refused"), value(&refused, "/goodput_share/value")), (1.0, 1.0));
    assert!(value(&refused, "/highest/requests_per_second/value") > 0.1, "{}", refused["highest"]);
}

#[test]
fn outputs_of_one_token_have_no_time_per_token() {
    let scratch = Scratch::new();
    let found = document(&scratch, &["--requests", "5", "--output", "1"]);
    assert!(found["tpot_ms"].is_null() && found["itl_ms"].is_null() && value(&found, "/ttft_ms/mean/value") > 0.0);
    let text = capacity(&scratch, &["--model", "llama-3-8b", "--requests", "5", "--output", "1"]);
    assert!(text.stdout.contains("TTFT") && !text.stdout.contains("TPOT"), "{}", text.stdout);
    assert!(!text.stdout.contains("covers") && !text.stdout.contains("nothing measured"), "{}", text.stdout);
}

#[test]
fn an_a100_has_the_limits_that_vllm_gives_it() {
    let scratch = Scratch::new();
    let limits = |hardware: &str| {
        let found = document(&scratch, &["--requests", "2", "--output", "2", "--hardware", hardware]);
        ["/server/max_num_seqs", "/server/max_num_batched_tokens"].map(|pointer| value(&found, pointer))
    };
    assert_eq!(limits("a100-sxm-80gb"), [256.0, 2048.0]);
    assert_eq!(limits("h100-sxm"), [1024.0, 8192.0]);
    assert_eq!(limits("l40s"), [256.0, 2048.0]);
}

#[test]
fn measured_steps_correct_what_if_and_not_the_comparison() {
    let scratch = Scratch::new();
    serve_run(&scratch, &["--model", "llama-3-8b", "--hardware", "h200", "--", "vllm", "serve", "m"]);
    // A prompt, and ten steps of a sequence that decodes, each of 50 ms: far longer than any forecast.
    let step = |tokens: u64| {
        serde_json::json!({"name": "step", "label": "decode", "host_ns": 0, "wall_ns": 0, "device_ns": 50_000_000, "kernels": 9,
            "device_start_ns": 0, "device_end_ns": 50_000_000,
            "batch": {"tokens": tokens, "context": {"sequences": 0}, "generation": {"sequences": 1}}})
    };
    let list: Vec<Value> = std::iter::once(64).chain([1; 10]).map(step).collect();
    let decode = |step: u64| serde_json::json!({"step": step, "tokens": 1, "work": "decode"});
    let mut work = vec![serde_json::json!({"step": 0, "tokens": 64, "work": "prefill"})];
    work.extend((1..=10).map(decode));
    let metrics = serde_json::json!({"devices": [{"name": "H200"}], "steps": {"list": list},
        "requests": [{"input_tokens": 64, "steps": work}]});
    std::fs::write(scratch.path("run").join("metrics.json"), metrics.to_string()).unwrap();
    let path = scratch.path("run").join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("capacity.json", "metrics.json");
    std::fs::write(&path, text).unwrap();
    let forecast = |more: &[&str]| -> Value {
        let output = capacity(&scratch, &[&["--from", "run", "--json"], more].concat());
        assert_eq!(output.code, 0, "{more:?}: {}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let (same, faster, other) = (forecast(&[]), forecast(&["--rate", "9"]), forecast(&["--hardware", "h100-sxm"]));
    for found in [&same, &faster] {
        assert_eq!(
            (&found["step_residuals"][0]["kind"], value(found, "/step_residuals/0/steps")),
            (&"decode".into(), 10.0)
        );
        assert!(value(found, "/step_residuals/0/factor") > 5.0);
    }
    let tpot = |found: &Value| value(found, "/tpot_ms/mean/value");
    assert!(same["is_corrected"] == false && tpot(&same) < 20.0, "{}", tpot(&same));
    assert!(faster["is_corrected"] == true && tpot(&faster) > 40.0, "{}", tpot(&faster));
    // Another device takes other times.
    assert!(other["is_corrected"] == false && other["step_residuals"].as_array().unwrap().is_empty());
    let others: [&[&str]; 5] = [
        &["hardware=h100-sxm"],
        &["--engine", "sglang"],
        &["--attention-backend", "triton"],
        &["workload.parallel.tensor=2"],
        &["--model", "llama-3.1-8b"],
    ];
    for other in others {
        let found = forecast(&[&["--rate", "9"], other].concat());
        assert!(found["is_corrected"] == false, "{other:?}");
    }
    // Layouts of a sweep are all corrected, or none is.
    let swept =
        |axis: &str| value(&forecast(&["--rate", "9", "--sweep", axis]), "/points/0/figures/tpot_ms/mean/value");
    assert!(swept("max-num-seqs=64,128") > 40.0 && swept("engine=vllm,sglang") < 20.0);
    // What the driver calls the device, and its id, are the same one.
    for name in ["NVIDIA H200", "H200"] {
        assert!(forecast(&["--rate", "9", "--hardware", name])["is_corrected"] == true, "{name}");
    }
    let text = capacity(&scratch, &["--from", "run", "--rate", "9"]);
    assert!(text.stdout.contains("device time is corrected by"), "{}", text.stdout);
}

#[test]
fn weights_in_fewer_bits_are_read_sooner_and_take_less_memory() {
    let scratch = Scratch::new();
    let load = ["--concurrency", "1", "--requests", "3", "--input", "32", "--output", "32"];
    let with = |more: &[&str]| document(&scratch, &[&load[..], more].concat());
    let (whole, packed) = (with(&[]), with(&["workload.quantisation.weights=int4"]));
    // Weights are most of what one sequence reads, and a quarter of it is left of them; the host and the rest stay.
    let faster = value(&whole, "/tpot_ms/mean/value") / value(&packed, "/tpot_ms/mean/value");
    assert!((1.5..4.0).contains(&faster), "{faster}");
    assert!(value(&packed, "/server/weights_bytes") < 0.5 * value(&whole, "/server/weights_bytes"));
    assert!(packed["assumptions"].as_array().unwrap().contains(&"fused_dequantisation".into()));
    assert_eq!(packed["origin"], "assumed");
}

#[test]
fn every_example_of_its_help_makes_a_forecast() {
    let scratch = Scratch::new();
    let fixture = |name: &str| format!("{}/tests/fixtures/serving/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(scratch.path("load.csv"), "time_s,input_tokens,output_tokens\n0,512,64\n1,300,20\n").unwrap();
    std::fs::copy(fixture("requests.json"), scratch.path("results.json")).unwrap();
    std::fs::copy(fixture("config.json"), scratch.path("config.json")).unwrap();
    serve_run(&scratch, &["--model", "llama-3-8b", "--hardware", "h200", "--", "vllm", "serve", "m"]);
    let examples = include_str!("../../src/verb/examples/capacity.txt");
    let commands: Vec<&str> = examples.lines().filter_map(|line| line.strip_prefix("  llm-perf capacity ")).collect();
    assert!(commands.len() >= 9, "{commands:?}");
    for command in commands {
        let words: Vec<&str> =
            command.split(' ').map(|word| if word == "latest:serve" { "run" } else { word }).collect();
        let json: &[&str] = if words.contains(&"--json") { &[] } else { &["--json"] };
        // As few requests as make a forecast.
        let is_any = ["--requests", "--from", "--replay"].iter().any(|option| words.contains(option));
        let few: &[&str] = if is_any { &[] } else { &["--requests", "4"] };
        let output = capacity(&scratch, &[&words[..], json, few].concat());
        assert_eq!(output.code, 0, "{command}: {}", output.stderr);
    }
}

#[test]
fn a_device_of_ones_own_is_named_like_any_other() {
    let scratch = Scratch::new();
    let folder = scratch.path("conf").join("hardware");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "id: mine\nname: Mine\nvendor: V\narchitecture: A\nsources:\n  sheet: {title: T, publisher: P}\n\
        memory_bytes: {value: 80000000000, source: sheet}\nbytes_per_second: {value: 3e12, source: sheet}\n\
        sm_count: {value: 100, source: sheet}\npeaks:\n\
        \x20 - {dtype: bf16, unit: matrix, accumulate: fp32, flops: 8e14, source: sheet}\n\
        \x20 - {dtype: fp32, unit: vector, accumulate: fp32, flops: 6e13, source: sheet}\n";
    std::fs::write(folder.join("mine.yaml"), text).unwrap();
    let conf = scratch.path("conf").display().to_string();
    let found = document(&scratch, &["--config-dir", &conf, "--hardware", "mine", "--requests", "3"]);
    assert_eq!(found["server"]["hardware"], "mine");
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
    let cases: [(&[&str], &str); 17] = [
        (&["--model", "llama-3-8b", "--rate", "-1"], "expected a number above 0"),
        (&["--model", "llama-3-8b", "--concurrency", "NaN"], "expected a whole number above 0"),
        (&["--model", "llama-3-8b", "--requests", "1.5"], "expected a whole number above 0, or a file"),
        (&["--model", "llama-3-8b", "--replay", "missing.csv"], "cannot read missing.csv"),
        (&["--model", "llama-3-8b", "workload.parallel.tensor=0"], "workload.parallel.tensor is 0"),
        (&["--model", "llama-3.1-70b", "--hardware", "a100-pcie-40gb"], "llama-3.1-70b does not fit a100-pcie-40gb"),
        (&["--model", "llama-3-8b", "--slo", "tpot=1ms"], "tpot is"),
        (&["--model", "llama-3-8b", "--slo", "ttft=1us,tpot=1s"], "ttft is"),
        (&["--model", "llama-3-8b", "--replay", "back.csv"], "back.csv: request 3 is sent before request 2"),
        (&["--model", "llama-3-8b", "--replay", "negative.csv"], "line 2 of the CSV trace: `input_tokens` is -10"),
        (&["--model", "llama-3-8b", "--requests", "back.json"], "back.json: request 2 is sent before request 1"),
        (&["--model", "llama-3-8b", "--requests", "negative.json"], "-5"),
        (&["--model", "llama-3-8b", "--requests", "-5"], "expected a whole number above 0, or a file"),
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
