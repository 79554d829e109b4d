//! What was asked for: to collect all the time, or inside ranges of given names.
//!
//! `LLM_PERF_INJECT_WINDOW` is a list such as `prefill,decode_step:8..16`: every pushed range named `prefill`, and from the
//! push of the ninth range named `decode_step` to the pop of the sixteenth, across whatever lies between them. Ranges are
//! recorded all the time; calls and device work inside windows only, and outside CUPTI is not attached.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::number::number;

const MOST: usize = 8;
const LONGEST: usize = 64;

/// The windows that were asked for; none means always.
pub(crate) struct Windows {
    entries: [Window; MOST],
    count: usize,
}

struct Window {
    name: [u8; LONGEST],
    length: usize,
    /// First and last-but-one instance; absent where each is a window of its own.
    instances: Option<(u32, u32)>,
    seen: AtomicU32,
}

/// What a range does to its window.
#[derive(Clone, Copy, Default)]
pub(crate) struct Effect {
    /// Its push opens it.
    pub(crate) opens: bool,
    /// Its pop closes it.
    pub(crate) closes: bool,
}

impl Windows {
    /// Reads the list. A part that is not understood matches no range; the program that starts us has checked it.
    pub(crate) fn read(text: &[u8]) -> Self {
        let none = |_| Window { name: [0; LONGEST], length: 0, instances: None, seen: AtomicU32::new(0) };
        let mut windows = Self { entries: core::array::from_fn(none), count: 0 };
        let parts = text.split(|byte| *byte == b',').filter(|part| !part.is_empty());
        for (entry, part) in windows.entries.iter_mut().zip(parts) {
            let (name, instances) = instances(part);
            entry.instances = instances;
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

    /// The window of that name, by its place.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.entries().iter().position(|entry| entry.name.get(..entry.length) == Some(name))
    }

    /// A range is about to be pushed whose name is that of the window at `place`.
    pub(crate) fn pushed(&self, place: usize) -> Effect {
        let Some(entry) = self.entries().get(place) else { return Effect::default() };
        let instance = entry.seen.fetch_add(1, Ordering::Relaxed);
        match entry.instances {
            Some((from, to)) => Effect { opens: instance == from, closes: instance.checked_add(1) == Some(to) },
            None => Effect { opens: true, closes: true },
        }
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        self.count > 0
    }
}

/// A name and the instances behind it: `decode_step:8..16`, `decode_step:3`. A name may have colons of its own.
fn instances(part: &[u8]) -> (&[u8], Option<(u32, u32)>) {
    let Some(colon) = part.iter().rposition(|byte| *byte == b':') else { return (part, None) };
    let (Some(name), Some(range)) = (part.get(..colon), part.get(colon + 1..)) else { return (part, None) };
    let dots = range.windows(2).position(|pair| pair == b"..");
    let ends = match dots {
        Some(at) => number(range.get(..at).unwrap_or_default()).zip(number(range.get(at + 2..).unwrap_or_default())),
        None => number(range).and_then(|one| Some((one, one.checked_add(1)?))),
    };
    match ends {
        Some((from, to)) if from < to => (name, Some((from, to))),
        _ => (part, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_instances_are_told_apart() {
        assert_eq!(instances(b"prefill"), (&b"prefill"[..], None));
        assert_eq!(instances(b"decode_step:8..16"), (&b"decode_step"[..], Some((8, 16))));
        assert_eq!(instances(b"decode_step:3"), (&b"decode_step"[..], Some((3, 4))));
        assert_eq!(instances(b"cub::DeviceScan"), (&b"cub::DeviceScan"[..], None));
        assert_eq!(instances(b"step:5..5"), (&b"step:5..5"[..], None));
    }

    #[test]
    fn a_list_has_every_part() {
        let windows = Windows::read(b"prefill,decode_step:8..16,");
        assert_eq!(windows.find(b"prefill"), Some(0));
        assert_eq!(windows.find(b"decode_step"), Some(1));
        assert_eq!(windows.find(b"decode"), None);
        assert!(windows.are_there() && !Windows::read(b"").are_there());
    }
}
