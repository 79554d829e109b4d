//! AIPerf's `profile_export.jsonl`: one request per line, on Unix time.
//!
//! Source: `MetricRecordInfo` in `aiperf/common/models/record_models.py` and `docs/tutorials/working-with-profile-exports.md`.

use serde::Deserialize;
use types::{Nanos, RequestClock, RequestLog, RequestRecord, RequestSource};

use super::text::{RequestText, request};
use super::time::{NotATime, chunks, nanos};
use crate::IngestError;

/// Nanoseconds of a millisecond, in which latencies are.
const MILLISECOND: f64 = 1e6;

/// One line.
#[derive(Deserialize)]
struct Line {
    metadata: Metadata,
    metrics: Option<Metrics>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Metadata {
    x_request_id: Option<String>,
    request_start_ns: i64,
    request_end_ns: Option<i64>,
    benchmark_phase: Option<String>,
}

#[derive(Default, Deserialize)]
struct Metrics {
    time_to_first_token: Option<Metric<f64>>,
    inter_chunk_latency: Option<Metric<Vec<f64>>>,
    request_latency: Option<Metric<f64>>,
    input_sequence_length: Option<Metric<f64>>,
    output_sequence_length: Option<Metric<f64>>,
    /// The prompt of a failed request.
    error_isl: Option<Metric<f64>>,
}

#[derive(Deserialize)]
struct Metric<T> {
    value: T,
    unit: String,
}

#[derive(Deserialize)]
struct Failure {
    r#type: Option<String>,
    message: Option<String>,
}

/// Reads every request but those of a warm-up.
pub(super) fn read(text: &RequestText<'_>) -> Result<RequestLog, IngestError> {
    let mut lines = text.values::<Line>()?;
    lines.retain(|line| line.metadata.benchmark_phase.as_deref() != Some("warmup"));
    let mut every_chunk = true;
    let mut requests = Vec::with_capacity(lines.len());
    for (index, line) in lines.into_iter().enumerate() {
        let metrics = line.metrics.unwrap_or_default();
        let chunks_ns = metrics.chunks(text, index)?;
        every_chunk &= metrics.inter_chunk_latency.is_some() || chunks_ns.len() < 2;
        let start = line.metadata.request_start_ns;
        let input = metrics.input_sequence_length.or(metrics.error_isl);
        requests.push(RequestRecord {
            id: line.metadata.x_request_id,
            due_ns: Some(Nanos::new(start)),
            sent_ns: Some(Nanos::new(start)),
            chunks_ns,
            end_ns: line.metadata.request_end_ns.map(|end| Nanos::new(end) - Nanos::new(start)),
            input_tokens: input.and_then(count),
            output_tokens: metrics.output_sequence_length.and_then(count),
            error: line.error.map(Failure::words),
        });
    }
    let (source, clock) = (RequestSource::Aiperf, RequestClock::Epoch);
    Ok(RequestLog { source, clock, requests, duration_ns: None, every_chunk })
}

impl Metrics {
    /// When chunks arrive: all of them, or else the first and the last.
    fn chunks(&self, text: &RequestText<'_>, index: usize) -> Result<Vec<Nanos>, IngestError> {
        let Self { time_to_first_token: first, inter_chunk_latency: gaps, request_latency: last, .. } = self;
        let Some(first) = first else { return Ok(Vec::new()) };
        let units = [Some(&first.unit), gaps.as_ref().map(|gaps| &gaps.unit), last.as_ref().map(|last| &last.unit)];
        if let Some(unit) = units.into_iter().flatten().find(|unit| *unit != "ms") {
            let reason = format!("unexpected unit `{unit}` of a latency");
            return Err(text.refused(request(index), reason, "expected ms"));
        }
        let found = match (gaps, last) {
            (Some(gaps), _) => chunks(first.value, &gaps.value, MILLISECOND),
            (None, Some(last)) => ends(first.value, last.value),
            (None, None) => chunks(first.value, &[], MILLISECOND),
        };
        found.map_err(|NotATime| text.no_time(index))
    }
}

/// The first and the last chunk, or the only one.
fn ends(first: f64, last: f64) -> Result<Vec<Nanos>, NotATime> {
    let mut ends = vec![nanos(first, MILLISECOND)?, nanos(last, MILLISECOND)?];
    ends.dedup();
    Ok(ends)
}

impl Failure {
    /// What went wrong, in the client's words.
    fn words(self) -> String {
        let words: Vec<String> = [self.r#type, self.message].into_iter().flatten().collect();
        words.join(": ")
    }
}

/// A number of tokens, which AIPerf may write as a fraction; absent where it is none.
fn count(metric: Metric<f64>) -> Option<u64> {
    let value = metric.value;
    ((0.0..9e15).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}
