//! What a load gave, and whether the client was fast enough to trust it.

use serde::Serialize;
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The requests in the order of their numbers, on the monotonic clock.
    pub log: RequestLog,
    /// How that clock relates to Unix time.
    pub clocks: ClockPair,
    /// How well the client kept up.
    pub client: ClientHealth,
}

/// How well the client kept up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClientHealth {
    /// The longest time between a request's being due and its being sent; absent where none was sent.
    pub lateness_max_ns: Option<Nanos>,
    /// The time that 99% of requests stay within.
    pub lateness_p99_ns: Option<Nanos>,
    /// The limit of that time: 5 ms, or 5% of the median time to first token where that is more.
    pub lateness_limit_ns: Nanos,
    /// The longest time that an event loop was late; up to 1 ms of it is the timer's resolution.
    pub stall_max_ns: Nanos,
    /// The share of the load's duration that an event loop was late by more than 5 ms.
    pub stalled_max: f64,
    /// Processor time of the busiest client thread, as a share of the load's duration.
    pub thread_busy_max: f64,
    /// Processors that the whole process used, on average.
    pub process_cores: f64,
}

/// A limit that the client exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientDoubt {
    /// More than 1% of requests were sent later than the limit.
    Late,
    /// Stalls of more than 5 ms took more than 1% of the time.
    Stalled,
    /// A thread was busy for more than 90% of the time.
    Saturated,
}

impl ClientHealth {
    /// From the workers, the requests, and the processors that the process used.
    pub(crate) fn new(workers: &[WorkerHealth], requests: &[RequestRecord], process_cores: f64) -> Self {
        let lateness = sorted(requests.iter().map(|request| Some(request.sent_ns? - request.due_ns?)));
        let first_tokens = sorted(requests.iter().map(RequestRecord::first_token));
        let median = percentile(&first_tokens, 50).map_or(0.0, |median| median.get() as f64);
        Self {
            lateness_max_ns: lateness.last().copied(),
            lateness_p99_ns: percentile(&lateness, 99),
            lateness_limit_ns: LATENESS_LIMIT.max(Nanos::new((median * LATENESS_SHARE) as i64)),
            stall_max_ns: workers.iter().map(|worker| worker.stall_max).max().unwrap_or_default(),
            stalled_max: workers.iter().map(|worker| worker.stalled).fold(0.0, f64::max),
            thread_busy_max: workers.iter().map(|worker| worker.busy).fold(0.0, f64::max),
            process_cores,
        }
    }

    /// Whether latencies are the server's: no limit was exceeded.
    pub fn is_reliable(&self) -> bool {
        self.doubts().is_empty()
    }

    /// The limits that were exceeded.
    pub fn doubts(&self) -> Vec<ClientDoubt> {
        let limits = [
            (self.lateness_p99_ns > Some(self.lateness_limit_ns), ClientDoubt::Late),
            (self.stalled_max > STALLED_LIMIT, ClientDoubt::Stalled),
            (self.thread_busy_max > BUSY_LIMIT, ClientDoubt::Saturated),
        ];
        limits.into_iter().filter_map(|(exceeded, doubt)| exceeded.then_some(doubt)).collect()
    }
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
    fn health(stalled: f64, busy: f64, lateness: Vec<i64>) -> ClientHealth {
        let worker = WorkerHealth { stall_max: Nanos::new(1), stalled, busy };
        ClientHealth::new(&[WorkerHealth::default(), worker], &requests(lateness, 10_000_000), 0.5)
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
        let fine = health(0.01, 0.9, vec![5_000_000; 10]);
        assert!(fine.is_reliable(), "{fine:?}");
        assert!(health(0.0, 0.0, Vec::new()).is_reliable());
    }

    #[test]
    fn every_limit_is_watched() {
        assert_eq!(health(0.011, 0.1, vec![0]).doubts(), [ClientDoubt::Stalled]);
        assert_eq!(health(0.0, 0.91, vec![0]).doubts(), [ClientDoubt::Saturated]);
        assert_eq!(health(0.0, 0.1, vec![5_000_001]).doubts(), [ClientDoubt::Late]);
    }

    #[test]
    fn lateness_is_tolerated_where_first_tokens_take_twenty_times_as_long() {
        let late = |first_token| ClientHealth::new(&[], &requests(vec![8_000_000; 3], first_token), 0.1);
        assert!(late(160_000_000).is_reliable());
        assert_eq!(late(159_000_000).doubts(), [ClientDoubt::Late]);
    }

    #[test]
    fn one_late_request_in_a_hundred_is_tolerated() {
        let mut lateness = vec![1_000; 99];
        lateness.push(1_000_000_000);
        let once = health(0.0, 0.1, lateness.clone());
        let expected = (Some(Nanos::new(1_000)), Some(Nanos::new(1_000_000_000)));
        assert_eq!((once.lateness_p99_ns, once.lateness_max_ns), expected);
        assert!(once.is_reliable());
        lateness.push(1_000_000_000);
        assert_eq!(health(0.0, 0.1, lateness).doubts(), [ClientDoubt::Late]);
    }
}
