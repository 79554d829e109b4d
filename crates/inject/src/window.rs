//! What was asked for: to collect all the time, or in windows.
//!
//! `LLM_PERF_INJECT_WINDOW` is a list of up to eight of these:
//!
//! - `prefill`: inside every pushed range of that name;
//! - `decode_step:8..16`: from the push of the ninth range of that name to the pop of the sixteenth, across whatever lies between;
//! - `decode bs>=32`: inside every range by which a serving engine announces such a step, see `step`;
//! - `cudaProfilerApi`: from `cudaProfilerStart` to `cudaProfilerStop`;
//! - `5s..10s`: from five seconds after the driver has started to ten.
//!
//! Ranges are recorded all the time; calls and device work inside windows only.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::number::number;
use crate::step::Wanted;

const MOST: usize = 8;
const LONGEST: usize = 64;

/// The windows that were asked for; none means always.
pub(crate) struct Windows {
    entries: [Window; MOST],
    count: usize,
    /// Whether there is one whenever somebody asks for it.
    on_request: bool,
}

struct Window {
    name: [u8; LONGEST],
    length: usize,
    when: When,
    /// Instances that were met, or how far a span of time has come.
    seen: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    /// Inside every range of the name.
    Each,
    /// From one instance to the end of the one before another.
    Instances(u32, u32),
    /// Inside ranges that announce a step.
    Step(Wanted),
    /// While the CUDA profiler is started.
    Profiler,
    /// Milliseconds after the driver has started.
    Time(u32, u32),
}

/// What a range, or time, does to its window.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// It opens.
    pub(crate) opens: bool,
    /// It closes; where a range does it, by its pop.
    pub(crate) closes: bool,
}

impl Window {
    /// Whether ranges of one name may open both.
    fn is_named_like(&self, other: &Self) -> bool {
        let by_name = |window: &Self| matches!(window.when, When::Each | When::Instances(..));
        by_name(self) && by_name(other) && self.length == other.length && self.name == other.name
    }
}

impl Windows {
    /// Reads the list. A part that is not understood matches no range; the program that starts us has checked it.
    pub(crate) fn read(text: &[u8], on_request: bool) -> Self {
        let none = |_| Window { name: [0; LONGEST], length: 0, when: When::Each, seen: AtomicU32::new(0) };
        let mut windows = Self { entries: core::array::from_fn(none), count: 0, on_request };
        let parts = text.split(|byte| *byte == b',').filter(|part| !part.is_empty());
        for (entry, part) in windows.entries.iter_mut().zip(parts) {
            let (name, when) = when(part);
            entry.when = when;
            entry.length = name.len().min(LONGEST);
            for (slot, byte) in entry.name.iter_mut().zip(name) {
                *slot = *byte;
            }
            windows.count += 1;
        }
        windows
    }

    fn entries(&self) -> &[Window] {
        self.entries.get(..self.count).unwrap_or_default()
    }

    /// The window that a range of that name may open, by its place.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.entries().iter().position(|entry| match entry.when {
            When::Each | When::Instances(..) => entry.name.get(..entry.length) == Some(name),
            When::Step(wanted) => wanted.is(name),
            When::Profiler | When::Time(..) => false,
        })
    }

    /// A range is about to be pushed that may open the window at `place`: what that does, to it and to the others of its name.
    pub(crate) fn pushed(&self, place: usize, mut each: impl FnMut(Effect)) {
        let Some(entry) = self.entries().get(place) else { return };
        let instance = entry.seen.fetch_add(1, Ordering::Relaxed);
        let same = |other: &&Window| core::ptr::eq(*other, entry) || entry.is_named_like(other);
        for other in self.entries().iter().filter(same) {
            each(match other.when {
                When::Instances(from, to) => {
                    Effect { opens: instance == from, closes: instance.checked_add(1) == Some(to) }
                }
                _ => Effect { opens: true, closes: true },
            });
        }
    }

    /// So many milliseconds have passed since the driver started: what that does, to each window of time. For one thread only.
    pub(crate) fn passed(&self, milliseconds: u64, mut each: impl FnMut(Effect)) {
        for entry in self.entries() {
            let When::Time(from, to) = entry.when else { continue };
            let now = if milliseconds < u64::from(from) {
                0
            } else if milliseconds < u64::from(to) {
                1
            } else {
                2
            };
            let before = entry.seen.swap(now, Ordering::Relaxed);
            each(Effect { opens: before == 0 && now == 1, closes: before == 1 && now == 2 });
        }
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        self.count > 0 || self.on_request
    }

    /// Whether one opens by time.
    pub(crate) fn by_time(&self) -> bool {
        self.entries().iter().any(|entry| matches!(entry.when, When::Time(..)))
    }

    /// Whether one is the program's own, by the CUDA profiler's functions.
    pub(crate) fn by_profiler(&self) -> bool {
        self.entries().iter().any(|entry| entry.when == When::Profiler)
    }
}

