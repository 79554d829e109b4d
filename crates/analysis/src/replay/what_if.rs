//! A run under changes: its time, where the time would go, and the critical path, before and after.

use std::collections::BTreeMap;

use types::{Base, DeviceTime, Facts, Hardware, Nanos, Remark, ReplayedChange, ReplayedTime, SchemaTag, Stage, WhatIf};

use super::bound::Bound;
use super::change::{Change, Pace};
use super::refusal::Refusal;
use super::replays::Replays;
use super::trace_replay::{Basis, TraceReplay};
use crate::attribution::{AttributionSettings, attribute};
use crate::device_time::device_times;
use crate::evidence::PlacedTimeline;
use crate::scope::Scope;
use crate::statistics::share;

/// What is asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// The run, or the file of the trace.
    pub run: String,
    /// Its timelines.
    pub timelines: &'a [PlacedTimeline<'a>],
    /// Changes as they were asked for; all of them are made at once.
    pub changes: &'a [(String, Change)],
    /// The device, where it is known: it tells roofline times.
    pub hardware: Option<&'a Hardware>,
    /// What one instance of a stage takes without a profiler, where that was measured.
    pub plain: BTreeMap<Stage, Nanos>,
}

/// The answer, or why there is none.
pub fn what_if(question: &Question<'_>) -> Result<WhatIf, Refusal> {
    let mut replays = Replays::new(question.timelines, question.hardware, &[]);
    if let Some(refused) = replays.refused() {
        return Err(refused);
    }
    let plain = question.plain.iter().map(|(stage, time)| (Scope::of(*stage), *time)).collect();
    replays.set_plain(&plain);
    let basis = replays.basis_kind();
    let changes: Vec<_> = question.changes.iter().map(|(_, change)| (change, None)).collect();
    let time = |bound| replays.time(&changes, bound, basis, None);
    let (slow, fast) = (time(Bound::Low), time(Bound::High));
    let (low, high) = (slow.min(fast), slow.max(fast));
    let before = ReplayedTime {
        time_ns: replays.time(&[], Bound::Low, basis, None),
        device_time: divided(&replays, question.timelines, &[], basis),
        critical_path: replays.critical_path(&[], basis),
    };
    let after = ReplayedTime {
        time_ns: Nanos::new(low.get() + (high - low).get() / 2),
        device_time: divided(&replays, question.timelines, &changes, basis),
        critical_path: replays.critical_path(&changes, basis),
    };
    let saves_ns = before.time_ns - after.time_ns;
    let replay = replays.summary(None).ok_or(Refusal::NoWork)?;
    Ok(WhatIf {
        schema: SchemaTag::default(),
        run: question.run.clone(),
        changes: question
            .changes
            .iter()
            .map(|(change, what)| ReplayedChange { change: change.clone(), assumes: what.assumes() })
            .collect(),
        replay,
        saves_share: share(saves_ns.get() as f64, before.time_ns.get() as f64),
        saves_ns,
        before,
        after,
        after_low_ns: low,
        after_high_ns: high,
        notes: notes(question, &replays),
    })
}

/// How the time of every device divides in a replay.
fn divided(
    replays: &Replays<'_>,
    timelines: &[PlacedTimeline<'_>],
    changes: &[(&Change, Option<Scope>)],
    basis: Basis,
) -> Vec<DeviceTime> {
    let with_work = timelines.iter().filter(|placed| !placed.timeline.work.is_empty());
    let of_trace = |(trace, placed): (&TraceReplay<'_>, &PlacedTimeline<'_>)| {
        let timeline = trace.timeline(&trace.replay(changes, Bound::Low, basis));
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let replayed = PlacedTimeline {
            timeline: &timeline,
            attribution: &attribution,
            rank: placed.rank,
            devices: placed.devices.clone(),
        };
        device_times(&[replayed])
    };
    replays.traces().iter().zip(with_work).flat_map(of_trace).collect()
}

/// What else has to be known.
fn notes(question: &Question<'_>, replays: &Replays<'_>) -> Vec<Remark> {
    let mut notes = Vec::new();
    let is_roofline = |(_, change): &&(String, Change)| matches!(change, Change::Kernels(_, Pace::Roofline));
    if question.changes.iter().any(|change| is_roofline(&change)) {
        let known = replays.traces().iter().find_map(TraceReplay::roofline_known).unwrap_or(0.0);
        notes.push(match question.hardware {
            None => Remark::new("whatif.no-roofline", Facts::new()),
            Some(device) => {
                let facts = Facts::new().with("device", &device.name);
                Remark::new("whatif.roofline", facts.with_share("known", known, Base::KernelTime))
            }
        });
    }
    if question.changes.iter().any(|(_, change)| change.is_of_device()) && !replays.shows_waits() {
        notes.push(Remark::new("whatif.no-waits", Facts::new()));
    }
    let graphs = replays.traces().iter().filter_map(TraceReplay::graph_share).reduce(f64::max);
    if let Some(graphs) = graphs.filter(|_| question.changes.iter().any(|(_, change)| *change == Change::CudaGraphs)) {
        notes.push(Remark::new("whatif.graphs", Facts::new().with_share("graphs", graphs, Base::Itself)));
    }
    if replays.traces().len() > 1 {
        notes.push(Remark::new("whatif.ranks", Facts::new().with("ranks", replays.traces().len())));
    } else if replays.traces().iter().any(TraceReplay::communicates) {
        notes.push(Remark::new("whatif.collectives", Facts::new()));
    }
    notes
}
