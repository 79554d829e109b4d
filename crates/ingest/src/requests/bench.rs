//! Results of `vllm bench serve` and of SGLang's `bench_serving`, which started as a copy of it: lists with one element per
//! request.
//!
//! Sources: `vllm/benchmarks/serve.py` and `python/sglang/benchmark/serving.py`. SGLang has no `start_times`, nor has vLLM
//! before 2026; SGLang spreads the gap before a chunk of several tokens evenly over them. Both can append results to a file,
//! one per line: the last is read, which is the one that was just recorded.

use serde::Deserialize;
use types::{RequestClock, RequestLog, RequestRecord, RequestSource};

use super::text::RequestText;
use super::time::{NotATime, SECOND, chunks, nanos};
use crate::IngestError;

/// One result.
#[derive(Deserialize)]
struct Run {
    duration: Option<f64>,
    start_times: Option<Vec<f64>>,
    ttfts: Option<Vec<f64>>,
    itls: Option<Vec<Vec<f64>>>,
    input_lens: Option<Vec<u64>>,
    output_lens: Option<Vec<u64>>,
    errors: Option<Vec<Option<String>>>,
}

/// The lists that every detailed result has.
struct Lists {
    first: Vec<f64>,
    gaps: Vec<Vec<f64>>,
    input: Vec<u64>,
    output: Vec<u64>,
    errors: Vec<Option<String>>,
    start: Option<Vec<f64>>,
}

/// Reads the last result.
pub(super) fn read(text: &RequestText<'_>, source: RequestSource) -> Result<RequestLog, IngestError> {
    let run = text.values::<Run>()?.pop().ok_or_else(|| text.empty())?;
    let duration_ns = run.duration.and_then(|duration| nanos(duration, SECOND).ok());
    let lists = lists(text, run, source)?;
    let record = |index| lists.record(index).map_err(|NotATime| text.no_time(index));
    let requests: Vec<RequestRecord> = (0..lists.first.len()).map(record).collect::<Result<_, _>>()?;
    let is_known = requests.iter().any(|request| request.due_ns.is_some());
    let clock = if is_known { RequestClock::Monotonic } else { RequestClock::Unknown };
    Ok(RequestLog { source, clock, requests, duration_ns, every_chunk: true })
}

fn lists(text: &RequestText<'_>, run: Run, source: RequestSource) -> Result<Lists, IngestError> {
    let Run { start_times: start, ttfts, itls, input_lens, output_lens, errors, .. } = run;
    let (Some(first), Some(gaps), Some(input), Some(output), Some(errors)) =
        (ttfts, itls, input_lens, output_lens, errors)
    else {
        let fix = match source {
            RequestSource::SglangBench => "record it again with `--output-details`",
            _ => "record it again with `--save-result --save-detailed`",
        };
        let reason = "one of `ttfts`, `itls`, `input_lens`, `output_lens` and `errors` is missing".to_owned();
        return Err(text.refused("the result".to_owned(), reason, fix));
    };
    let lengths = [
        ("itls", gaps.len()),
        ("input_lens", input.len()),
        ("output_lens", output.len()),
        ("errors", errors.len()),
        ("start_times", start.as_ref().map_or(first.len(), Vec::len)),
    ];
    if let Some((key, length)) = lengths.into_iter().find(|(_, length)| *length != first.len()) {
        let reason = format!("has {length} elements, `ttfts` has {}", first.len());
        let fix = "check that the file is as the load generator wrote it";
        return Err(text.refused(format!("`{key}`"), reason, fix));
    }
    Ok(Lists { first, gaps, input, output, errors, start })
}

impl Lists {
    /// One request. A time of zero is one that the client did not take: a failed request has no first token, and some
    /// backends do not say when they start.
    fn record(&self, index: usize) -> Result<RequestRecord, NotATime> {
        let taken = |time: &f64| *time != 0.0;
        let chunks_ns = match Some(self.first[index]).filter(taken) {
            Some(first) => chunks(first, &self.gaps[index], SECOND)?,
            None => Vec::new(),
        };
        let start = self.start.as_ref().map(|start| start[index]).filter(taken);
        let due_ns = start.map(|start| nanos(start, SECOND)).transpose()?;
        Ok(RequestRecord {
            id: None,
            due_ns,
            sent_ns: due_ns,
            end_ns: chunks_ns.last().copied(),
            chunks_ns,
            input_tokens: Some(self.input[index]),
            output_tokens: Some(self.output[index]),
            error: self.errors[index].clone().filter(|error| !error.is_empty()),
        })
    }
}
