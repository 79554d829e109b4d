//! Requests as the clients of load generators recorded them.
//!
//! The format is told from the keys of the first object. Each reader gives back what its file says, with times in whole
//! nanoseconds since the request was sent; latencies and their statistics are computed elsewhere. A file may hold several
//! loads, but a log holds one: appended results count by their last line, and several benchmarks are refused.

mod aiperf;
mod bench;
mod guidellm;
mod inference_perf;
mod own;
mod text;
mod time;

use std::borrow::Cow;
use std::io::Read;

use serde::Deserialize;
use serde::de::IgnoredAny;
use types::{Nanos, RequestLog, RequestRecord, RequestSource};

use crate::IngestError;
use crate::compressed::Compression;
use text::RequestText;

/// What a file of requests may be, for messages.
const EXPECTED: &str = "a file of requests (`vllm bench serve --save-result --save-detailed`, `sglang.bench_serving \
                        --output-details`, AIPerf, GuideLLM, inference-perf or llm-perf)";

/// The most that a compressed file may hold: fifty thousand requests of a thousand tokens.
const MOST_DECODED: u64 = 1 << 30;

/// Keys of the first object that tell the formats apart.
#[derive(Deserialize)]
struct Keys {
    schema: Option<IgnoredAny>,
    benchmarks: Option<IgnoredAny>,
    metadata: Option<IgnoredAny>,
    metrics: Option<IgnoredAny>,
    ttfts: Option<IgnoredAny>,
    mean_ttft_ms: Option<IgnoredAny>,
    total_output_tokens_retokenized: Option<IgnoredAny>,
}

/// Reads a file of requests in any of the formats, compressed or not. `file_name` is only used in messages.
pub fn read(file_name: &str, bytes: &[u8]) -> Result<RequestLog, IngestError> {
    let bytes = decoded(file_name, bytes)?;
    let text = RequestText::new(file_name, &bytes)?;
    let log = match source(&text)? {
        RequestSource::LlmPerf => own::read(&text),
        source @ (RequestSource::VllmBench | RequestSource::SglangBench) => bench::read(&text, source),
        RequestSource::Aiperf => aiperf::read(&text),
        RequestSource::Guidellm => guidellm::read(&text),
        RequestSource::InferencePerf => inference_perf::read(&text),
    }?;
    check(&text, &log)?;
    Ok(log)
}

fn decoded<'a>(file: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, IngestError> {
    let Some(compression) = Compression::of(bytes) else { return Ok(Cow::Borrowed(bytes)) };
    let mut contents = Vec::new();
    let damaged = |error: std::io::Error| IngestError::Damaged {
        file: file.to_owned(),
        place: "its compressed contents".to_owned(),
        reason: error.to_string(),
    };
    compression.decoder(bytes).take(MOST_DECODED + 1).read_to_end(&mut contents).map_err(damaged)?;
    if contents.len() as u64 > MOST_DECODED {
        return Err(IngestError::TooLarge { file: file.to_owned(), offset: 0, limit: MOST_DECODED });
    }
    Ok(Cow::Owned(contents))
}

/// What wrote a file.
fn source(text: &RequestText<'_>) -> Result<RequestSource, IngestError> {
    if text.is_list() {
        return Ok(RequestSource::InferencePerf);
    }
    let keys: Keys = text.first()?;
    match keys {
        Keys { schema: Some(_), .. } => Ok(RequestSource::LlmPerf),
        Keys { benchmarks: Some(_), .. } => Ok(RequestSource::Guidellm),
        Keys { metadata: Some(_), metrics: Some(_), .. } => Ok(RequestSource::Aiperf),
        Keys { total_output_tokens_retokenized: Some(_), .. } => Ok(RequestSource::SglangBench),
        Keys { ttfts: Some(_), .. } | Keys { mean_ttft_ms: Some(_), .. } => Ok(RequestSource::VllmBench),
        _ => Err(text.wrong_format("it has none of the keys of one")),
    }
}

/// What holds for the requests of every format.
fn check(text: &RequestText<'_>, log: &RequestLog) -> Result<(), IngestError> {
    let refused = |place: String, reason: &str, fix| Err(text.refused(place, reason.to_owned(), fix));
    if log.requests.is_empty() {
        return refused("the file".to_owned(), "there are no requests in it", "check the load generator's own output");
    }
    if let Some(at) = log.requests.iter().position(|request| !is_in_order(request)) {
        let reason = "times are negative, or output arrives before output that precedes it";
        return refused(text::request(at), reason, "record the load again; the client's clock was set meanwhile");
    }
    let finished = log.requests.iter().any(|request| request.error.is_none());
    if finished && log.requests.iter().all(|request| request.chunks_ns.is_empty()) {
        let fix = "record streamed responses (AIPerf: `--streaming`; inference-perf: `api.streaming: true`)";
        return refused("the file".to_owned(), "no request has a time to first token", fix);
    }
    Ok(())
}

fn is_in_order(request: &RequestRecord) -> bool {
    let times = [request.due_ns, request.sent_ns, request.end_ns, request.first_token()];
    times.into_iter().flatten().all(|time| time >= Nanos::ZERO) && request.chunks_ns.is_sorted()
}
