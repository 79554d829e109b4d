//! What a load gave, and whether the client was fast enough to trust it.

use types::{Nanos, RequestLog, RequestRecord};

use crate::ClockPair;
use crate::worker::WorkerHealth;

/// The lateness that 99% of requests must stay within, or the share of the median time to first token where that is more: lateness
/// is part of every latency.
const LATENESS_LIMIT: Nanos = Nanos::new(5_000_000);
const LATENESS_SHARE: f64 = 0.05;
/// The share of the time that stalls of more than 5 ms may take. Times between tokens are tens of milliseconds on a loaded server;
/// within the limit, stalls reach fewer than 1% of them, so that their 99th percentile holds. Opening a thousand connections at
/// once is such a stall.
const STALLED_LIMIT: f64 = 0.01;
/// The share of its time that a thread may be busy; above it, events wait for the client.
const BUSY_LIMIT: f64 = 0.9;

/// What a load gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The requests in the order of their numbers, on the monotonic clock.
    pub log: RequestLog,
    /// How that clock relates to Unix time.
    pub clocks: ClockPair,
    /// Why latencies may not be the server's alone.
    pub doubts: Vec<ClientDoubt>,
}

/// A limit that the client exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDoubt {
    /// More than 1% of requests were sent later than the limit.
    Late,
    /// Stalls of more than 5 ms took more than 1% of the time.
    Stalled,
    /// A thread was busy for more than 90% of the time.
    Saturated,
}

/// The limits that the client exceeded.
pub(crate) fn doubts(workers: &[WorkerHealth], requests: &[RequestRecord]) -> Vec<ClientDoubt> {
    let lateness = sorted(requests.iter().map(|request| Some(request.sent_ns? - request.due_ns?)));
    let first_tokens = sorted(requests.iter().map(RequestRecord::first_token));
    let median = percentile(&first_tokens, 50).map_or(0.0, |median| median.get() as f64);
    let limit = LATENESS_LIMIT.max(Nanos::new((median * LATENESS_SHARE) as i64));
    let limits = [
        (percentile(&lateness, 99) > Some(limit), ClientDoubt::Late),
        (workers.iter().any(|worker| worker.stalled > STALLED_LIMIT), ClientDoubt::Stalled),
        (workers.iter().any(|worker| worker.busy > BUSY_LIMIT), ClientDoubt::Saturated),
    ];
    limits.into_iter().filter_map(|(exceeded, doubt)| exceeded.then_some(doubt)).collect()
}

/// The times that are known, shortest first.
fn sorted(times: impl Iterator<Item = Option<Nanos>>) -> Vec<Nanos> {
    let mut times: Vec<Nanos> = times.flatten().collect();
    times.sort_unstable();
    times
}

/// The time that so many percent stay within, by nearest rank.
fn percentile(sorted: &[Nanos], percent: usize) -> Option<Nanos> {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of requests that were so late, with a first token after 10 ms.
    fn of_worker(stalled: f64, busy: f64, lateness: Vec<i64>) -> Vec<ClientDoubt> {
        let worker = WorkerHealth { stalled, busy };
        doubts(&[WorkerHealth::default(), worker], &requests(lateness, 10_000_000))
    }

    fn requests(lateness: Vec<i64>, first_token: i64) -> Vec<RequestRecord> {
        let request = |late| RequestRecord {
            due_ns: Some(Nanos::new(100)),
            sent_ns: Some(Nanos::new(100 + late)),
            chunks_ns: vec![Nanos::new(first_token)],
            ..RequestRecord::default()
        };
        lateness.into_iter().map(request).collect()
    }

    #[test]
    fn a_client_within_its_limits_is_reliable() {
        assert_eq!(of_worker(0.01, 0.9, vec![5_000_000; 10]), []);
        assert_eq!(of_worker(0.0, 0.0, Vec::new()), []);
    }

    #[test]
    fn every_limit_is_watched() {
        assert_eq!(of_worker(0.011, 0.1, vec![0]), [ClientDoubt::Stalled]);
        assert_eq!(of_worker(0.0, 0.91, vec![0]), [ClientDoubt::Saturated]);
        assert_eq!(of_worker(0.0, 0.1, vec![5_000_001]), [ClientDoubt::Late]);
    }

    #[test]
    fn lateness_is_tolerated_where_first_tokens_take_twenty_times_as_long() {
        let late = |first_token| doubts(&[], &requests(vec![8_000_000; 3], first_token));
        assert_eq!(late(160_000_000), []);
        assert_eq!(late(159_000_000), [ClientDoubt::Late]);
    }

    #[test]
    fn one_late_request_in_a_hundred_is_tolerated() {
        let mut lateness = vec![1_000; 99];
        lateness.push(1_000_000_000);
        assert_eq!(of_worker(0.0, 0.1, lateness.clone()), []);
        lateness.push(1_000_000_000);
        assert_eq!(of_worker(0.0, 0.1, lateness), [ClientDoubt::Late]);
    }
}
