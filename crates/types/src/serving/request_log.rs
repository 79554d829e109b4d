//! Requests as their client saw them.

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, Nanos};

/// What a client recorded of its requests, in the order of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLog {
    /// What wrote it.
    pub source: RequestSource,
    /// The clock of its times.
    pub clock: RequestClock,
    /// One by one.
    pub requests: Vec<RequestRecord>,
    /// How long the load took, as the client says.
    pub duration_ns: Option<Nanos>,
    /// Whether requests list every chunk; otherwise only the first and the last, and times between chunks are unknown.
    #[serde(default = "yes")]
    pub every_chunk: bool,
}

/// Logs list every chunk unless they say otherwise.
pub(super) const fn yes() -> bool {
    true
}

/// What wrote a file of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestSource {
    /// `llm-perf serve`.
    LlmPerf,
    /// `vllm bench serve --save-result --save-detailed`.
    VllmBench,
    /// `sglang.bench_serving --output-details`.
    SglangBench,
    /// AIPerf's `profile_export.jsonl`.
    Aiperf,
    /// GuideLLM's JSON.
    Guidellm,
    /// inference-perf's `per_request_lifecycle_metrics.json`.
    InferencePerf,
}

/// What the times of requests are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestClock {
    /// Unix time.
    Epoch,
    /// A monotonic clock of the client's machine.
    Monotonic,
    /// No request says when it started.
    Unknown,
}

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// Its id, as the client or the server names it.
    pub id: Option<String>,
    /// When it was due, on the clock of the log; latencies are counted from here.
    pub due_ns: Option<Nanos>,
    /// When the client sent it, on the same clock.
    pub sent_ns: Option<Nanos>,
    /// When every chunk of the output arrived, since it was due; empty where it got none.
    #[serde(default)]
    pub chunks_ns: Vec<Nanos>,
    /// When the response ended, since it was due.
    pub end_ns: Option<Nanos>,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the output.
    pub output_tokens: Option<u64>,
    /// Why it failed; absent where it did not.
    pub error: Option<String>,
}

impl RequestRecord {
    /// Whether it ran to its end.
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && !self.chunks_ns.is_empty()
    }

    /// Time to first token: the first chunk of output.
    pub fn first_token(&self) -> Option<Nanos> {
        self.chunks_ns.first().copied()
    }

    /// End to end: to the last chunk of output.
    pub fn latency(&self) -> Option<Nanos> {
        self.chunks_ns.last().copied()
    }

    /// Time per output token after the first; absent for a single one.
    pub fn per_token(&self) -> Option<f64> {
        let tokens = self.output_tokens?.checked_sub(1).filter(|tokens| *tokens > 0)?;
        Some((self.latency()? - self.first_token()?).get() as f64 / tokens as f64)
    }

    /// Times between chunks.
    pub fn between_tokens(&self) -> impl Iterator<Item = Nanos> {
        self.chunks_ns.windows(2).map(|pair| pair[1] - pair[0])
    }
}
