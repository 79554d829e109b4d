//! Requests of every load generator, good and bad.

use std::io::Write;

use llm_perf_ingest::{IngestError, requests};
use proptest::prelude::*;
use serde_json::{Value, json};
use types::{Failure, Nanos, RequestClock, RequestLog, RequestRecord, RequestSource};

const VLLM: &str = include_str!("fixtures/requests/vllm-warm.json");
const SGLANG: &str = include_str!("fixtures/requests/sglang.jsonl");
const AIPERF: &str = include_str!("fixtures/requests/aiperf.jsonl");
const GUIDELLM: &str = include_str!("fixtures/requests/guidellm.json");
const GUIDELLM_0_3: &str = include_str!("fixtures/requests/guidellm-0.3.json");
const INFERENCE_PERF: &str = include_str!("fixtures/requests/inference-perf.json");
const OWN: &str = include_str!("fixtures/requests/requests.jsonl");
const ALL: [&str; 7] = [VLLM, SGLANG, AIPERF, GUIDELLM, GUIDELLM_0_3, INFERENCE_PERF, OWN];

fn read(text: &str) -> RequestLog {
    requests::read("requests.json", text.as_bytes()).unwrap()
}

/// The message and the hint of what is refused.
fn refusal(text: &str) -> (String, String) {
    let error = requests::read("requests.json", text.as_bytes()).unwrap_err();
    (error.to_string(), error.hint().unwrap())
}

fn chunks(record: &RequestRecord) -> Vec<i64> {
    record.chunks_ns.iter().map(|time| time.get()).collect()
}

/// The vLLM result with a key replaced, or removed where the value is null.
fn changed(key: &str, value: Value) -> String {
    let mut result: Value = serde_json::from_str(VLLM).unwrap();
    result[key] = value;
    if result[key].is_null() {
        result.as_object_mut().unwrap().remove(key);
    }
    result.to_string()
}

#[test]
fn a_result_of_vllm_has_the_tokens_and_times_it_says() {
    let log = read(VLLM);
    assert_eq!((log.source, log.clock, log.every_chunk), (RequestSource::VllmBench, RequestClock::Monotonic, true));
    assert_eq!(log.duration_ns, Some(Nanos::new(589_041_772)));
    assert_eq!(log.requests.iter().filter(|request| request.succeeded()).count(), 16);
    assert_eq!(log.requests.iter().filter_map(|request| request.input_tokens).sum::<u64>(), 4096);
    assert_eq!(log.requests.iter().filter_map(|request| request.output_tokens).sum::<u64>(), 256);
    let first = &log.requests[0];
    assert_eq!(first.due_ns, Some(Nanos::new(219_586_559_113)));
    assert_eq!(first.first_token(), Some(Nanos::new(42_662_073)));
    assert_eq!(first.chunks_ns.len(), 16);
    assert_eq!(first.end_ns, first.latency());
}

#[test]
fn a_result_of_vllm_without_details_names_the_option_it_lacks() {
    let (message, hint) = refusal(&changed("ttfts", Value::Null));
    assert!(message.starts_with("requests.json") && message.contains("`ttfts`"), "{message}");
    assert!(hint.contains("--save-detailed"), "{hint}");
    let (_, hint) = refusal(&SGLANG.replace("\"itls\"", "\"other\""));
    assert!(hint.contains("--output-details"), "{hint}");
}

#[test]
fn a_list_of_another_length_is_named() {
    let (message, _) = refusal(&changed("input_lens", json!([1, 2])));
    assert_eq!(message, "requests.json: `input_lens`: has 2 elements, `ttfts` has 16");
    let (message, _) = refusal(&changed("start_times", json!([1.0])));
    assert!(message.contains("`start_times`: has 1 elements"), "{message}");
}

#[test]
fn a_failed_request_of_vllm_has_its_error_and_no_chunks() {
    let mut result: Value = serde_json::from_str(VLLM).unwrap();
    result["errors"][3] = json!("Bad Gateway");
    (result["ttfts"][3], result["itls"][3], result["output_lens"][3]) = (json!(0.0), json!([]), json!(0));
    let failed = &read(&result.to_string()).requests[3];
    assert_eq!((failed.error.as_deref(), failed.chunks_ns.len(), failed.end_ns), (Some("Bad Gateway"), 0, None));
    assert!(!failed.succeeded() && failed.due_ns.is_some());
}

