//! The first requests of a load wait for a server that has not done their kind of work before.

use types::{Finding, Severity};

use super::{Found, Run};
use crate::pressure::latency_facts;

/// Share of the requests' latency that it must take.
const LEAST_SHARE: f64 = 0.01;

/// The rule's name.
pub(super) const RULE: &str = "cold-requests";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let cold = run.cold?;
    let facts = latency_facts(cold.time, cold.latency, LEAST_SHARE)?
        .with("requests", cold.requests)
        .with("all", cold.all)
        .with("wait", cold.wait)
        .with("longest", cold.longest)
        .with("p99", cold.p99)
        .with("p99_later", cold.p99_later);
    Some(Found::plain(Finding::new(RULE, Severity::Warning, None, facts)))
}
