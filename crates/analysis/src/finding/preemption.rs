//! Requests lose their place in the key-value cache and are processed again.

use types::{Finding, Severity};

use super::{Found, Run};
use crate::pressure::{Preempted, latency_facts};

/// The rule's name.
pub(super) const RULE: &str = "preemption";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let pressure = run.pressure?;
    let Preempted { time: again, requests, times, tokens } = pressure.preempted;
    if requests == 0 {
        return None;
    }
    // While the cache is full, nobody new gets in.
    let time = again + pressure.queue.time;
    let facts = latency_facts(time, pressure.latency, 0.0)?
        .with("again", again)
        .with("queue", pressure.queue.time)
        .with("requests", requests)
        .with("all", pressure.requests)
        .with("times", times)
        .with("tokens", tokens);
    Some(Found::plain(Finding::new(RULE, Severity::Warning, None, facts)))
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;
    use crate::finding::under;
    use crate::pressure::{Pressure, Queue};

    #[test]
    fn a_full_cache_costs_the_queue_and_the_work_done_again() {
        let preempted = Preempted { time: Nanos::new(50), requests: 2, times: 3, tokens: 700 };
        let queue = Queue { time: Nanos::new(250), ..Queue::default() };
        let pressure = Pressure { latency: Nanos::new(1_000), requests: 9, preempted, queue, ..Pressure::default() };
        let found = under(pressure.clone(), RULE).unwrap();
        assert_eq!((found.quantities.share("latency_share"), found.quantities.count("times")), (Some(0.3), Some(3)));
        assert!(under(Pressure { preempted: Preempted::default(), ..pressure }, RULE).is_none());
    }
}
