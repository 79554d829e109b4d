//! Wall time, divided among the pieces of device work it was spent on.
//!
//! In the order of their begin, each piece gets the time from the end of what ran before it to its own end: the part in
//! which the device waited for it, and the part in which it ran alone or carried on. Pieces that run wholly beside others
//! get nothing. So the parts of a stage never overlap, and with what is left behind the last piece they make up its wall
//! time exactly, whether the host or the device was the slower one.

use std::collections::BTreeMap;

use types::timeline::Timeline;
use types::{Nanos, Stage};

use crate::attribution::{Attribution, StageInstance, StageOrigin};
use crate::scope::Scope;
use crate::time::{Span, Spans};

/// A wait behind work that the trace does not hold takes at least this.
const LONG: Nanos = Nanos::new(1_000_000);

/// What one piece of work has of the wall time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The device had nothing to do and waited for this, until its begin.
    pub(crate) wait: Nanos,
    /// It ran, and nothing that began earlier still did.
    pub(crate) run: Nanos,
}

impl Part {
    /// Both.
    pub(crate) fn total(self) -> Nanos {
        self.wait + self.run
    }
}

/// Wall time of one run of prefill or decode, or of a device in no stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StageTime {
    /// Which.
    pub(crate) stage: Scope,
    /// Its wall time, on the clock of the trace.
    pub(crate) wall: Span,
    /// The part of it in which it waited behind work that the trace does not hold.
    pub(crate) behind: Nanos,
    /// The device had finished everything; the host had not.
    pub(crate) after: Nanos,
}

/// The wall time of a timeline's stages, divided.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// One entry for each row of [`Timeline::work`].
    pub(crate) parts: Vec<Part>,
    /// Runs of prefill and decode, and devices outside of them.
    pub(crate) stages: Vec<StageTime>,
    /// One entry for each row: what it counts for.
    pub(crate) scopes: Vec<Option<Scope>>,
}

impl Partition {
    /// Divides the wall time of every run of prefill and decode.
    pub(crate) fn new(timeline: &Timeline, attribution: &Attribution) -> Self {
        let mut work_of: Vec<Vec<u32>> = vec![Vec::new(); attribution.stages.len()];
        for (row, instance) in attribution.instance.iter().enumerate() {
            if let Some(instance) = instance {
                work_of[outermost(&attribution.stages, *instance)].push(row as u32);
            }
        }
        // An encoder that runs outside prefill beside one that runs inside is a warm-up: its time is no part of prefill's.
        let has_prefill = attribution.stages.iter().any(|instance| instance.stage == Stage::Prefill);
        let mut partition = Self {
            parts: vec![Part::default(); timeline.work.len()],
            stages: Vec::new(),
            scopes: attribution.stage.iter().map(|stage| stage.map(Scope::of)).collect(),
        };
        for (instance, mut rows) in attribution.stages.iter().zip(work_of) {
            let is_stray = has_prefill && instance.stage.parent().is_some();
            if instance.parent.is_some() || is_stray {
                continue;
            }
            rows.sort_by_key(|row| timeline.work[*row as usize].start);
            let wall = instance.wall;
            let (mut reached, mut behind) = (wall.start, instance.behind);
            for row in rows {
                let work = &timeline.work[row as usize];
                let (start, end) = (work.start.clamp(wall.start, wall.end), work.end().clamp(wall.start, wall.end));
                let wait = (start - reached).max(Nanos::ZERO);
                // The longest waits of an annotated step are those behind others.
                let other = if wait >= LONG { wait.min(behind) } else { Nanos::ZERO };
                behind = behind - other;
                let wait = wait - other;
                let run = (end - start.max(reached)).max(Nanos::ZERO);
                partition.parts[row as usize] = Part { wait, run };
                reached = reached.max(end);
            }
            let after = wall.end - reached;
            let behind = instance.behind - behind;
            partition.stages.push(StageTime { stage: Scope::of(instance.stage), wall, behind, after });
        }
        // Ranges say what is meant, and what lies outside of them is not.
        if attribution.stages.iter().all(|instance| instance.origin != StageOrigin::Ranges) {
            partition.add_rest(timeline, attribution);
        }
        partition
    }

