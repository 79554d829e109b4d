//! Loads on servers: one that answers, and those that do not.

#[path = "support/doubles.rs"]
mod doubles;
#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "a load needs less of it than a profile")]
mod scratch;
#[path = "support/mod.rs"]
#[allow(dead_code, reason = "a load needs less of it than a profile")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use doubles::{Doubles, doubles};
use scratch::{Output, Scratch};

/// What a server does when it is asked to generate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    Tokens,
    Error,
    HalfAStream,
    Uncounted,
}

/// A server on a thread that answers like vLLM, without a profiler.
fn server(answers: Answers) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(stream.unwrap(), answers));
        }
    });
    address
}

/// Answers one request; every response ends its connection.
fn answer(mut stream: TcpStream, answers: Answers) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let whole = |status: &str, text: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len())
    };
    let response = match (path.as_str(), answers) {
        ("/health", _) => whole("200 OK", ""),
        ("/v1/models", _) => whole("200 OK", r#"{"data":[{"id":"tiny"}]}"#),
        ("/v1/completions", Answers::Error) => whole("500 Internal Server Error", "out of memory"),
        ("/v1/completions", _) => {
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned()
        }
        _ => whole("404 Not Found", ""),
    };
    stream.write_all(response.as_bytes()).ok()?;
    if path != "/v1/completions" || answers == Answers::Error {
        return None;
    }
    let tokens = serde_json::from_slice::<serde_json::Value>(&body).ok()?["max_tokens"].as_u64()?;
    for token in 0..tokens {
        thread::sleep(Duration::from_millis(2));
        stream.write_all(b"data: {\"choices\":[{\"text\":\"a\"}]}\n\n").ok()?;
        if answers == Answers::HalfAStream && token == 1 {
            return None;
        }
    }
    if answers == Answers::Uncounted {
        return stream.write_all(b"data: [DONE]\n\n").ok();
    }
    let usage = format!(r#"{{"choices":[],"usage":{{"prompt_tokens":7,"completion_tokens":{tokens}}}}}"#);
    stream.write_all(format!("data: {usage}\n\ndata: [DONE]\n\n").as_bytes()).ok()
}

fn serve(scratch: &Scratch, arguments: &[&str]) -> Output {
    let all = ["serve", "--out", "run", "--requests", "12", "--rate", "50", "--output", "4"];
    let warm_up = if arguments.contains(&"--warmup") { &[][..] } else { &["--warmup", "1"] };
    Output::of(scratch.command(&[&all, warm_up, arguments].concat()))
}

/// On a machine that is busy with other tests the client may be late, and says so.
fn assert_nothing_missing(output: &Output) {
    let was_late = output.code == 3 && output.stderr.contains("the client ");
    assert!(output.code == 0 || was_late, "{}{}", output.stdout, output.stderr);
    assert!(!output.stderr.contains("not recorded"), "{}", output.stderr);
}

#[test]
fn a_load_on_a_running_server_has_its_latencies_and_says_what_is_missing() {
    let (scratch, address) = (Scratch::new(), server(Answers::Tokens));
    let url = format!("http://{address}");
    let output = serve(&scratch, &["--url", &url, "--slo", "ttft=10s"]);
    // Kernels were asked for and cannot be recorded.
    assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("neither vLLM nor SGLang"), "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let load = &metrics["serving"]["load"];
    assert_eq!((&load["requests"], &load["completed"], &load["output_tokens"]), (&12.into(), &12.into(), &48.into()));
    assert_eq!(load["goodput"]["requests"], 12);
    assert!(load["ttft"]["p50"]["ns"].as_i64().unwrap() > 0);
    assert_eq!(metrics["requests"].as_array().unwrap().len(), 12);
    assert!(metrics["serving"]["join"].is_null());
    assert!(output.stdout.contains("12 requests"), "{}", output.stdout);
    let lines = scratch.text("run", "requests.jsonl");
    assert_eq!(lines.lines().count(), 13);
    // The same file is read again, beside any trace.
    assert!(lines.starts_with(r#"{"schema":"llm-perf/requests/1""#), "{lines}");
    let plain = Scratch::new();
    assert_nothing_missing(&serve(&plain, &["--url", &url, "--window", "0"]));
    assert!(plain.json("run", "metrics.json")["serving"]["load"]["energy"].is_null());
}

#[test]
fn a_server_without_a_known_profiler_is_recorded_by_the_collector() {
    let (scratch, address) = (Scratch::new(), server(Answers::Tokens));
    let Doubles { cupti, application, .. } = doubles();
    let url = format!("http://{address}");
    let repeated = ["launch:_Z4gemmPf*3", "launch:_Z6argmaxPf", "sleep:5"].repeat(3000);
    let mut all = vec!["serve", "--out", "run", "--warmup", "1", "--requests", "12", "--rate", "50", "--output", "4"];
    all.extend(["--url", &url, "--", application.to_str().unwrap(), "cuda"]);
    all.extend(&repeated);
    let mut command = scratch.command(&all);
    command.env("LLM_PERF_INJECT_CUPTI", cupti);
    let output = Output::of(command);
    // The application works by itself: its passes are not those that answered.
    assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("the server does not annotate its steps"), "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    assert!(metrics["totals"]["kernel_count"].as_u64().unwrap() >= 16, "{}", metrics["totals"]);
    assert_eq!(metrics["requests"].as_array().unwrap().len(), 12);
    assert!(metrics["serving"]["join"].is_null());
    let verified = Output::of(scratch.command(&["runs", "run", "--verify"]));
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);

    // The process that listens on the port is this one, and the collector waits in an application that it has started.
    let scratch = Scratch::new();
    let mut waiting = scratch.command(&[&["run", "--", application.to_str().unwrap(), "cuda"], &repeated[..]].concat());
    let mut waiting = waiting.env("LLM_PERF_INJECT_CUPTI", cupti).spawn().unwrap();
    let output = serve(&scratch, &["--url", &url, "--window", "12"]);
    let _ = (waiting.kill(), waiting.wait());
    assert!(output.stderr.contains("the server does not annotate its steps"), "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    assert!(metrics["totals"]["kernel_count"].as_u64().unwrap() >= 16, "{}", metrics["totals"]);
}

#[test]
fn gpus_count_the_energy_of_a_load_and_a_range_of_rates_is_climbed() {
    let (scratch, address) = (Scratch::new(), server(Answers::Tokens));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/nvml.c");
    let library = scratch.path("libnvidia-ml.so.1");
    assert!(Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap().success());
    let url = format!("http://{address}");
    let load = ["--warmup", "0", "--requests", "12", "--rate", "10..110", "--output", "4", "--window", "0"];
    let mut command = scratch.command(&[&["serve", "--out", "run", "--url", &url], &load[..]].concat());
    command.env("LD_LIBRARY_PATH", library.parent().unwrap());
    let output = Output::of(command);
    assert_nothing_missing(&output);
    let metrics = scratch.json("run", "metrics.json");
    let load = &metrics["serving"]["load"];
    assert_eq!(load["energy"], serde_json::json!({ "joules": 0.5, "gpus": 1 }));
    assert_eq!(load["joules_per_output_token"], 0.5 / 48.0);
    assert!(output.stdout.contains("; 10.4 mJ per output token."), "{}", output.stdout);
    // 10 a second at first and 60 on average: the first half takes longer than the second.
    let due: Vec<i64> =
        metrics["requests"].as_array().unwrap().iter().filter_map(|one| one["due_ns"].as_i64()).collect();
    assert!(due.is_sorted() && due[6] - due[0] > 3 * (due[11] - due[6]) / 2, "{due:?}");
    let slow = Output::of(scratch.command(&["serve", "--url", &url, "--rate", "1e-300..2e-300"]));
    assert_eq!((slow.code, slow.stderr.contains("--rate is too low")), (2, true), "{}", slow.stderr);
}

#[test]
fn a_load_that_was_sent_is_forecast_beside_what_was_measured() {
    let (scratch, address) = (Scratch::new(), server(Answers::Tokens));
    assert_nothing_missing(&serve(&scratch, &["--url", &format!("http://{address}"), "--window", "0"]));
    let forecast = |more: &[&str]| -> serde_json::Value {
        // The run names no device and no engine.
        let server = ["--model", "llama-3-8b", "--hardware", "h200", "--engine", "vllm"];
        let from = [&["capacity", "--from", "./run", "--json"], &server[..]].concat();
        let output = Output::of(scratch.command(&[&from[..], more].concat()));
        assert_eq!(output.code, 0, "{}", output.stderr);
        serde_json::from_str(&output.stdout).unwrap()
    };
    let found = forecast(&[]);
    assert_eq!((&found["load"]["requests"], &found["load"]["output_tokens"]), (&12.into(), &48.into()));
    let metrics = scratch.json("run", "metrics.json");
    let ttft = |one: &serde_json::Value| one["measured"]["ttft_ms"].as_f64().unwrap();
    let mean = found["requests"].as_array().unwrap().iter().map(ttft).sum::<f64>() / 12.0;
    let measured = metrics["serving"]["load"]["ttft"]["mean"]["ns"].as_f64().unwrap() / 1e6;
    assert!((mean / measured - 1.0).abs() < 1e-3, "{mean} and {measured}");
    // What if they came ten times as fast to a server with other settings?
    let other = forecast(&["--rate", "100", "--max-num-seqs", "2"]);
    assert_eq!(
        (&other["server"]["max_num_seqs"], &other["load"]["arrivals"]["per_second"]),
        (&2.into(), &100.0.into())
    );
    let none = Output::of(scratch.command(&["capacity", "--from", "./run"]));
    assert!(none.code == 2 && none.stderr.contains("does not say which model"), "{}", none.stderr);
}

#[test]
fn requests_that_fail_are_counted_and_quoted() {
    for (answers, quoted) in [(Answers::Error, "out of memory"), (Answers::HalfAStream, "12 of 12 requests failed")] {
        let (scratch, address) = (Scratch::new(), server(answers));
        let url = format!("http://{address}");
        let output = serve(&scratch, &["--url", &url, "--window", "0", "--warmup", "0"]);
        assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains(quoted), "{}", output.stderr);
        assert!(!output.stdout.contains("tokens/s"), "{}", output.stdout);
        let load = &scratch.json("run", "metrics.json")["serving"]["load"];
        assert_eq!((&load["completed"], &load["failed"]), (&0.into(), &12.into()));
        assert!(load["ttft"].is_null(), "{load}");
    }
}

#[test]
fn a_server_that_fails_every_request_is_not_sent_a_load() {
    let (scratch, address) = (Scratch::new(), server(Answers::Error));
    let output = serve(&scratch, &["--url", &format!("http://{address}")]);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    let expected = "error: every warm-up request failed: HTTP status 500: out of memory";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn tokens_that_a_server_does_not_count_are_unknown() {
    let (scratch, address) = (Scratch::new(), server(Answers::Uncounted));
    let output = serve(&scratch, &["--url", &format!("http://{address}"), "--window", "0"]);
    assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("did not count the tokens of 12 answers"), "{}", output.stderr);
    assert!(!output.stdout.contains("tokens/s"), "{}", output.stdout);
    let load = &scratch.json("run", "metrics.json")["serving"]["load"];
    assert!(load["output_throughput"].is_null() && load["tpot"].is_null() && !load["itl"].is_null(), "{load}");
}

#[test]
fn a_server_that_ends_or_never_answers_is_told_and_none_is_left() {
    let scratch = Scratch::new();
    let output = serve(&scratch, &["--", "/bin/sh", "-c", "echo no device found >&2; exit 7"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("no device found"), "{}", output.stderr);
    assert!(output.stderr.contains("run/logs/server.stderr"), "{}", output.stderr);
    let scratch = Scratch::new();
    let output =
        serve(&scratch, &["--ready", "0.3", "--", "/bin/sh", "-c", "echo $$ >pid; exec sleep 600", "--port", "1"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("was not ready within"), "{}", output.stderr);
    let pid = scratch.text("", "pid");
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
fn a_load_needs_a_server_and_lengths_that_make_sense() {
    let scratch = Scratch::new();
    for (arguments, says, code) in [
        (&["serve"][..], "no server", 2),
        (&["serve", "--url", "ftp://a"], "unknown scheme", 2),
        (&["serve", "--url", "http://127.0.0.1:1", "--input", "many"], "256..1024", 2),
        (&["serve", "--url", "http://127.0.0.1:1", "--input", "5..2"], "the smaller number first", 2),
        (&["serve", "--url", "http://127.0.0.1:1", "--slo", "speed=1"], "ttft", 2),
        (&["serve", "--url", "http://127.0.0.1:1", "--rate", "0"], "above 0", 2),
        (&["serve", "--url", "http://127.0.0.1:1", "--replay", "missing.csv"], "missing.csv", 1),
    ] {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, code, "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(says), "{arguments:?}: {}", output.stderr);
    }
}

/// The served model: multiply-adds of one token in all its layers and its head, and of one token attending to another.
const MATMULS: u64 = 16 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192) + 2048 * 32_000;
const ATTENDS: u64 = 2 * 2048 * 16;

#[test]
fn steps_have_the_work_of_the_sequences_in_them() {
    let scratch = Scratch::served();
    let metrics = scratch.json("run", "metrics.json");
    let array = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let steps = array(&metrics["steps"]["list"]);
    let mut modelled = vec![0; steps.len()];
    let mut decoding = vec![0; steps.len()];
    for request in array(&metrics["requests"]) {
        let mut context = 0;
        for part in array(&request["steps"]) {
            let (step, tokens) = (part["step"].as_u64().unwrap() as usize, part["tokens"].as_u64().unwrap());
            context += tokens;
            modelled[step] += 2 * (MATMULS + ATTENDS * context);
            decoding[step] += u64::from(part["work"] == "decode");
        }
    }
    let decode: Vec<usize> = (0..steps.len()).filter(|step| steps[*step]["label"] == "decode").collect();
    assert!(decode.len() > 200, "{}", decode.len());
    for step in decode {
        assert_eq!(steps[step]["batch"]["generation"]["sequences"], decoding[step], "step {step}");
        assert_eq!(steps[step]["work"]["flops_matrix"], modelled[step], "step {step}");
    }
    let with_prompts = steps.iter().filter(|step| step["batch"]["context"]["sequences"].as_u64() > Some(0));
    for step in with_prompts {
        let tokens = step["batch"]["tokens"].as_u64().unwrap();
        // Logits are of the last position alone.
        let layers = 2 * (MATMULS - 2048 * 32_000) * tokens;
        assert!(step["work"]["flops_matrix"].as_u64() > Some(layers), "{step}");
    }
    // The trace is thinned, so that kernels are quicker than any device could be.
    assert!(steps.iter().all(|step| step["work"]["mfu"].is_null() && step["work"]["roofline_ns"].is_null()));
}
