//! GuideLLM's `benchmarks.json`: requests by outcome, on Unix time, with their first and last token only.
//!
//! Sources: `src/guidellm/schemas/request_stats.py` and `info.py` of 0.4 to 0.7; `src/guidellm/benchmark/benchmark.py` of 0.2
//! and 0.3, whose requests have their times in other places.

use serde::Deserialize;
use types::{Nanos, RequestClock, RequestLog, RequestRecord, RequestSource};

use super::text::RequestText;
use super::time::{NotATime, SECOND, nanos};
use crate::IngestError;

/// The file.
#[derive(Deserialize)]
struct Report {
    benchmarks: Vec<Benchmark>,
}

/// One load.
#[derive(Deserialize)]
struct Benchmark {
    requests: Outcomes,
    /// Of 0.2 and 0.3; later beneath `metrics`.
    request_totals: Option<Totals>,
    metrics: Option<Metrics>,
}

#[derive(Deserialize)]
struct Metrics {
    request_totals: Option<Totals>,
}

#[derive(Deserialize)]
struct Totals {
    total: Option<u64>,
}

/// Requests by outcome.
#[derive(Deserialize)]
struct Outcomes {
    #[serde(default)]
    successful: Vec<Request>,
    #[serde(default)]
    incomplete: Vec<Request>,
    #[serde(default)]
    errored: Vec<Request>,
}

/// One request, in the words of all versions.
#[derive(Deserialize)]
struct Request {
    response_id: Option<String>,
    request_id: Option<String>,
    request_start_time: Option<f64>,
    request_end_time: Option<f64>,
    start_time: Option<f64>,
    end_time: Option<f64>,
    first_token_time: Option<f64>,
    last_token_time: Option<f64>,
    prompt_tokens: Option<u64>,
    output_tokens: Option<u64>,
    error: Option<String>,
    info: Option<Info>,
}

#[derive(Default, Deserialize)]
struct Info {
    #[serde(default)]
    timings: Timings,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
struct Timings {
    first_token_iteration: Option<f64>,
    last_token_iteration: Option<f64>,
}

/// Reads the one benchmark of a file. How long it took is not taken over: its window may leave out requests that are listed.
pub(super) fn read(text: &RequestText<'_>) -> Result<RequestLog, IngestError> {
    let mut benchmarks = text.first::<Report>()?.benchmarks;
    if benchmarks.len() > 1 {
        let reason = format!("has {} benchmarks, each a load of its own", benchmarks.len());
        let fix = "keep one of them, such as the first: `jq '.benchmarks |= .[:1]'`";
        return Err(text.refused("`/benchmarks`".to_owned(), reason, fix));
    }
    let outcomes = benchmarks.pop().map(|benchmark| benchmark.all_requests(text)).transpose()?.unwrap_or_default();
    let record = |(index, (request, outcome)): (usize, (Request, _))| {
        request.record(outcome).map_err(|NotATime| text.no_time(index))
    };
    let requests = outcomes.into_iter().enumerate().map(record).collect::<Result<_, _>>()?;
    let (source, clock) = (RequestSource::Guidellm, RequestClock::Epoch);
    Ok(RequestLog { source, clock, requests, duration_ns: None, every_chunk: false })
}

impl Benchmark {
    /// Every request, with what is said of it where it has no error of its own. A sample of them is refused: it is not
    /// the load.
    fn all_requests(self, text: &RequestText<'_>) -> Result<Vec<(Request, Option<&'static str>)>, IngestError> {
        let Outcomes { successful, incomplete, errored } = self.requests;
        let totals = self.request_totals.or_else(|| self.metrics?.request_totals);
        let outcomes = [(successful, None), (incomplete, Some("incomplete")), (errored, Some("errored"))];
        let tag = |(list, outcome): (Vec<Request>, _)| list.into_iter().map(move |request| (request, outcome));
        let requests: Vec<_> = outcomes.into_iter().flat_map(tag).collect();
        match totals.and_then(|totals| totals.total) {
            Some(total) if total > requests.len() as u64 => {
                let reason = format!("lists {} of {total} requests", requests.len());
                Err(text.refused("`/benchmarks/0/requests`".to_owned(), reason, "record all: no `--sample-requests`"))
            }
            _ => Ok(requests),
        }
    }
}

impl Request {
    /// The record.
    fn record(self, outcome: Option<&str>) -> Result<RequestRecord, NotATime> {
        let info = self.info.unwrap_or_default();
        let start = self.request_start_time.or(self.start_time);
        let first = info.timings.first_token_iteration.or(self.first_token_time);
        let last = info.timings.last_token_iteration.or(self.last_token_time);
        let mut chunks_ns = Vec::new();
        // 0.2 writes -1 for a token that did not arrive.
        for time in [first, last].into_iter().flatten().filter(|time| *time >= 0.0) {
            chunks_ns.extend(since(start, time)?);
        }
        chunks_ns.dedup();
        let due_ns = start.map(|start| nanos(start, SECOND)).transpose()?;
        let error = self.error.or(info.error);
        Ok(RequestRecord {
            id: self.response_id.or(self.request_id),
            due_ns,
            sent_ns: due_ns,
            chunks_ns,
            end_ns: self.request_end_time.or(self.end_time).map_or(Ok(None), |end| since(start, end))?,
            input_tokens: self.prompt_tokens,
            output_tokens: self.output_tokens,
            error: outcome.map(|outcome| error.unwrap_or_else(|| outcome.to_owned())),
        })
    }
}

/// A time since the start, where that is known. Seconds are subtracted before they are rounded: Unix time in a double is only
/// good to a quarter of a microsecond.
fn since(start: Option<f64>, time: f64) -> Result<Option<Nanos>, NotATime> {
    start.map(|start| nanos(time - start, SECOND)).transpose()
}