    /// Divides the time of each device that lies in no stage.
    fn add_rest(&mut self, timeline: &Timeline, attribution: &Attribution) {
        let stages = Spans::union(self.stages.iter().map(|stage| stage.wall));
        let scope = if self.stages.is_empty() { Scope::Run } else { Scope::Rest };
        let mut devices: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (row, work) in timeline.work.iter().enumerate().filter(|(row, _)| !attribution.is_aside(*row)) {
            devices.entry(timeline.queues[work.queue.0 as usize].device).or_default().push(row as u32);
        }
        for mut rows in devices.into_values() {
            rows.sort_by_key(|row| timeline.work[*row as usize].start);
            let span = |row: &u32| Span::new(timeline.work[*row as usize].start, timeline.work[*row as usize].end());
            let Some(window) = rows.iter().map(span).reduce(Span::hull) else { continue };
            let outside = stages.gaps(window);
            let mut reached = window.start;
            for row in rows {
                let work = span(&row);
                let row = row as usize;
                // Work of a stage takes its time there; here it only ends a wait.
                if self.scopes[row].is_none() {
                    let wait = outside.total_within(Span::new(reached, work.start));
                    let run = outside.total_within(Span::new(work.start.max(reached), work.end));
                    self.parts[row] = Part { wait, run };
                    self.scopes[row] = Some(scope);
                }
                reached = reached.max(work.end);
            }
            for span in outside.as_slice() {
                let (wall, none) = (*span, Nanos::ZERO);
                self.stages.push(StageTime { stage: scope, wall, behind: none, after: none });
            }
        }
    }
}

fn outermost(stages: &[StageInstance], instance: u32) -> usize {
    let mut place = instance as usize;
    while let Some(parent) = stages[place].parent {
        place = parent as usize;
    }
    place
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, range, timeline};

    fn divided(launches: &[Launch]) -> Partition {
        let timeline = timeline(1_000, launches);
        Partition::new(&timeline, &attribute(&timeline, &AttributionSettings::default()))
    }

    #[test]
    fn waiting_running_and_what_follows_make_up_the_wall() {
        // Begins at 100 and 400, runs 200 and 100; the stage lasts from 0 to 1,000.
        let found = divided(&[Launch::new(10, 100, 200), Launch::new(20, 400, 100)]);
        let parts: Vec<_> = found.parts.iter().map(|part| (part.wait.get(), part.run.get())).collect();
        assert_eq!(parts, [(100, 200), (100, 100)]);
        assert_eq!((found.stages.len(), found.stages[0].after.get()), (1, 500));
    }

    #[test]
    fn work_beside_other_work_gets_what_it_adds() {
        let found = divided(&[Launch::new(10, 100, 200), Launch::new(20, 150, 100), Launch::new(30, 250, 100)]);
        let parts: Vec<_> = found.parts.iter().map(|part| (part.wait.get(), part.run.get())).collect();
        assert_eq!(parts, [(100, 200), (0, 0), (0, 50)]);
    }

    #[test]
    fn an_encoder_that_ran_before_prefill_is_no_part_of_it() {
        let mut timeline = timeline(1_000, &[Launch::new(10, 100, 200), Launch::new(2_010, 2_100, 200)]);
        range(&mut timeline, "sam", 2_000, 3_000);
        let found = Partition::new(&timeline, &attribute(&timeline, &AttributionSettings::default()));
        assert_eq!((found.stages.len(), found.parts[1]), (1, Part::default()));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_counted_twice(work in proptest::collection::vec((0i64..900, 0i64..300), 0..30)) {
            let launches: Vec<_> =
                work.iter().map(|(start, duration)| Launch::new(*start / 2, *start, *duration)).collect();
            let found = divided(&launches);
            let parts: Nanos = found.parts.iter().map(|part| part.total()).sum();
            let wall: Nanos = found.stages.iter().map(|stage| stage.wall.length()).sum();
            let after: Nanos = found.stages.iter().map(|stage| stage.after).sum();
            prop_assert_eq!(parts + after, wall);
            prop_assert!(wall >= Nanos::new(1_000));
        }
    }
}
