//! Results of `vllm bench serve`.

use llm_perf_ingest::requests;
use serde_json::Value;
use testkit::need::reference;
use types::RequestRecord;

const FILES: [&str; 6] = ["8b/warm", "8b/slow", "8b/fast", "8b/traced", "1b/plain", "1b/traced"];

pub(crate) fn results_of_vllm_have_the_totals_they_say() {
    for file in FILES {
        let bytes = std::fs::read(reference(&format!("serving/llama-{file}.json"))).unwrap();
        let says: Value = serde_json::from_slice(&bytes).unwrap();
        let log = requests::read(file, &bytes).unwrap();
        let sum = |tokens: fn(&RequestRecord) -> Option<u64>| log.requests.iter().filter_map(tokens).sum::<u64>();
        assert_eq!(log.requests.len() as u64, says["num_prompts"], "{file}");
        let completed = log.requests.iter().filter(|request| request.succeeded()).count();
        assert_eq!(completed as u64, says["completed"], "{file}");
        assert_eq!(sum(|request| request.input_tokens), says["total_input_tokens"], "{file}");
        assert_eq!(sum(|request| request.output_tokens), says["total_output_tokens"], "{file}");
        // A chunk per token, but for a few tokens that arrive with another.
        let chunks: usize = log.requests.iter().map(|request| request.chunks_ns.len()).sum();
        let tokens = says["total_output_tokens"].as_u64().unwrap();
        assert!((tokens - 2..=tokens).contains(&(chunks as u64)), "{file}: {chunks} chunks of {tokens} tokens");
    }
}
