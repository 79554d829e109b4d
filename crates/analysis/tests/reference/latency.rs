//! Latencies of results of `vllm bench serve`, compared with the figures it wrote into them.

use llm_perf_analysis::{Evidence, JoinedRequests, Subject, metrics, served_load};
use serde_json::Value;
use testkit::need::reference;
use types::{Latency, ServedLoad};

const FILES: [&str; 6] = ["8b/warm", "8b/slow", "8b/fast", "8b/traced", "1b/plain", "1b/traced"];

pub(crate) fn latencies_of_vllm_results_are_those_vllm_prints() {
    for file in FILES {
        let bytes = std::fs::read(reference(&format!("serving/llama-{file}.json"))).unwrap();
        let says: Value = serde_json::from_slice(&bytes).unwrap();
        let log = ingest::requests::read(file, &bytes).unwrap();
        compare(file, &served_load(&log, None), &says);
    }
}

pub(crate) fn only_the_server_that_compiled_under_its_load_was_cold() {
    for file in FILES {
        let bytes = std::fs::read(reference(&format!("serving/llama-{file}.json"))).unwrap();
        let log = ingest::requests::read(file, &bytes).unwrap();
        let requests = Some(JoinedRequests::of_client(&log, None));
        let findings = metrics(&Subject::default(), &Evidence { requests, ..Evidence::default() }).conclusions.findings;
        let cold = findings.iter().find(|finding| finding.rule == "cold-requests");
        assert_eq!(cold.is_some(), file == "1b/plain", "{file}: {cold:?}");
        let Some(cold) = cold else { continue };
        // It sends 96 requests at 24 a second; output starts after half a second.
        let facts = &cold.quantities;
        assert_eq!((facts.count("requests"), facts.count("all")), (Some(20), Some(96)));
        let wait = facts.time("wait").unwrap().as_millis();
        assert!((wait - 508.0).abs() < 1.0 && facts.time("longest").unwrap().as_millis() < 70.0, "{facts:?}");
    }
}

fn compare(file: &str, load: &ServedLoad, says: &Value) {
    let near = |found: f64, key: &str| {
        let expected = says[key].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-4, "{file}: {key} is {expected}, found {found}");
    };
    assert_eq!((load.completed, load.failed), (says["completed"].as_u64().unwrap(), 0), "{file}");
    near(load.request_throughput.unwrap(), "request_throughput");
    near(load.output_throughput.unwrap(), "output_throughput");
    near(load.input_throughput.unwrap() + load.output_throughput.unwrap(), "total_token_throughput");
    // vLLM counts every request of a second as concurrent.
    assert!(load.max_concurrency.unwrap() <= says["max_concurrent_requests"].as_u64().unwrap(), "{file}");
    for (name, latency) in [("ttft", load.ttft), ("tpot", load.tpot), ("itl", load.itl), ("e2el", load.e2el)] {
        let latency = latency.unwrap();
        near(latency.mean.ns.as_millis(), &format!("mean_{name}_ms"));
        near(latency.p50.ns.as_millis(), &format!("median_{name}_ms"));
        near(latency.p99.ns.as_millis(), &format!("p99_{name}_ms"));
        check_intervals(file, &latency);
    }
}

fn check_intervals(file: &str, latency: &Latency) {
    for figure in [latency.mean, latency.p50, latency.p90, latency.p99] {
        let (low, high) = (figure.low_ns.unwrap(), figure.high_ns.unwrap());
        assert!(low <= figure.ns && figure.ns <= high && low < high, "{file}: {latency:?}");
    }
}