#[test]
fn the_last_appended_run_of_sglang_is_read_without_start_times() {
    let log = read(SGLANG);
    assert_eq!((log.source, log.clock), (RequestSource::SglangBench, RequestClock::Unknown));
    assert_eq!((log.requests.len(), log.duration_ns), (3, Some(Nanos::new(750_000_000))));
    assert_eq!(chunks(&log.requests[0]), [40_000_000, 50_000_000, 70_000_000]);
    assert_eq!(log.requests[2].error.as_deref(), Some("Service Unavailable: busy"));
    assert!(log.requests.iter().all(|request| request.due_ns.is_none()));
}

#[test]
fn records_of_aiperf_are_on_unix_time_and_leave_out_the_warm_up() {
    let log = read(AIPERF);
    assert_eq!((log.source, log.clock, log.every_chunk), (RequestSource::Aiperf, RequestClock::Epoch, true));
    let [first, second] = &log.requests[..] else { panic!("{log:?}") };
    assert_eq!((first.id.as_deref(), first.due_ns), (Some("first"), Some(Nanos::new(1_759_813_207_532_900_363))));
    assert_eq!(chunks(first), [19_845_982, 24_744_419, 30_060_425]);
    assert_eq!((first.input_tokens, first.output_tokens), (Some(550), Some(3)));
    assert_eq!(first.end_ns, Some(Nanos::new(30_060_425)));
    assert_eq!((second.input_tokens, second.chunks_ns.len()), (Some(540), 0));
    let error = second.error.as_deref().unwrap();
    assert_eq!(error, "RequestCancellationError: Request was cancelled after 0.000 seconds");
}

#[test]
fn aiperf_without_gaps_has_the_first_and_the_last_chunk_only() {
    let log = read(&AIPERF.replace("inter_chunk_latency", "other"));
    assert_eq!((chunks(&log.requests[0]), log.every_chunk), (vec![19_845_982, 30_060_425], false));
    let (message, _) = refusal(&AIPERF.replace("19.845982, \"unit\": \"ms\"", "19.8, \"unit\": \"tokens\""));
    assert_eq!(message, "requests.json: request 1: unexpected unit `tokens` of a latency");
}

#[test]
fn requests_of_guidellm_have_two_known_chunks_in_old_and_new_versions() {
    let log = read(GUIDELLM);
    assert_eq!((log.source, log.clock, log.every_chunk), (RequestSource::Guidellm, RequestClock::Epoch, false));
    let [done, cut, failed] = &log.requests[..] else { panic!("{log:?}") };
    assert_eq!((done.id.as_deref(), done.due_ns), (Some("cmpl-1"), Some(Nanos::new(1_759_813_207_500_000_000))));
    assert_eq!((chunks(done), done.end_ns), (vec![125_000_000, 375_000_000], Some(Nanos::new(500_000_000))));
    assert_eq!((cut.error.as_deref(), chunks(cut)), (Some("incomplete"), vec![250_000_000]));
    assert_eq!((failed.error.as_deref(), failed.due_ns), (Some("connection refused"), None));
    let old = read(GUIDELLM_0_3);
    assert_eq!(chunks(&old.requests[0]), [125_000_000, 750_000_000]);
    assert_eq!((old.requests[0].input_tokens, old.requests[0].output_tokens), (Some(256), Some(128)));
    assert_eq!((old.requests[1].error.as_deref(), old.requests[1].chunks_ns.len()), (Some("timeout"), 0));
}

#[test]
fn several_benchmarks_or_a_sample_of_one_are_not_a_load() {
    let mut report: Value = serde_json::from_str(GUIDELLM).unwrap();
    report["benchmarks"][0]["metrics"]["request_totals"]["total"] = json!(4);
    let (message, hint) = refusal(&report.to_string());
    assert!(message.contains("lists 3 of 4 requests") && hint.contains("--sample-requests"), "{message}: {hint}");
    let again = report["benchmarks"][0].clone();
    report["benchmarks"].as_array_mut().unwrap().push(again);
    let (message, _) = refusal(&report.to_string());
    assert!(message.contains("has 2 benchmarks"), "{message}");
}

