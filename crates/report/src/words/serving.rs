//! What people call the parts of a request's latency, the clients that measure it, and the latencies that are acceptable.

use types::{Nanos, Objective, RequestSource};

use super::kind::Phrase;

/// A part of a latency: its name in files, what people call it, and what it is.
const PARTS: [(&str, &str, &str); 8] = [
    ("queue", "queue", "from when the request was due until the engine prepares its first step, network included"),
    ("own_prefill", "own prefill", "steps that process its prompt, without the share of other prompts"),
    ("other_prefill", "others' prefill", "time that prompts of other requests take of steps it waits for"),
    ("decode", "decode", "decode steps, without the share of prompts"),
    ("host", "host", "the GPU waits for the host between steps"),
    ("recompute", "recompute", "tokens processed again after a preemption, and the wait for that"),
    ("return", "return", "from the end of its last step until the client has the last output"),
    ("unexplained", "unexplained", "the trace does not show it"),
];

/// A part of a latency, by its name in files.
pub(crate) fn part(name: &str) -> &'static str {
    PARTS.iter().find(|(known, ..)| *known == name).map_or("other", |(_, phrase, _)| phrase)
}

/// What that part is.
pub(crate) fn part_meaning(name: &str) -> &'static str {
    PARTS.iter().find(|(known, ..)| *known == name).map_or("", |(.., meaning)| meaning)
}

/// A row of a comparison of requests, by its name in files: `ttft: p99`, a part of a latency, or `load`.
pub(crate) fn compared(name: &str) -> String {
    match name.split_once(": ") {
        Some((latency, figure)) => format!("{} {figure}", latency.to_uppercase()),
        None if name == "load" => "load, per output token".to_owned(),
        None => part(name).to_owned(),
    }
}

/// Behind "as measured by".
impl Phrase for RequestSource {
    fn phrase(self) -> &'static str {
        match self {
            Self::LlmPerf => "llm-perf serve",
            Self::VllmBench => "vllm bench serve",
            Self::SglangBench => "sglang.bench_serving",
            Self::Aiperf => "AIPerf",
            Self::Guidellm => "GuideLLM",
            Self::InferencePerf => "inference-perf",
        }
    }
}

/// `TTFT up to 200 ms and ITL up to 30 ms`.
pub(crate) fn objective(objective: &Objective) -> String {
    let limits = [
        ("TTFT", objective.ttft_ns),
        ("TPOT", objective.tpot_ns),
        ("mean ITL", objective.itl_ns),
        ("E2EL", objective.e2el_ns),
    ];
    let limit = |(name, limit): (&str, Option<Nanos>)| Some(format!("{name} up to {}", limit?));
    limits.into_iter().filter_map(limit).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_words() {
        for (name, _) in types::RequestParts::default().named() {
            assert!(part(name) != "other" && !part_meaning(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn an_objective_names_its_limits() {
        let limits = "ttft=200ms,itl=30ms".parse().unwrap();
        assert_eq!(objective(&limits), "TTFT up to 200 ms and mean ITL up to 30.0 ms");
    }
}
