//! What must hold of the replay of any capture.
#![allow(dead_code, reason = "each suite takes what it needs")]

use std::collections::BTreeMap;

use llm_perf_analysis::PlacedTimeline;
use llm_perf_analysis::attribution::{AttributionSettings, attribute};
use llm_perf_analysis::kernel::Family;
use llm_perf_analysis::replay::{Change, CopyFate, Pace, Question, Refusal, what_if};
use types::timeline::Timeline;
use types::{IdleCause, Nanos, WhatIf};

/// Captures with fewer kernels than this are asked more, because without optimisation each question takes a while.
const FEW: usize = 3_000;

/// How far an unchanged replay may be off.
const RESIDUAL: f64 = 0.02;

pub(crate) fn asked(timeline: &Timeline, changes: &[Change]) -> Result<WhatIf, Refusal> {
    let attribution = attribute(timeline, &AttributionSettings::default());
    let placed = PlacedTimeline { timeline, attribution: &attribution, rank: None, devices: BTreeMap::new() };
    let changes: Vec<_> = changes.iter().map(|change| (format!("{change:?}"), change.clone())).collect();
    let (run, timelines, plain) = (String::new(), [placed], BTreeMap::new());
    what_if(&Question { run, timelines: &timelines, changes: &changes, hardware: None, plain })
}

/// Share of the time that changes save.
pub(crate) fn saved(timeline: &Timeline, changes: &[Change]) -> f64 {
    asked(timeline, changes).unwrap().saves_share.unwrap()
}

pub(crate) fn idle(answer: &WhatIf, cause: IdleCause) -> Nanos {
    let idle = answer.before.device_time.iter().flat_map(|time| &time.idle);
    idle.filter(|idle| idle.cause == cause).map(|idle| idle.ns).sum()
}

/// An unchanged replay is near the recording, or is refused for a reason; gives back how many captures were replayed.
pub(crate) fn assert_given_back(captures: &[(String, Timeline)]) -> usize {
    let mut replayed = 0;
    for (name, timeline) in captures {
        match asked(timeline, &[]) {
            Ok(answer) => {
                let residual = answer.replay.residual.unwrap_or(0.0);
                assert!(residual.abs() <= RESIDUAL, "{name}: {residual}");
                replayed += 1;
                // The path is no longer than the time, and covers most of it.
                let path: Nanos = answer.before.critical_path.iter().map(|part| part.ns).sum();
                let time = answer.before.time_ns;
                assert!(path.get() as f64 <= 1.001 * time.get() as f64, "{name}: a path of {path} in {time}");
            }
            Err(refusal) => {
                let launched = attribute(timeline, &AttributionSettings::default()).launch.iter().flatten().count();
                let is_short = launched * 2 < timeline.work.len();
                assert!(timeline.work.is_empty() || timeline.calls.is_empty() || is_short, "{name}: {refusal:?}");
            }
        }
    }
    replayed
}

/// Hiding or removing copies saves no more than they take; gives back how many captures were asked.
pub(crate) fn assert_copies_bounded(captures: &[(String, Timeline)]) -> usize {
    let mut counted = 0;
    for (name, timeline) in captures.iter().filter(|(_, timeline)| timeline.work.len() < FEW) {
        let Ok(hidden) = asked(timeline, &[Change::Copies(None, CopyFate::Hidden)]) else { continue };
        let removed = asked(timeline, &[Change::Copies(None, CopyFate::Removed)]).unwrap();
        let slack = Nanos::new(hidden.before.time_ns.get() / 100);
        assert!(hidden.saves_ns <= removed.saves_ns + slack, "{name}: {} {}", hidden.saves_ns, removed.saves_ns);
        assert!(removed.saves_ns <= removed.before.time_ns, "{name}");
        counted += 1;
    }
    counted
}

/// Changes together save no less than each alone, and never more than the run; gives back how many captures were asked.
pub(crate) fn assert_together_bounded(captures: &[(String, Timeline)]) -> usize {
    let mut counted = 0;
    let changes = [
        Change::CudaGraphs,
        Change::FusedElementwise,
        Change::Kernels(Family::Gemm, Pace::Times(2.0)),
        Change::Copies(None, CopyFate::Removed),
        Change::Host(2.0),
    ];
    for (name, timeline) in captures.iter().filter(|(_, timeline)| timeline.work.len() < FEW) {
        let Ok(together) = asked(timeline, &changes) else { continue };
        let (before, after) = (together.before.time_ns, together.after.time_ns);
        // A graph's own launch may take longer than the one kernel of a capture a few microseconds long.
        assert!(after > Nanos::ZERO && after <= before + Nanos::new(1_000), "{name}: {after} of {before}");
        for change in &changes {
            let alone = asked(timeline, std::slice::from_ref(change)).unwrap();
            let slack = Nanos::new(together.before.time_ns.get() / 50 + 10_000);
            assert!(
                alone.saves_ns <= together.saves_ns + slack,
                "{name}: {change:?} alone saves {}, all {}",
                alone.saves_ns,
                together.saves_ns
            );
        }
        counted += 1;
    }
    counted
}
