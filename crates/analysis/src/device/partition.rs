//! Wall time, divided among the pieces of device work it was spent on.
//!
//! In the order of their begin, each piece gets the time from the end of what ran before it to its own end: the part in
//! which the device waited for it, and the part in which it ran alone or carried on. Pieces that run wholly beside others
//! get nothing. While the device runs work of nobody or of another stage, a stage waits for that, and the device does not
//! wait. So the parts of a stage never overlap, and with that time and what is left behind the last piece they make up its
//! wall time exactly, whether the host or the device was the slower one.

use std::collections::{BTreeMap, BTreeSet};

use types::timeline::Timeline;
use types::{Nanos, Stage};

use crate::attribution::{Attribution, StageInstance, StageOrigin};
use crate::scope::Scope;
use crate::time::{Span, Spans};

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
    /// The part of it in which the device ran work of other stages, or of none, and none of this.
    pub(crate) others: Nanos,
    /// The device had finished everything; the host had not.
    pub(crate) after: Nanos,
}

/// The wall time of a timeline's stages, divided.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// One entry for each row of [`Timeline::work`].
    pub(crate) parts: Vec<Part>,
    /// When the device waited, each with the row it waited for; those of a row in order.
    pub(crate) waits: Vec<(u32, Span)>,
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
            waits: Vec::new(),
            stages: Vec::new(),
            scopes: attribution.stage.iter().map(|stage| stage.map(Scope::of)).collect(),
        };
        let busy = busy_by_device(timeline);
        for (instance, mut rows) in attribution.stages.iter().zip(work_of) {
            let is_stray = has_prefill && instance.stage.parent().is_some();
            if instance.parent.is_some() || is_stray {
                continue;
            }
            rows.sort_by_key(|row| timeline.work[*row as usize].start);
            let wall = instance.wall;
            let devices: BTreeSet<u32> = rows.iter().map(|row| device(timeline, *row)).collect();
            let busy =
                devices.iter().map(|device| busy[device].within(wall)).reduce(|one, other| one.intersect(&other));
            let busy = busy.unwrap_or_default();
            let held = Spans::union(busy.as_slice().iter().chain(instance.behind.as_slice()).copied());
            let (mut reached, mut others) = (wall.start, Nanos::ZERO);
            for row in rows {
                let work = &timeline.work[row as usize];
                let (start, end) = (work.start.clamp(wall.start, wall.end), work.end().clamp(wall.start, wall.end));
                let gap = Span::new(reached, start);
                others += busy.total_within(gap);
                let run = (end - start.max(reached)).max(Nanos::ZERO);
                partition.parts[row as usize].run = run;
                held.for_each_gap(gap, |wait| partition.add_wait(row, wait));
                reached = reached.max(end);
            }
            let last = Span::new(reached, wall.end);
            others += busy.total_within(last);
            let after = last.length() - held.total_within(last);
            let behind = instance.behind.total();
            partition.stages.push(StageTime { stage: Scope::of(instance.stage), wall, behind, others, after });
        }
        // Ranges say what is meant, and what lies outside of them is not.
        if attribution.stages.iter().all(|instance| instance.origin != StageOrigin::Ranges) {
            partition.add_rest(timeline, attribution);
        }
        partition
    }

    fn add_wait(&mut self, row: u32, wait: Span) {
        self.parts[row as usize].wait += wait.length();
        self.waits.push((row, wait));
    }

    /// Divides the time of each device that lies in no stage.
    fn add_rest(&mut self, timeline: &Timeline, attribution: &Attribution) {
        let stages = Spans::union(self.stages.iter().map(|stage| stage.wall));
        let scope = if self.stages.is_empty() { Scope::Run } else { Scope::Rest };
        let mut devices: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in (0..timeline.work.len() as u32).filter(|row| !attribution.is_aside(*row as usize)) {
            devices.entry(device(timeline, row)).or_default().push(row);
        }
        for mut rows in devices.into_values() {
            rows.sort_by_key(|row| timeline.work[*row as usize].start);
            let span = |row: &u32| Span::new(timeline.work[*row as usize].start, timeline.work[*row as usize].end());
            let Some(window) = rows.iter().map(span).reduce(Span::hull) else { continue };
            let outside = stages.gaps(window);
            let mut reached = window.start;
            for row in rows {
                let work = span(&row);
                // Work of a stage takes its time there; here it only ends a wait.
                if self.scopes[row as usize].is_none() {
                    self.parts[row as usize].run = outside.total_within(Span::new(work.start.max(reached), work.end));
                    outside.for_each_within(Span::new(reached, work.start), |wait| self.add_wait(row, wait));
                    self.scopes[row as usize] = Some(scope);
                }
                reached = reached.max(work.end);
            }
            for span in outside.as_slice() {
                let (wall, none) = (*span, Nanos::ZERO);
                self.stages.push(StageTime { stage: scope, wall, behind: none, others: none, after: none });
            }
        }
    }
}

fn device(timeline: &Timeline, row: u32) -> u32 {
    timeline.queues[timeline.work[row as usize].queue.0 as usize].device
}

/// When each device did anything.
fn busy_by_device(timeline: &Timeline) -> BTreeMap<u32, Spans> {
    let mut spans: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for (row, work) in timeline.work.iter().enumerate() {
        spans.entry(device(timeline, row as u32)).or_default().push(Span::new(work.start, work.end()));
    }
    spans.into_iter().map(|(device, spans)| (device, Spans::union(spans))).collect()
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

    #[test]
    fn a_stage_waits_for_work_of_others_and_the_device_does_not() {
        // A launch before the range, whose work runs while the stage has none: from 150 to 350 of a wait from 0 to 400.
        let before = [Launch::new(10, 400, 100), Launch::new(20, 600, 100)];
        let mut timeline = timeline(1_000, &before);
        let [own, other] = [timeline.work[0].start, timeline.work[1].start];
        timeline.work[1].start = own - Nanos::new(250);
        timeline.work[1].duration = Nanos::new(200);
        assert!(other > own);
        let mut attribution = attribute(&timeline, &AttributionSettings::default());
        let within = Partition::new(&timeline, &attribution);
        assert_eq!(
            (within.parts[0].wait.get(), within.parts[1].run.get(), within.stages[0].others.get()),
            (50, 200, 0)
        );
        (attribution.instance[1], attribution.stage[1]) = (None, None);
        let found = Partition::new(&timeline, &attribution);
        assert_eq!(
            (found.parts[0].wait.get(), found.parts[1], found.stages[0].others.get()),
            (200, Part::default(), 200)
        );
        let waits: Vec<_> = found.waits.iter().map(|(_, wait)| wait.length().get()).collect();
        assert_eq!(waits, [150, 50], "before the other work and after it");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_counted_twice(work in proptest::collection::vec((0i64..900, 0i64..300), 0..30)) {
            let launches: Vec<_> =
                work.iter().map(|(start, duration)| Launch::new(*start / 2, *start, *duration)).collect();
            let found = divided(&launches);
            let parts: Nanos = found.parts.iter().map(|part| part.total()).sum();
            let wall: Nanos = found.stages.iter().map(|stage| stage.wall.length()).sum();
            let rest: Nanos = found.stages.iter().map(|stage| stage.after + stage.others + stage.behind).sum();
            prop_assert_eq!(parts + rest, wall);
            let waits: Nanos = found.waits.iter().map(|(_, wait)| wait.length()).sum();
            prop_assert_eq!(waits, found.parts.iter().map(|part| part.wait).sum::<Nanos>());
            prop_assert!(wall >= Nanos::new(1_000));
        }
    }
}
