//! What the requests of a load add up to, as `vllm bench serve` defines it (`calculate_metrics` in `vllm/benchmarks/serve.py`):
//! figures are of completed requests, percentiles lie between neighbours as NumPy's do, times between chunks are pooled over all
//! requests, and rates are per second of the whole load.
//!
//! Intervals come from drawing whole requests anew (`statistics::clustered`).

use types::{Goodput, Latency, Nanos, Objective, Quantile, RequestLog, RequestRecord, ServedLoad};

use crate::statistics::ClusteredSample;

/// Takes the latencies of one kind from a request.
type Take = fn(&RequestRecord, &mut Vec<i64>);

/// The load and how it was served, relative to an objective where one is given.
pub fn load(log: &RequestLog, objective: Option<&Objective>) -> ServedLoad {
    let completed: Vec<&RequestRecord> = log.requests.iter().filter(|request| request.succeeded()).collect();
    let duration_ns = log.duration_ns.or_else(|| span(&log.requests));
    let seconds = duration_ns.map(|duration| duration.as_seconds().get()).filter(|seconds| *seconds > 0.0);
    let rate = |count: u64| seconds.map(|seconds| count as f64 / seconds);
    let (requests, count) = (log.requests.len() as u64, completed.len() as u64);
    let (input_tokens, all_input) = tokens(&completed, |request| request.input_tokens);
    let (output_tokens, all_output) = tokens(&completed, |request| request.output_tokens);
    ServedLoad {
        requests,
        completed: count,
        failed: requests - count,
        duration_ns,
        input_tokens,
        output_tokens,
        request_rate: sent_per_second(&log.requests),
        request_throughput: rate(count),
        input_throughput: all_input.and_then(rate),
        output_throughput: all_output.and_then(rate),
        max_concurrency: max_concurrency(&log.requests),
        ttft: latency(&completed, |request, values| values.extend(request.first_token().map(Nanos::get))),
        tpot: latency(&completed, |request, values| values.extend(request.per_token().map(|time| time.round() as i64))),
        itl: log.every_chunk.then(|| latency(&completed, between_tokens)).flatten(),
        e2el: latency(&completed, |request, values| values.extend(request.latency().map(Nanos::get))),
        goodput: objective.and_then(|objective| goodput(log, &completed, objective, seconds)),
        energy: None,
        joules_per_output_token: None,
    }
}

fn between_tokens(request: &RequestRecord, values: &mut Vec<i64>) {
    values.extend(request.between_tokens().map(Nanos::get));
}

/// The tokens that are known, and their sum where those of every request are.
fn tokens(requests: &[&RequestRecord], of: fn(&RequestRecord) -> Option<u64>) -> (u64, Option<u64>) {
    let sum = requests.iter().filter_map(|request| of(request)).fold(0, u64::saturating_add);
    (sum, (!requests.is_empty() && requests.iter().all(|request| of(request).is_some())).then_some(sum))
}

/// When a request was sent and when its response ended, where both are known.
fn in_flight(request: &RequestRecord) -> Option<(Nanos, Nanos)> {
    let due = request.due_ns?;
    Some((request.sent_ns.unwrap_or(due), due + request.end_ns.or_else(|| request.latency())?))
}

/// From the first request to the last answer.
fn span(requests: &[RequestRecord]) -> Option<Nanos> {
    let first = requests.iter().filter_map(|request| request.due_ns).min()?;
    let last = requests.iter().filter_map(in_flight).map(|(_, end)| end).max()?;
    Some(last - first)
}

/// Requests a second between when the first and the last were due.
fn sent_per_second(requests: &[RequestRecord]) -> Option<f64> {
    let due = || requests.iter().filter_map(|request| request.due_ns);
    let span = (due().max()? - due().min()?).as_seconds().get();
    (span > 0.0).then(|| (due().count() - 1) as f64 / span)
}

/// Most requests in flight at once, of those whose end is known. One that ends makes room for one that starts.
fn max_concurrency(requests: &[RequestRecord]) -> Option<u64> {
    let spans = requests.iter().filter_map(in_flight).filter(|(start, end)| start < end);
    let mut changes: Vec<(Nanos, i64)> = spans.flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
    changes.sort_unstable();
    let running = changes.iter().scan(0, |running, (_, change)| {
        *running += change;
        Some(*running as u64)
    });
    running.max()
}

/// Requests that met an objective; absent where it asks for nothing, or for times between chunks that are not known.
fn goodput(
    log: &RequestLog,
    completed: &[&RequestRecord],
    objective: &Objective,
    seconds: Option<f64>,
) -> Option<Goodput> {
    let unknown = objective.itl_ns.is_some() && !log.every_chunk;
    if unknown || *objective == Objective::default() {
        return None;
    }
    let requests = completed.iter().filter(|request| meets(request, objective)).count() as u64;
    Some(Goodput {
        objective: *objective,
        requests,
        share: requests as f64 / log.requests.len() as f64,
        per_second: seconds.map(|seconds| requests as f64 / seconds),
    })
}

