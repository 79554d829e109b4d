//! Framework operators summed up by name and stage: calls, host time with and without callees, device time, memory.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{HostOperator, NameId, OperatorKind, Timeline};
use types::{Bytes, Nanos, OperatorPlace, OperatorSummary, Stage};

use super::stage_clock::StageClock;
use crate::evidence::PlacedTimeline;
use crate::python::user_frame;

/// Places kept of an operator.
const PLACES: usize = 3;

/// What is summed under one name in one stage.
#[derive(Clone, Copy, Default)]
struct Row {
    calls: u64,
    total: Nanos,
    own: Nanos,
    device: Nanos,
    allocated: i64,
}

impl Row {
    /// Adds what was allocated, or freed. A file may say any number.
    fn allocate(&mut self, bytes: i64) {
        self.allocated = self.allocated.saturating_add(bytes);
    }
}

/// What is summed under one Python frame.
#[derive(Clone, Copy, Default)]
struct Place {
    calls: u64,
    device: Nanos,
}

/// Sums of one operator in one stage, and those by Python frame.
type Named<'a> = (&'a str, Option<Stage>, Row, Vec<(&'a str, Place)>);

/// The same while they are added up.
type PlacedRow<'a> = (Row, BTreeMap<&'a str, Place>);

/// One summary per operator and stage, by device time, then by own time. Python functions are left out: they contain operators and
/// would count them again.
///
/// Device time is that of work launched inside the operator and not inside one it called, so the column adds up to what
/// was attributed. Memory is counted in the same way.
pub(crate) fn summaries(timelines: &[PlacedTimeline<'_>]) -> Vec<OperatorSummary> {
    let has_device = timelines.iter().any(|placed| !placed.timeline.work.is_empty());
    let has_memory = timelines.iter().any(|placed| !placed.timeline.memory.is_empty());
    let mut all: BTreeMap<(&str, Option<Stage>), PlacedRow<'_>> = BTreeMap::new();
    for placed in timelines {
        for (name, stage, row, places) in rows(placed) {
            let (sum, frames) = all.entry((name, stage)).or_default();
            for (frame, place) in places {
                let known = frames.entry(frame).or_default();
                known.calls += place.calls;
                known.device += place.device;
            }
            sum.calls += row.calls;
            sum.total += row.total;
            sum.own += row.own;
            sum.device += row.device;
            sum.allocate(row.allocated);
        }
    }
    let summary = |((name, stage), (row, frames)): ((&str, _), (Row, BTreeMap<&str, Place>))| OperatorSummary {
        name: name.to_owned(),
        stage,
        calls: row.calls,
        total_ns: row.total,
        self_ns: row.own,
        device_ns: has_device.then_some(row.device),
        bytes_allocated: has_memory.then(|| Bytes::new(row.allocated.max(0).unsigned_abs())),
        python: most(frames),
    };
    let mut summaries: Vec<_> = all.into_iter().map(summary).collect();
    summaries.sort_by_key(|operator| std::cmp::Reverse((operator.device_ns, operator.self_ns)));
    summaries
}

/// The places that matter most.
fn most(frames: BTreeMap<&str, Place>) -> Vec<OperatorPlace> {
    let mut frames: Vec<_> = frames.into_iter().collect();
    frames.sort_by_key(|(_, place)| std::cmp::Reverse((place.device, place.calls)));
    frames.truncate(PLACES);
    let place = |(frame, Place { calls, device }): (&str, Place)| OperatorPlace {
        frame: user_frame(frame).unwrap_or_else(|| frame.to_owned()),
        calls,
        device_ns: device,
    };
    frames.into_iter().map(place).collect()
}

/// The rows of one timeline: one for each name and stage, those outside of stages first.
struct Rows {
    clock: StageClock,
    /// Rows of one name.
    width: usize,
    rows: Vec<Row>,
    /// Per operator: the innermost frame of the user's around it. Empty without stacks.
    frames: Vec<Option<NameId>>,
    places: HashMap<(usize, NameId), Place>,
}

impl Rows {
    fn slot(&mut self, operator: &HostOperator) -> usize {
        let stage = self.clock.at(operator.thread, operator.start);
        let slot = stage.map_or(0, |stage| 1 + Stage::ALL.iter().position(|other| *other == stage).unwrap_or(0));
        operator.name.index() * self.width + slot
    }

    fn of(&mut self, operator: &HostOperator) -> &mut Row {
        let slot = self.slot(operator);
        &mut self.rows[slot]
    }

    /// The sums of the frame around an operator.
    fn place(&mut self, index: u32, operator: &HostOperator) -> Option<&mut Place> {
        let frame = (*self.frames.get(index as usize)?)?;
        let slot = self.slot(operator);
        Some(self.places.entry((slot, frame)).or_default())
    }
}

/// Rows of one timeline, by name and stage.
fn rows<'a>(placed: &PlacedTimeline<'a>) -> Vec<Named<'a>> {
    let PlacedTimeline { timeline, attribution, .. } = *placed;
    let width = if attribution.stages.is_empty() { 1 } else { 1 + Stage::ALL.len() };
    let clock = StageClock::new(&attribution.stages);
    let rows = vec![Row::default(); timeline.names.len() * width];
    let mut rows = Rows { clock, width, rows, frames: Vec::new(), places: HashMap::new() };
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
            let row = &timeline.operators[operator as usize];
            rows.of(row).device += work.duration;
            if let Some(place) = rows.place(operator, row) {
                place.device += work.duration;
            }
        }
    }
    let mut places: HashMap<usize, Vec<(&str, Place)>> = HashMap::new();
    for ((slot, frame), place) in std::mem::take(&mut rows.places) {
        places.entry(slot).or_default().push((timeline.name(frame), place));
    }
    let stages: Vec<_> = std::iter::once(None).chain(Stage::ALL.map(Some)).take(width).collect();
    let named = timeline.names.iter().flat_map(|(_, name)| stages.iter().map(move |stage| (name, *stage)));
    let rows = named.zip(rows.rows).enumerate().filter(|(_, (_, row))| row.calls > 0);
    rows.map(|(slot, ((name, stage), row))| (name, stage, row, places.remove(&slot).unwrap_or_default())).collect()
}