/// A name and when it opens a window. A name may have colons of its own.
fn when(part: &[u8]) -> (&[u8], When) {
    if part == b"cudaProfilerApi" {
        return (part, When::Profiler);
    }
    if let Some((from, to)) = ends(part, |end| number(end.strip_suffix(b"s")?)?.checked_mul(1000)) {
        return (part, When::Time(from, to));
    }
    if let Some(wanted) = Wanted::read(part) {
        return (part, When::Step(wanted));
    }
    let Some(colon) = part.iter().rposition(|byte| *byte == b':') else { return (part, When::Each) };
    let (Some(name), Some(range)) = (part.get(..colon), part.get(colon + 1..)) else { return (part, When::Each) };
    let one = number(range).and_then(|one| Some((one, one.checked_add(1)?)));
    match ends(range, number).or(one) {
        Some((from, to)) => (name, When::Instances(from, to)),
        None => (part, When::Each),
    }
}

/// The two ends of `FROM..TO`, the second after the first.
fn ends(text: &[u8], end: impl Fn(&[u8]) -> Option<u32>) -> Option<(u32, u32)> {
    let at = text.windows(2).position(|pair| pair == b"..")?;
    let ends = (end(text.get(..at)?)?, end(text.get(at + 2..)?)?);
    (ends.0 < ends.1).then_some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_instances_times_and_steps_are_told_apart() {
        assert_eq!(when(b"prefill"), (&b"prefill"[..], When::Each));
        assert_eq!(when(b"decode_step:8..16"), (&b"decode_step"[..], When::Instances(8, 16)));
        assert_eq!(when(b"decode_step:3"), (&b"decode_step"[..], When::Instances(3, 4)));
        assert_eq!(when(b"cub::DeviceScan"), (&b"cub::DeviceScan"[..], When::Each));
        assert_eq!(when(b"step:5..5"), (&b"step:5..5"[..], When::Each));
        assert_eq!(when(b"5s..10s").1, When::Time(5000, 10_000));
        assert_eq!(when(b"10s..5s").1, When::Each);
        assert_eq!(when(b"cudaProfilerApi").1, When::Profiler);
        assert!(matches!(when(b"decode bs>=32").1, When::Step(_)));
    }

    #[test]
    fn a_list_has_every_part() {
        let windows = Windows::read(b"prefill,decode_step:8..16,cudaProfilerApi,", false);
        assert_eq!(windows.find(b"prefill"), Some(0));
        assert_eq!(windows.find(b"decode_step"), Some(1));
        assert_eq!(windows.find(b"decode"), None);
        assert_eq!(windows.find(b"cudaProfilerApi"), None, "no range opens it");
        assert!(windows.are_there() && !Windows::read(b"", false).are_there());
        assert!(windows.by_profiler() && !Windows::read(b"prefill", false).by_profiler());
    }

    #[test]
    fn every_window_of_a_name_counts_its_instances() {
        let windows = Windows::read(b"step:1..2,other,step:3..5", false);
        let mut found = Vec::new();
        for instance in 0..6 {
            windows.pushed(windows.find(b"step").unwrap(), |effect| {
                found.extend(effect.opens.then_some((instance, "opens")));
                found.extend(effect.closes.then_some((instance, "closes")));
            });
        }
        assert_eq!(found, [(1, "opens"), (1, "closes"), (3, "opens"), (4, "closes")]);
    }

    #[test]
    fn time_opens_and_closes_once() {
        let windows = Windows::read(b"1s..2s", false);
        let at = |milliseconds| {
            let mut effects = Vec::new();
            windows.passed(milliseconds, |effect| effects.push((effect.opens, effect.closes)));
            effects
        };
        let all: Vec<_> = [0, 999, 1000, 1500, 2000, 9000].into_iter().flat_map(at).collect();
        let no = (false, false);
        assert_eq!(all, [no, no, (true, false), no, (false, true), no]);
    }
}