/// Whether a completed request meets an objective. The time per token of a single one is zero; that of an unknown number is not
/// known to meet anything.
fn meets(request: &RequestRecord, objective: &Objective) -> bool {
    let within = |limit: Option<Nanos>, time: Option<f64>| {
        limit.is_none_or(|limit| time.is_some_and(|time| time <= limit.get() as f64))
    };
    let nanoseconds = |time: Option<Nanos>| time.map(|time| time.get() as f64);
    let per_token = request.output_tokens.map(|_| request.per_token().unwrap_or(0.0));
    let gaps = request.chunks_ns.len().saturating_sub(1).max(1) as f64;
    let decode = request.latency().zip(request.first_token()).map(|(last, first)| (last - first).get() as f64);
    within(objective.ttft_ns, nanoseconds(request.first_token()))
        && within(objective.tpot_ns, per_token)
        && within(objective.itl_ns, decode.map(|decode| decode / gaps))
        && within(objective.e2el_ns, nanoseconds(request.latency()))
}

/// The distribution of one kind of latency; absent where no request has it.
fn latency(requests: &[&RequestRecord], take: Take) -> Option<Latency> {
    let sample = ClusteredSample::of(requests, take)?;
    let intervals = sample.intervals();
    let quantile = |place: usize| {
        let interval = intervals.map(|intervals| intervals[place]);
        Quantile {
            ns: nanos(sample.figures()[place]),
            low_ns: interval.map(|(low, _)| nanos(low)),
            high_ns: interval.map(|(_, high)| nanos(high)),
        }
    };
    Some(Latency {
        mean: quantile(0),
        p50: quantile(1),
        p90: quantile(2),
        p99: quantile(3),
        n: sample.count() as u64,
        halves_ns: halves(requests, take),
    })
}

/// Fewest requests whose halves are compared.
const HALVED: usize = 20;

/// Means of the first and of the second half of the requests.
fn halves(requests: &[&RequestRecord], take: Take) -> Option<[Nanos; 2]> {
    let (first, second) = requests.split_at_checked(requests.len() / 2).filter(|_| requests.len() >= HALVED)?;
    let mean = |half: &[&RequestRecord]| {
        let mut values = Vec::new();
        half.iter().for_each(|request| take(request, &mut values));
        let sum: f64 = values.iter().map(|value| *value as f64).sum();
        (!values.is_empty()).then(|| nanos(sum / values.len() as f64))
    };
    Some([mean(first)?, mean(second)?])
}

