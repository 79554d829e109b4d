//! AIPerf's `profile_export.jsonl`: one request per line, on Unix time.
//!
//! Source: `MetricRecordInfo` in `aiperf/common/models/record_models.py` and `docs/tutorials/working-with-profile-exports.md`.

use serde::Deserialize;
use types::{Nanos, RequestClock, RequestLog, RequestRecord, RequestSource};

use super::text::{RequestText, request};
use super::time::{NotATime, chunks, nanos};
use crate::IngestError;

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
        let Some(first) = &self.time_to_first_token else { return Ok(Vec::new()) };
        let first_unit = unit(text, index, &first.unit)?;
        let found = match (&self.inter_chunk_latency, &self.request_latency) {
            (Some(gaps), _) if gaps.unit != first.unit => return Err(unknown_unit(text, index, &gaps.unit)),
            (Some(gaps), _) => chunks(first.value, &gaps.value, first_unit),
            (None, Some(last)) => ends(first.value, first_unit, last.value, unit(text, index, &last.unit)?),
            (None, None) => chunks(first.value, &[], first_unit),
        };
        found.map_err(|NotATime| text.no_time(index))
    }
}

/// The first and the last chunk, or the only one.
fn ends(first: f64, first_unit: f64, last: f64, last_unit: f64) -> Result<Vec<Nanos>, NotATime> {
    let mut ends = vec![nanos(first, first_unit)?, nanos(last, last_unit)?];
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

/// Nanoseconds of a unit.
fn unit(text: &RequestText<'_>, index: usize, name: &str) -> Result<f64, IngestError> {
    match name {
        "ns" => Ok(1.0),
        "us" => Ok(1e3),
        "ms" => Ok(1e6),
        "sec" | "s" => Ok(1e9),
        _ => Err(unknown_unit(text, index, name)),
    }
}

fn unknown_unit(text: &RequestText<'_>, index: usize, name: &str) -> IngestError {
    let reason = format!("unexpected unit `{name}` of a latency");
    text.refused(request(index), reason, "expected ms, the same for the latencies of a request")
}

/// A number of tokens, which AIPerf may write as a fraction; absent where it is none.
fn count(metric: Metric<f64>) -> Option<u64> {
    let value = metric.value;
    ((0.0..9e15).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}
