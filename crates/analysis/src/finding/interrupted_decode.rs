//! Sequences that decode wait for the prompts of other requests.

use types::{Base, Finding, Severity};

use super::{Found, Run};
use crate::pressure::{Interrupted, latency_facts};

/// Share of the requests' latency that it must take.
const LEAST_SHARE: f64 = 0.05;
/// Idle share from which fewer tokens may not shorten a step with prompts.
const MUCH_IDLE: f64 = 0.3;
/// Prompt tokens of a step: what an engine is set to is a multiple of this.
const CHUNK: u64 = 256;

/// The rule's name.
pub(super) const RULE: &str = "interrupted-decode";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let pressure = run.pressure?;
    let Interrupted { time, requests, steps, mixed_step, decode_step, idle, chunk, gap, gap_alone } =
        pressure.interrupted;
    // Then fewer tokens may not make such a step shorter.
    let waits = idle.filter(|idle| *idle >= MUCH_IDLE);
    let facts = latency_facts(time, pressure.latency, LEAST_SHARE)?
        .with("requests", requests)
        .with("all", pressure.requests)
        .with("steps", steps)
        .with_known("mixed_step", mixed_step.filter(|_| decode_step.is_some()))
        .with_known("decode_step", decode_step)
        .with_known("gap", gap)
        .with_known("gap_alone", gap_alone)
        .with_known(
            "chunk",
            chunk.filter(|_| waits.is_none()).map(|tokens| tokens / CHUNK * CHUNK).filter(|tokens| *tokens > 0),
        );
    let facts = match waits {
        Some(idle) => facts.with_share("mixed_idle", idle, Base::Itself),
        None => facts,
    };
    Some(Found::plain(Finding::new(RULE, Severity::Warning, None, facts)))
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;
    use crate::finding::under;
    use crate::pressure::Pressure;

    #[test]
    fn prompts_of_others_are_named_with_the_chunk_that_would_do() {
        let interrupted =
            Interrupted { time: Nanos::new(200), requests: 3, steps: 5, chunk: Some(700), ..Interrupted::default() };
        let pressure = Pressure { latency: Nanos::new(1_000), requests: 4, interrupted, ..Pressure::default() };
        let found = under(pressure.clone(), RULE).unwrap();
        assert_eq!((found.quantities.share("latency_share"), found.quantities.count("chunk")), (Some(0.2), Some(512)));
        let small = Interrupted { chunk: Some(CHUNK - 1), ..interrupted };
        let found = under(Pressure { interrupted: small, ..pressure.clone() }, RULE).unwrap();
        assert!(!found.quantities.has("chunk"), "no step can be set to so few tokens");
        let waits = Interrupted { idle: Some(0.5), ..interrupted };
        let found = under(Pressure { interrupted: waits, ..pressure.clone() }, RULE).unwrap();
        assert_eq!((found.quantities.share("mixed_idle"), found.quantities.has("chunk")), (Some(0.5), false));
        let little = Interrupted { time: Nanos::new(40), ..interrupted };
        assert!(under(Pressure { interrupted: little, ..pressure }, RULE).is_none());
    }
}