fn nanos(time: f64) -> Nanos {
    Nanos::new(time.round() as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::{RequestClock, RequestSource};

    use super::*;

    const VLLM: &[u8] = include_bytes!("../../../ingest/tests/fixtures/requests/vllm-warm.json");

    fn request(due: i64, chunks: &[i64], tokens: u64) -> RequestRecord {
        RequestRecord {
            due_ns: Some(Nanos::new(due)),
            chunks_ns: chunks.iter().map(|time| Nanos::new(*time)).collect(),
            input_tokens: Some(10),
            output_tokens: Some(tokens),
            ..RequestRecord::default()
        }
    }

    fn log(requests: Vec<RequestRecord>) -> RequestLog {
        RequestLog {
            source: RequestSource::LlmPerf,
            clock: RequestClock::Monotonic,
            requests,
            duration_ns: None,
            every_chunk: true,
        }
    }

    fn failed(due: i64) -> RequestRecord {
        RequestRecord { due_ns: Some(Nanos::new(due)), error: Some("HTTP 503".to_owned()), ..RequestRecord::default() }
    }

    #[test]
    fn a_case_worked_by_hand() {
        // First tokens after 10, 20 and 30; per token (40 - 10) / 3 = 10, none of a single token, and (50 - 30) / 1 = 20; gaps 10,
        // 20 and 20; ends at 40, 120 and 150.
        let requests =
            vec![request(0, &[10, 20, 40], 4), request(100, &[20], 1), request(100, &[30, 50], 2), failed(5)];
        let found = load(&log(requests), None);
        assert_eq!((found.requests, found.completed, found.failed), (4, 3, 1));
        assert_eq!((found.input_tokens, found.output_tokens), (30, 7));
        assert_eq!(found.duration_ns, Some(Nanos::new(150)));
        assert_eq!(found.request_throughput, Some(3.0 / 150e-9));
        assert_eq!(found.max_concurrency, Some(2));
        let figures =
            |latency: Option<Latency>| latency.map(|l| (l.mean.ns.get(), l.p50.ns.get(), l.p99.ns.get(), l.n));
        assert_eq!(figures(found.ttft), Some((20, 20, 30, 3)));
        assert_eq!(figures(found.tpot), Some((15, 15, 20, 2)));
        assert_eq!(figures(found.itl), Some((17, 20, 20, 3)));
        assert_eq!(figures(found.e2el), Some((37, 40, 50, 3)));
        assert_eq!(found.ttft.unwrap().mean.low_ns, None);
    }

    #[test]
    fn goodput_counts_requests_that_meet_all_of_an_objective() {
        let requests =
            log(vec![request(0, &[10, 20, 40], 4), request(0, &[20], 1), request(0, &[30, 50], 2), failed(0)]);
        let good = |objective: Objective| load(&requests, Some(&objective)).goodput.map(|found| found.requests);
        let limit = |time| Some(Nanos::new(time));
        assert_eq!(good(Objective { ttft_ns: limit(20), ..Objective::default() }), Some(2));
        assert_eq!(good(Objective { tpot_ns: limit(10), ..Objective::default() }), Some(2));
        assert_eq!(good(Objective { itl_ns: limit(15), ..Objective::default() }), Some(2));
        assert_eq!(good(Objective { ttft_ns: limit(20), e2el_ns: limit(39), ..Objective::default() }), Some(1));
        assert_eq!(good(Objective::default()), None);
        let found = load(&requests, Some(&Objective { e2el_ns: limit(50), ..Objective::default() })).goodput.unwrap();
        assert_eq!((found.requests, found.share), (3, 0.75));
        assert!((found.per_second.unwrap() - 3.0 / 50e-9).abs() < 1.0);
    }

    #[test]
    fn times_between_chunks_are_absent_where_only_two_are_known() {
        let known = RequestLog { every_chunk: false, ..log(vec![request(0, &[10, 40], 4)]) };
        let objective = Objective { itl_ns: Some(Nanos::new(1_000)), ..Objective::default() };
        let found = load(&known, Some(&objective));
        assert_eq!((found.itl, found.goodput), (None, None));
        assert_eq!(found.tpot.unwrap().mean.ns, Nanos::new(10));
    }

    #[test]
    fn tokens_that_a_server_does_not_count_give_no_throughput() {
        let uncounted = |request| RequestRecord { output_tokens: None, ..request };
        let some = load(&log(vec![request(0, &[10, 40], 4), uncounted(request(5, &[10, 40], 4))]), None);
        assert_eq!((some.output_tokens, some.output_throughput), (4, None));
        assert!(some.input_throughput.is_some_and(|rate| rate > 0.0));
        assert_eq!(load(&log(vec![failed(0), request(1, &[], 0)]), None).output_throughput, None);
    }

    #[test]
    fn nothing_is_known_of_no_requests() {
        let found = load(&log(Vec::new()), Some(&Objective { ttft_ns: Some(Nanos::ZERO), ..Objective::default() }));
        assert_eq!((found.requests, found.duration_ns, found.max_concurrency), (0, None, None));
        assert_eq!((found.ttft, found.request_throughput), (None, None));
    }

    #[test]
    fn a_result_of_vllm_has_the_figures_that_vllm_prints() {
        let found = load(&ingest::requests::read("vllm-warm.json", VLLM).unwrap(), None);
        let near = |found: Option<f64>, expected: f64| assert!((found.unwrap() / expected - 1.0).abs() < 1e-4);
        near(found.request_throughput, 27.162_759_519_879_952);
        near(found.output_throughput, 434.604_152_318_079_23);
        near(found.ttft.map(|ttft| ttft.p99.ns.as_millis()), 40.514_409_300_001_82);
        near(found.tpot.map(|tpot| tpot.p50.ns.as_millis()), 5.355_802_066_667_555);
        near(found.itl.map(|itl| itl.mean.ns.as_millis()), 5.360_133_354_166_527);
        near(found.e2el.map(|e2el| e2el.p99.ns.as_millis()), 126.720_283_350_013_56);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn figures_are_ordered_and_lie_in_their_intervals(
            requests in proptest::collection::vec(proptest::collection::vec(0..i64::MAX, 0..5), 0..12),
        ) {
            let requests = requests.into_iter().map(|mut chunks| { chunks.sort_unstable(); request(chunks.len() as i64, &chunks, 3) });
            let found = load(&log(requests.collect()), Some(&Objective { e2el_ns: Some(Nanos::new(9)), ..Objective::default() }));
            prop_assert_eq!(found.completed + found.failed, found.requests);
            for latency in [found.ttft, found.tpot, found.itl, found.e2el].into_iter().flatten() {
                prop_assert!(latency.p50.ns <= latency.p90.ns && latency.p90.ns <= latency.p99.ns);
                for figure in [latency.mean, latency.p50, latency.p90, latency.p99] {
                    prop_assert!(figure.low_ns <= figure.high_ns);
                }
            }
        }
    }
}