#[test]
fn tokens_of_one_chunk_of_inference_perf_are_one_chunk() {
    let log = read(INFERENCE_PERF);
    assert_eq!((log.source, log.clock), (RequestSource::InferencePerf, RequestClock::Monotonic));
    let [streamed, older, failed] = &log.requests[..] else { panic!("{log:?}") };
    assert_eq!(chunks(streamed), [125_000_000, 187_500_000, 250_000_000]);
    assert_eq!((streamed.input_tokens, streamed.output_tokens), (Some(12), Some(4)));
    assert_eq!(streamed.end_ns, Some(Nanos::new(312_500_000)));
    assert_eq!((chunks(older), older.output_tokens), (vec![250_000_000, 375_000_000], Some(2)));
    assert_eq!(failed.error.as_deref(), Some("TimeoutError: too slow"));
}

#[test]
fn every_log_survives_our_own_format_compressed_or_not() {
    for text in ALL {
        let log = read(text);
        let lines = log.to_json_lines();
        assert_eq!(read(&lines), log);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(lines.as_bytes()).unwrap();
        assert_eq!(requests::read("requests.jsonl.gz", &encoder.finish().unwrap()).unwrap(), log);
    }
    assert_eq!(read(OWN).requests[1].error.as_deref(), Some("HTTP 503"));
}

#[test]
fn other_schemas_and_newer_versions_are_refused() {
    let (message, _) = refusal(&OWN.replace("requests/1", "requests/2"));
    assert_eq!(message, "requests.json: llm-perf/requests version 2 is newer than 1, the newest supported version");
    assert!(refusal(&OWN.replace("requests/1", "metrics/1")).0.contains("its schema is `llm-perf/metrics/1`"));
    assert!(refusal("{\"traceEvents\": []}").0.starts_with("requests.json is not a file of requests"));
    assert!(matches!(requests::read("r", b" \n"), Err(IngestError::Empty { .. })));
}

#[test]
fn times_that_are_none_are_refused_with_their_place() {
    let with = |ttft: &str| VLLM.replace("0.042662073000002465", ttft);
    for (ttft, expected) in [
        ("-0.5", "request 1: times are negative"),
        ("1e300", "request 1: a time is not a number of nanoseconds"),
        ("NaN", "line 1, column"),
        ("1e999", "not JSON: number out of range"),
        ("\"x\"", "invalid type: string \"x\", expected f64"),
    ] {
        let (message, hint) = refusal(&with(ttft));
        assert!(message.contains(expected), "{ttft}: {message}");
        assert!(!hint.is_empty());
    }
    assert!(refusal(&with("NaN")).0.contains("NaN and Infinity are read as null"));
    let (message, _) = refusal(&OWN.replace("45000000", "39000000"));
    assert!(message.contains("request 1") && message.contains("precedes"), "{message}");
}

#[test]
fn a_load_without_requests_or_without_streaming_is_refused() {
    assert!(refusal("[]").0.contains("there are no requests"));
    assert!(refusal(OWN.lines().next().unwrap()).0.contains("there are no requests"));
    let (message, hint) = refusal(r#"[{"start_time": 1.0, "end_time": 2.0, "request": "", "error": null}]"#);
    assert!(message.contains("no request has a time to first token") && hint.contains("streaming"), "{message}");
}

#[test]
fn a_million_chunks_are_read() {
    let gaps = vec!["0.001"; 1_000_000].join(",");
    let text = format!(
        r#"{{"ttfts": [0.5], "itls": [[{gaps}]], "input_lens": [1], "output_lens": [1000001], "errors": [""]}}"#
    );
    let log = read(&text);
    assert_eq!(log.requests[0].latency(), Some(Nanos::new(1_000_500_000_000)));
}

#[test]
fn a_file_cut_at_any_byte_never_panics() {
    for text in ALL {
        for end in (0..text.len()).step_by(7) {
            let _ = requests::read("cut", &text.as_bytes()[..end]);
        }
    }
    let cut = &VLLM.as_bytes()[..VLLM.len() - 2];
    assert!(matches!(requests::read("cut", cut), Err(IngestError::NotJson { .. })));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = requests::read("any", &bytes);
    }
}