/// Host time without callees, memory taken and frames around, by walking the call tree of each thread.
fn own_time(timeline: &Timeline, rows: &mut Rows, is_meant: &dyn Fn(&HostOperator) -> bool) {
    let has_stacks = timeline.operators.iter().any(|one| one.kind == OperatorKind::Python);
    let users: Vec<bool> = if has_stacks {
        timeline.names.iter().map(|(_, name)| user_frame(name).is_some()).collect()
    } else {
        Vec::new()
    };
    let is_frame = |one: &HostOperator| one.kind == OperatorKind::Python && users[one.name.index()];
    if users.contains(&true) {
        rows.frames = vec![None; timeline.operators.len()];
    }
    let mut order: Vec<u32> = Vec::with_capacity(timeline.operators.len());
    let walked = (0u32..).zip(&timeline.operators).filter(|(_, one)| is_frame(one) || is_meant(one));
    order.extend(walked.map(|(index, _)| index));
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
    let mut frames: Vec<&HostOperator> = Vec::new();
    for index in order {
        let operator = &timeline.operators[index as usize];
        let moment = (operator.thread, operator.start);
        leave(&mut frames, moment);
        if operator.kind == OperatorKind::Python {
            frames.push(operator);
            continue;
        }
        if let Some(frame) = frames.last() {
            rows.frames[index as usize] = Some(frame.name);
            if let Some(place) = rows.place(index, operator) {
                place.calls += 1;
            }
        }
        while let Some(event) = taken.next_if(|event| (event.thread, event.time) < moment) {
            leave(&mut open, (event.thread, event.time));
            if let Some(inside) = open.last() {
                rows.of(inside).allocate(event.bytes);
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
            rows.of(inside).allocate(event.bytes);
        }
    }
}

/// Closes what has returned by that moment, or ran on another thread.
fn leave(open: &mut Vec<&HostOperator>, (thread, time): (types::timeline::ThreadId, Nanos)) {
    while open.last().is_some_and(|one| one.thread != thread || one.end() <= time) {
        open.pop();
    }
}
