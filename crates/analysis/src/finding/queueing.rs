//! Requests wait for a first step, although the server works.

use types::{Finding, Severity};

use super::{Found, Run};
use crate::pressure::{Limit, Queue, latency_facts};

/// Share of the requests' latency that it must take.
const LEAST_SHARE: f64 = 0.1;

/// The rule's name.
pub(super) const RULE: &str = "queueing";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let pressure = run.pressure?;
    let Queue { time, shortest, longest, requests, limit } = pressure.queue;
    // Then the cache is what they wait for, and another rule says so.
    if pressure.preempted.requests > 0 {
        return None;
    }
    let (sequences, tokens) = match limit {
        Some(Limit::Sequences(sequences)) => (Some(sequences), None),
        Some(Limit::Tokens(tokens)) => (None, Some(tokens)),
        None => (None, None),
    };
    let facts = latency_facts(time, pressure.latency, LEAST_SHARE)?
        .with("requests", requests)
        .with("all", pressure.requests)
        .with("shortest", shortest)
        .with("longest", longest)
        .with_known("full_sequences", sequences)
        .with_known("full_tokens", tokens);
    Some(Found::plain(Finding::new(RULE, Severity::Warning, None, facts)))
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;
    use crate::finding::under;
    use crate::pressure::{Preempted, Pressure};

    fn pressure(queue: i64, limit: Option<Limit>) -> Pressure {
        let queue = Queue { time: Nanos::new(queue), requests: 3, limit, ..Queue::default() };
        Pressure { latency: Nanos::new(1_000), requests: 4, queue, ..Pressure::default() }
    }

    #[test]
    fn a_long_queue_names_what_is_full() {
        let found = under(pressure(300, Some(Limit::Sequences(8))), RULE).unwrap();
        assert_eq!(found.quantities.share("latency_share"), Some(0.3));
        assert_eq!((found.quantities.count("full_sequences"), found.quantities.count("requests")), (Some(8), Some(3)));
        assert!(!found.quantities.has("full_tokens") && found.saving.saves_ns.is_none());
        assert!(under(pressure(90, None), RULE).is_none());
    }

    #[test]
    fn a_full_cache_is_said_by_another_rule() {
        let preempted = Preempted { requests: 1, times: 1, ..Preempted::default() };
        assert!(under(Pressure { preempted, ..pressure(300, None) }, RULE).is_none());
    }
}
