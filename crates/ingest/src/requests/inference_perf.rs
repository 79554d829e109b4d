//! inference-perf's `per_request_lifecycle_metrics.json`: a list of requests, timed with Python's `perf_counter`.
//!
//! Sources: `inference_perf/reportgen/base.py` and `inference_perf/apis/base.py`. Tokens are beneath `response_metrics` since
//! 0.6, beneath `response_info` in 0.5 and directly beneath `info` before; 0.1 has none.

use serde::Deserialize;
use types::{RequestClock, RequestLog, RequestRecord, RequestSource};

use super::text::RequestText;
use super::time::{NotATime, SECOND, nanos};
use crate::IngestError;

/// One request.
#[derive(Deserialize)]
struct Lifecycle {
    start_time: f64,
    end_time: f64,
    info: Option<Info>,
    error: Option<Failure>,
}

#[derive(Default, Deserialize)]
struct Info {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_token_times: Option<Vec<f64>>,
    #[serde(alias = "response_info")]
    response_metrics: Option<Output>,
}

/// What arrived. Tokens of one chunk have the same time.
#[derive(Deserialize)]
struct Output {
    output_tokens: Option<u64>,
    output_token_times: Option<Vec<f64>>,
}

#[derive(Deserialize)]
struct Failure {
    error_type: String,
    error_msg: String,
}

/// Reads the list.
pub(super) fn read(text: &RequestText<'_>) -> Result<RequestLog, IngestError> {
    let list: Vec<Lifecycle> = text.first()?;
    let record = |(index, request): (usize, Lifecycle)| request.record().map_err(|NotATime| text.no_time(index));
    let requests = list.into_iter().enumerate().map(record).collect::<Result<_, _>>()?;
    let (source, clock) = (RequestSource::InferencePerf, RequestClock::Monotonic);
    Ok(RequestLog { source, clock, requests, duration_ns: None, every_chunk: true })
}

impl Lifecycle {
    /// The record.
    fn record(self) -> Result<RequestRecord, NotATime> {
        let info = self.info.unwrap_or_default();
        let output = info
            .response_metrics
            .unwrap_or(Output { output_tokens: info.output_tokens, output_token_times: info.output_token_times });
        let since = |time: f64| nanos(time - self.start_time, SECOND);
        let mut chunks_ns =
            output.output_token_times.unwrap_or_default().into_iter().map(since).collect::<Result<Vec<_>, _>>()?;
        chunks_ns.dedup();
        let due_ns = Some(nanos(self.start_time, SECOND)?);
        Ok(RequestRecord {
            id: None,
            due_ns,
            sent_ns: due_ns,
            chunks_ns,
            end_ns: Some(since(self.end_time)?),
            input_tokens: info.input_tokens,
            output_tokens: output.output_tokens,
            error: self.error.map(|error| format!("{}: {}", error.error_type, error.error_msg)),
        })
    }
}
