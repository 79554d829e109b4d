//! Requests joined to steps, against the truth that the scheduler of the server logged.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use flate2::read::GzDecoder;
use llm_perf_analysis::attribution::{AttributionSettings, attribute};
use llm_perf_analysis::time::unix_zero;
use llm_perf_analysis::{PlacedTimeline, join};
use serde_json::Value;
use testkit::need::reference;
use types::timeline::Timeline;
use types::{OffsetBasis, RequestJoin, Served};

use crate::attribution_captures::{torch, unpacked};

/// A load under the torch profiler, joined to its trace.
fn joined(run: &str) -> (Served, Timeline) {
    joined_with(run, run, |_| ())
}

/// The same with the load of another run, and with a changed trace.
fn joined_with(run: &str, load: &str, change: impl Fn(&mut Timeline)) -> (Served, Timeline) {
    let read = |run: &str, name: &str| std::fs::read(reference("serving").join(run).join(name)).unwrap();
    let log = ingest::requests::read("traced.json", &read(load, "traced.json")).unwrap();
    let mut timeline = torch(&unpacked(&read(run, "trace.json.gz")));
    change(&mut timeline);
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let devices = BTreeMap::new();
    let placed = PlacedTimeline { timeline: &timeline, attribution: &attribution, rank: None, devices };
    (join(&log, None, &[placed]).served, timeline)
}

fn quality(served: &Served) -> &RequestJoin {
    served.serving.as_ref().unwrap().join.as_ref().unwrap()
}

/// Steps of the load, as the scheduler logged them.
fn scheduled() -> Vec<Value> {
    let file = std::fs::File::open(reference("serving/llama-8b/steps.jsonl.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let steps = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_traced = |step: &Value| step["tokens"].as_object().unwrap().keys().any(|id| id.starts_with("cmpl-traced-"));
    steps.filter(is_traced).collect()
}

pub(crate) fn tokens_are_in_the_steps_that_the_scheduler_put_them_in() {
    let ((served, timeline), truth) = (joined("llama-8b"), scheduled());
    let join = quality(&served);
    let between = truth[0]["wall_ns"].as_i64().unwrap() - truth[0]["mono_ns"].as_i64().unwrap();
    let off = join.offset_ns.get() - (between - unix_zero(&timeline).unwrap_or_default().get());
    assert_eq!(join.basis, OffsetBasis::Fitted);
    assert!(off.abs() < 200_000, "{off} ns");
    let mut expected: HashMap<usize, Vec<(u64, u64)>> = HashMap::new();
    for (place, step) in truth.iter().enumerate() {
        for (id, tokens) in step["tokens"].as_object().unwrap() {
            let index = id.split('-').nth(2).unwrap().parse().unwrap();
            expected.entry(index).or_default().push((place as u64, tokens.as_u64().unwrap()));
        }
    }
    assert_eq!(expected.len(), served.requests.len());
    // Of two prompts in one step that are partly in a cache, nothing says whose tokens it holds: only their sum is known.
    let prompts = |place: u64| truth[place as usize]["tokens"].as_object().unwrap().values();
    let are_several = |place: u64| prompts(place).filter(|tokens| tokens.as_u64() > Some(1)).count() > 1;
    let mut shared: HashMap<u64, [u64; 2]> = HashMap::new();
    for (index, steps) in expected {
        let found: Vec<_> = served.requests[index].steps.iter().map(|step| (step.step, step.tokens)).collect();
        assert_eq!(found.len(), steps.len(), "request {index}");
        for (found, expected) in found.into_iter().zip(steps) {
            if are_several(expected.0) && found.0 == expected.0 {
                let sums = shared.entry(expected.0).or_default();
                *sums = [sums[0] + found.1, sums[1] + expected.1];
            } else {
                assert_eq!(found, expected, "request {index}");
            }
        }
    }
    assert!(shared.values().all(|[found, expected]| found == expected), "{shared:?}");
    for request in &served.requests {
        let parts = request.parts.unwrap();
        assert_eq!((Some(parts.sum()), parts.unexplained_ns.get()), (request.latency_ns, 0));
    }
}

pub(crate) fn steps_have_the_sequences_their_engine_says() {
    let (served, _) = joined("llama-1b");
    let join = quality(&served);
    assert_eq!((join.steps_agreeing, join.steps), (Some(238), 238));
    assert_eq!((join.requests, join.requests_in_trace), (24, 24));
}

pub(crate) fn requests_are_joined_to_steps_that_nothing_annotates() {
    for (run, most) in [("llama-8b", 0.13), ("llama-1b", 0.06)] {
        let ((annotated, _), (bare, _)) = (joined(run), joined_with(run, run, |trace| trace.ranges.clear()));
        let (known, join) = (quality(&annotated), quality(&bare));
        assert_eq!((join.steps, join.steps_agreeing), (known.steps, None));
        assert_eq!((join.requests, join.requests_in_trace), (known.requests, known.requests_in_trace));
        let off = (join.offset_ns - known.offset_ns).get();
        assert!(off.abs() < 2_500_000, "{off} ns");
        let apart = annotated.requests.iter().zip(&bare.requests).map(|(one, other)| {
            let mut other = other.parts.unwrap();
            // Where steps of prompts look like any other, an earlier one may be part of a wait in the queue.
            other.queue_ns += std::mem::take(&mut other.unexplained_ns);
            let pairs = one.parts.unwrap().named().into_iter().zip(other.named());
            let apart = pairs.map(|((_, one), (_, other))| (one - other).get().abs()).max().unwrap();
            apart as f64 / one.latency_ns.unwrap().get() as f64
        });
        let mut apart: Vec<_> = apart.collect();
        apart.sort_by(f64::total_cmp);
        assert!(apart[apart.len() / 2] < 0.025 && apart[apart.len() - 1] < most, "{apart:?}");
    }
    let (served, _) = joined_with("llama-8b", "llama-1b", |trace| trace.ranges.clear());
    assert_eq!(served.serving.unwrap().join, None);
}
