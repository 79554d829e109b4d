//! Framework operators summed up by name and stage: calls, host time with and without callees, device time, memory.

use std::collections::BTreeMap;

use types::timeline::{HostOperator, OperatorKind, Timeline};
use types::{Bytes, Nanos, OperatorSummary, Stage};

use super::stage_clock::StageClock;
use crate::evidence::PlacedTimeline;

/// What is summed under one name in one stage.
#[derive(Clone, Copy, Default)]
struct Row {
    calls: u64,
    total: Nanos,
    own: Nanos,
    device: Nanos,
    allocated: i64,
}

/// One summary per operator and stage, by device time, then by own time. Python functions are left out: they contain operators and
/// would count them again.
///
/// Device time is that of work launched inside the operator and not inside one it called, so the column adds up to what
/// was attributed. Memory is counted in the same way.
pub(crate) fn summaries(timelines: &[PlacedTimeline<'_>]) -> Vec<OperatorSummary> {
    let has_device = timelines.iter().any(|placed| !placed.timeline.work.is_empty());
    let has_memory = timelines.iter().any(|placed| !placed.timeline.memory.is_empty());
    let mut all: BTreeMap<(String, Option<Stage>), Row> = BTreeMap::new();
    for placed in timelines {
        for (name, stage, row) in rows(placed) {
            let sum = all.entry((name.to_owned(), stage)).or_default();
            sum.calls += row.calls;
            sum.total += row.total;
            sum.own += row.own;
            sum.device += row.device;
            sum.allocated += row.allocated;
        }
    }
    let summary = |((name, stage), row): ((String, Option<Stage>), Row)| OperatorSummary {
        name,
        stage,
        calls: row.calls,
        total_ns: row.total,
        self_ns: row.own,
        device_ns: has_device.then_some(row.device),
        bytes_allocated: has_memory.then(|| Bytes::new(row.allocated.max(0).unsigned_abs())),
    };
    let mut summaries: Vec<_> = all.into_iter().map(summary).collect();
    summaries.sort_by_key(|operator| std::cmp::Reverse((operator.device_ns, operator.self_ns)));
    summaries
}

/// The rows of one timeline: one for each name and stage, those outside of stages first.
struct Rows {
    clock: StageClock,
    /// Rows of one name.
    width: usize,
    rows: Vec<Row>,
}

impl Rows {
    fn of(&mut self, operator: &HostOperator) -> &mut Row {
        let stage = self.clock.at(operator.thread, operator.start);
        let slot = stage.map_or(0, |stage| 1 + Stage::ALL.iter().position(|other| *other == stage).unwrap_or(0));
        &mut self.rows[operator.name.index() * self.width + slot]
    }
}

/// Rows of one timeline, by name and stage.
fn rows<'a>(placed: &PlacedTimeline<'a>) -> Vec<(&'a str, Option<Stage>, Row)> {
    let PlacedTimeline { timeline, attribution, .. } = *placed;
    let width = if attribution.stages.is_empty() { 1 } else { 1 + Stage::ALL.len() };
    let clock = StageClock::new(&attribution.stages);
    let mut rows = Rows { clock, width, rows: vec![Row::default(); timeline.names.len() * width] };
    let is_meant = |operator: &HostOperator| {
        operator.kind == OperatorKind::Framework && !attribution.asides.hold(timeline, operator.thread, operator.start)
    };
    for operator in timeline.operators.iter().filter(|operator| is_meant(operator)) {
        let row = rows.of(operator);
        row.calls += 1;
        row.total += operator.duration;
    }
    own_time(timeline, &mut rows, &is_meant);
    for (place, (work, operator)) in timeline.work.iter().zip(&attribution.operator).enumerate() {
        if let Some(operator) = operator.filter(|_| !attribution.is_aside(place)) {
            rows.of(&timeline.operators[operator as usize]).device += work.duration;
        }
    }
    let stages: Vec<_> = std::iter::once(None).chain(Stage::ALL.map(Some)).take(width).collect();
    let named = timeline.names.iter().flat_map(|(_, name)| stages.iter().map(move |stage| (name, *stage)));
    named.zip(rows.rows).filter(|(_, row)| row.calls > 0).map(|((name, stage), row)| (name, stage, row)).collect()
}

/// Host time without callees, and memory taken, by walking the call tree of each thread.
fn own_time(timeline: &Timeline, rows: &mut Rows, is_meant: &dyn Fn(&HostOperator) -> bool) {
    let mut order: Vec<u32> = Vec::with_capacity(timeline.operators.len());
    order.extend((0u32..).zip(&timeline.operators).filter(|(_, one)| is_meant(one)).map(|(index, _)| index));
    // Among operators that begin together the longer one is the caller.
    let key = |index: &u32| {
        let one = &timeline.operators[*index as usize];
        (one.thread, one.start, std::cmp::Reverse(one.duration))
    };
    if !order.is_sorted_by_key(key) {
        order.sort_by_key(key);
    }
    let mut taken: Vec<_> = timeline.memory.iter().filter(|event| event.bytes > 0).collect();
    taken.sort_by_key(|event| (event.thread, event.time));
    let mut taken = taken.into_iter().peekable();

    let mut open: Vec<&HostOperator> = Vec::new();
    for index in order {
        let operator = &timeline.operators[index as usize];
        let moment = (operator.thread, operator.start);
        while let Some(event) = taken.next_if(|event| (event.thread, event.time) < moment) {
            leave(&mut open, (event.thread, event.time));
            if let Some(inside) = open.last() {
                rows.of(inside).allocated += event.bytes;
            }
        }
        leave(&mut open, moment);
        rows.of(operator).own += operator.duration;
        if let Some(caller) = open.last() {
            // A callee that outlasts its caller is a fault of the clock; only what lies inside is taken off.
            let inside = operator.end().min(caller.end()) - operator.start;
            let row = rows.of(caller);
            row.own = row.own - inside;
        }
        open.push(operator);
    }
    for event in taken {
        leave(&mut open, (event.thread, event.time));
        if let Some(inside) = open.last() {
            rows.of(inside).allocated += event.bytes;
        }
    }
}

/// Closes what has returned by that moment, or ran on another thread.
fn leave(open: &mut Vec<&HostOperator>, (thread, time): (types::timeline::ThreadId, Nanos)) {
    while open.last().is_some_and(|one| one.thread != thread || one.end() <= time) {
        open.pop();
    }
}
