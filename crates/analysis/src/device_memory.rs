//! Memory of each device over a trace: how much tensors took at most, when, and in which step.
//!
//! The framework's allocator reports its totals with each event. Between two events nothing changes, so the level at a moment
//! is that of the latest event before it. Host memory is left out: there the totals start at zero with the recording.

use std::collections::{BTreeMap, BTreeSet};

use types::timeline::{MemoryEvent, Timeline};
use types::{Bytes, DeviceId, DeviceMemory, MemoryPoint, Nanos, StepMemory};

use crate::evidence::PlacedTimeline;
use crate::steps::{self, HostStep};

/// Stretches a timeline is divided into: as many as a chart has pixels to show.
const STRETCHES: i64 = 200;

/// Every device of every timeline whose allocator reports totals, in order.
pub(crate) fn device_memory(timelines: &[PlacedTimeline<'_>]) -> Vec<DeviceMemory> {
    timelines.iter().flat_map(of_timeline).collect()
}

fn of_timeline(placed: &PlacedTimeline<'_>) -> Vec<DeviceMemory> {
    let timeline = placed.timeline;
    let mut levels: BTreeMap<(u32, Option<u32>), Vec<Level>> = BTreeMap::new();
    for event in &timeline.memory {
        let (Some(device), Some(level)) = (event.device, Level::of(event)) else { continue };
        levels.entry((device, process(timeline, event))).or_default().push(level);
    }
    if levels.is_empty() {
        return Vec::new();
    }
    let steps = steps::host_steps(timeline, placed.attribution);
    let numbering = Numbering::new(timeline, levels.keys().map(|(device, _)| *device));
    let summary = |((device, process), mut levels): ((u32, Option<u32>), Vec<Level>)| {
        levels.sort_by_key(|level| level.time);
        let levels = Levels(levels);
        let own = steps.iter().filter(|step| step.process == process);
        let (first, peak) = (levels.0.first()?, levels.peak()?);
        Some(DeviceMemory {
            device: placed.device(numbering.device(device)),
            in_process: numbering.differs.then(|| DeviceId::cuda(device)),
            rank: placed.rank,
            allocations: levels.0.iter().filter(|level| level.after > level.before).count() as u64,
            start_allocated_bytes: Some(first.before),
            peak_allocated_bytes: Some(peak.allocated),
            peak_at_ns: Some(peak.time - first.time),
            peak_reserved_bytes: peak.reserved,
            by_step: own.filter_map(|step| levels.of_step(step)).collect(),
            timeline: levels.timeline(),
        })
    };
    levels.into_iter().filter_map(summary).collect()
}

/// How the allocator's events number devices beside the kernels.
struct Numbering {
    /// No device of the events has kernels.
    differs: bool,
    /// The only device of kernels, where the events have one as well.
    only: Option<u32>,
}

impl Numbering {
    fn new(timeline: &Timeline, events: impl Iterator<Item = u32>) -> Self {
        let events: BTreeSet<u32> = events.collect();
        let works = timeline.work.iter().map(|work| timeline.queues[work.queue.0 as usize].device);
        let works: BTreeSet<u32> = works.collect();
        let differs = !works.is_empty() && works.is_disjoint(&events);
        let only = works.first().filter(|_| differs && works.len() == 1 && events.len() == 1);
        Self { differs, only: only.copied() }
    }

    fn device(&self, device: u32) -> u32 {
        self.only.unwrap_or(device)
    }
}

fn process(timeline: &Timeline, event: &MemoryEvent) -> Option<u32> {
    timeline.threads[event.thread.0 as usize].process
}

/// Memory around one event.
#[derive(Clone, Copy)]
struct Level {
    time: Nanos,
    before: Bytes,
    after: Bytes,
    reserved: Option<Bytes>,
}

impl Level {
    /// Absent where the totals are not recorded, or contradict the event.
    fn of(event: &MemoryEvent) -> Option<Self> {
        let after = event.allocated?;
        let before = i128::from(after.get()) - i128::from(event.bytes);
        Some(Self {
            time: event.time,
            before: Bytes::new(u64::try_from(before).ok()?),
            after,
            reserved: event.reserved,
        })
    }
}

/// The largest of some levels.
#[derive(Clone, Copy)]
struct Peak {
    time: Nanos,
    allocated: Bytes,
    reserved: Option<Bytes>,
}

impl Peak {
    fn over(levels: &[Level]) -> Option<Self> {
        let mut peak: Option<Self> = None;
        for level in levels {
            let known = peak.get_or_insert(Self { time: level.time, allocated: level.after, reserved: level.reserved });
            if level.after > known.allocated {
                (known.time, known.allocated) = (level.time, level.after);
            }
            known.reserved = known.reserved.max(level.reserved);
        }
        peak
    }
}

/// Levels of one device, in order of time.
struct Levels(Vec<Level>);

impl Levels {
    fn peak(&self) -> Option<Peak> {
        let mut peak = Peak::over(&self.0)?;
        // What was there when the recording began may never be reached again.
        let first = self.0.first()?;
        if first.before > peak.allocated {
            (peak.time, peak.allocated) = (first.time, first.before);
        }
        Some(peak)
    }

    fn of_step(&self, step: &HostStep) -> Option<StepMemory> {
        let start = self.0.partition_point(|level| level.time < step.host.start);
        let end = self.0.partition_point(|level| level.time < step.host.end).max(start);
        let (inside, earlier) = (&self.0[start..end], start.checked_sub(1).map(|place| self.0[place]));
        let at_start = earlier.map(|level| level.after).or(self.0.first().map(|level| level.before))?;
        let at_end = inside.last().map_or(at_start, |level| level.after);
        let peak = Peak::over(inside);
        Some(StepMemory {
            step: step.name.clone(),
            peak_allocated_bytes: peak.map_or(at_start, |peak| peak.allocated.max(at_start)),
            peak_reserved_bytes: peak.and_then(|peak| peak.reserved).max(earlier.and_then(|level| level.reserved)),
            growth_bytes: at_end.get() as i64 - at_start.get() as i64,
        })
    }

    fn timeline(&self) -> Vec<MemoryPoint> {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return Vec::new() };
        let stretch = Nanos::new(((last.time - first.time).get() / STRETCHES + 1).max(1));
        let number = |level: &Level| (level.time - first.time).get() / stretch.get();
        let point = |levels: &[Level]| {
            let peak = Peak::over(levels)?;
            let at_ns = Nanos::new(number(levels.first()?) * stretch.get());
            Some(MemoryPoint { at_ns, allocated_bytes: peak.allocated, reserved_bytes: peak.reserved })
        };
        self.0.chunk_by(|one, next| number(one) == number(next)).filter_map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn levels(events: &[(i64, u64, i64)]) -> Levels {
        let level = |(time, allocated, bytes): &(i64, u64, i64)| {
            Level::of(&MemoryEvent {
                time: Nanos::new(*time),
                thread: types::timeline::ThreadId(0),
                bytes: *bytes,
                device: Some(0),
                allocated: Some(Bytes::new(*allocated)),
                reserved: Some(Bytes::new(1_000)),
            })
        };
        Levels(events.iter().filter_map(level).collect())
    }

    fn step(start: i64, end: i64) -> HostStep {
        HostStep { name: "step".to_owned(), process: None, host: Span::new(Nanos::new(start), Nanos::new(end)) }
    }

    #[test]
    fn a_device_that_the_process_numbers_by_itself_is_that_of_its_kernels() {
        let mut timeline = crate::device::sample::timeline(100, &[crate::device::sample::Launch::new(0, 1, 2)]);
        let of = |timeline: &Timeline, events: &[u32]| {
            let numbering = Numbering::new(timeline, events.iter().copied());
            (numbering.differs, numbering.device(events[0]))
        };
        assert_eq!(of(&timeline, &[0]), (false, 0));
        assert_eq!(of(&timeline, &[0, 1]), (false, 0), "a second device may have memory and no kernel");
        timeline.queues[0].device = 2;
        assert_eq!(of(&timeline, &[0]), (true, 2));
        assert_eq!(of(&timeline, &[0, 1]), (true, 0), "which of the two is not known");
        timeline.work.clear();
        assert_eq!(of(&timeline, &[0]), (false, 0), "no kernel was recorded");
    }

    #[test]
    fn a_peak_may_lie_before_the_first_event() {
        let peak = levels(&[(10, 50, -50), (20, 60, 10)]).peak().unwrap();
        assert_eq!((peak.allocated.get(), peak.time.get()), (100, 10));
    }

    #[test]
    fn a_step_without_events_has_the_level_it_starts_with() {
        let levels = levels(&[(10, 50, 50), (20, 80, 30), (30, 40, -40)]);
        let of = |start, end| {
            let found = levels.of_step(&step(start, end)).unwrap();
            (found.peak_allocated_bytes.get(), found.growth_bytes)
        };
        assert_eq!([of(0, 10), of(10, 20), of(15, 35), of(31, 99)], [(0, 0), (50, 50), (80, -10), (40, 0)]);
    }

    #[test]
    fn totals_that_contradict_the_event_are_left_out() {
        assert!(levels(&[(10, 50, 60)]).0.is_empty());
    }

    #[test]
    fn a_timeline_keeps_the_peak_of_each_stretch() {
        let events: Vec<_> = (0..10_000).map(|place| (place, 100 + (place as u64 % 7), 1)).collect();
        let levels = levels(&events);
        let timeline = levels.timeline();
        assert!(timeline.len() <= STRETCHES as usize && timeline.len() > 100, "{}", timeline.len());
        assert_eq!(timeline.iter().map(|point| point.allocated_bytes).max(), levels.peak().map(|peak| peak.allocated));
    }
}
