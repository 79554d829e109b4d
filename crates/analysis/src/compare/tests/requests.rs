//! Loads on servers, simulated.

use types::{RequestClock, RequestLog, RequestRecord, RequestSource, Serving};

use super::*;
use crate::serving::latency;

/// A load: requests of so many tokens whose steps take `step` milliseconds, all noisy, the second half of them slower by `drift`.
fn load(random: &mut Random, step: f64, drift: f64, tokens: u64) -> RunRecords {
    const REQUESTS: i64 = 60;
    let requests = (0..REQUESTS).map(|place| {
        let slower = if place * 2 >= REQUESTS { 1.0 + drift } else { 1.0 };
        let mut time = 0.0;
        let chunks = (0..tokens).map(|_| {
            time += step * slower * (1.0 + 0.05 * random.normal());
            Nanos::new((time * 1e6) as i64)
        });
        RequestRecord {
            due_ns: Some(Nanos::new(place * 50_000_000)),
            chunks_ns: chunks.collect(),
            input_tokens: Some(100),
            output_tokens: Some(tokens),
            ..RequestRecord::default()
        }
    });
    let log = RequestLog {
        source: RequestSource::LlmPerf,
        clock: RequestClock::Monotonic,
        every_chunk: true,
        duration_ns: None,
        requests: requests.collect(),
    };
    let mut run = run("load", Vec::new());
    run.metrics.served.serving = Some(Serving {
        source: log.source,
        clock: log.clock,
        load: latency::load(&log, None),
        recorded: None,
        join: None,
        parts: None,
    });
    run
}

fn verdicts(comparison: &Comparison, verdict: ChangeVerdict) -> usize {
    comparison.requests.iter().filter(|change| change.verdict == verdict).count()
}

#[test]
fn a_slower_server_is_found_and_the_same_one_is_not() {
    let mut random = Random::new(3);
    let slower = two(&load(&mut random, 5.0, 0.0, 20), &load(&mut random, 5.5, 0.0, 20));
    let row = slower.requests.iter().find(|row| row.name == "tpot: p50").unwrap();
    assert_eq!((row.verdict, row.base.samples), (ChangeVerdict::Slower, 60));
    assert!(row.interval.is_some_and(|interval| interval.low < 0.1 && 0.1 < interval.high), "{row:?}");
    assert_eq!(slower.differences, []);
    let wrong = (0..40).filter(|_| {
        let same = two(&load(&mut random, 5.0, 0.0, 20), &load(&mut random, 5.0, 0.0, 20));
        verdicts(&same, ChangeVerdict::NoEvidence) < same.requests.len()
    });
    // Stated: at most 2 of 40 tables; three standard deviations above that is chance no more.
    let wrong = wrong.count();
    assert!(wrong <= 6, "{wrong} of 40");
}

#[test]
fn a_load_that_is_not_steady_decides_nothing() {
    let mut random = Random::new(4);
    let unsteady = two(&load(&mut random, 5.0, 0.1, 20), &load(&mut random, 5.5, 0.0, 20));
    let row = unsteady.requests.iter().find(|row| row.name == "tpot: mean").unwrap();
    assert_eq!(row.verdict, ChangeVerdict::NoEvidence);
    assert!(row.untested.as_ref().is_some_and(|reason| reason.id == "untested.halves-differ"), "{row:?}");
}

#[test]
fn another_load_is_other_work() {
    let mut random = Random::new(5);
    let other = two(&load(&mut random, 5.0, 0.0, 20), &load(&mut random, 5.0, 0.0, 30));
    let aspects: Vec<_> = other.differences.iter().map(|one| (one.aspect.as_str(), one.severity)).collect();
    assert_eq!(aspects, [("output tokens per request", Severity::Error)]);
}

#[test]
fn several_loads_are_compared_load_by_load_and_pass_a_gate() {
    let mut random = Random::new(6);
    let mut loads = |step: f64| [0.0, 0.01, -0.01].map(|drift| load(&mut random, step, drift, 20));
    let (base, with) = (loads(5.0), loads(6.0));
    let compared = compare(Sides { base: &base, with: &with }, Some(GateLimits::from(0.05)));
    let gate = compared.gate.as_ref().unwrap();
    assert_eq!(gate.outcome, GateOutcome::Failed);
    assert!(gate.failed.contains(&"tpot: p50".to_owned()), "{gate:?}");
    assert!(compared.request_parts.iter().any(|row| row.name == "load" && row.verdict == ChangeVerdict::Slower));
    let same = compare(Sides { base: &base, with: &base }, Some(GateLimits::from(0.05)));
    assert_eq!(verdicts(&same, ChangeVerdict::NoEvidence), same.requests.len());
}
