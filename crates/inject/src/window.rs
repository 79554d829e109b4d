//! When to collect: all the time, or inside ranges of given names.
//!
//! `LLM_PERF_INJECT_WINDOW` is a list such as `prefill,decode_step:8..16`: every pushed range named `prefill`, and from the
//! push of the ninth range named `decode_step` to the pop of the sixteenth, across whatever lies between them. Ranges are
//! recorded all the time; calls and device work inside windows only, and outside CUPTI is not attached.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::attachment;
use crate::log::Log;
use crate::settings::{number, settings};
use crate::system::{monotonic, now};

const MOST: usize = 8;
const LONGEST: usize = 64;

/// Whether calls are recorded right now.
static COLLECTING: AtomicBool = AtomicBool::new(false);
/// Windows that are open.
static OPEN: AtomicU32 = AtomicU32::new(0);
/// When the last one closed; zero while one is open.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// How long after a window CUPTI stays on, for work that was launched in it to end.
const LINGER: u64 = 50_000_000;

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

/// What the pop of a range has to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pop {
    Nothing,
    Close,
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

/// Whether calls are recorded right now.
#[inline]
pub(crate) fn is_open() -> bool {
    COLLECTING.load(Ordering::Relaxed)
}

/// Collects from now on, where no window was asked for.
pub(crate) fn begin_without_windows() {
    COLLECTING.store(true, Ordering::Relaxed);
}

/// Stops collecting, in the child of a fork or at the end.
pub(crate) fn reset() {
    COLLECTING.store(false, Ordering::Relaxed);
    OPEN.store(0, Ordering::Relaxed);
    CLOSED.store(0, Ordering::Relaxed);
}

/// A range is about to be pushed whose name is that of the window at `place`; what its pop has to do.
pub(crate) fn pushed(log: &Log, place: usize) -> Pop {
    let entry = settings().and_then(|settings| settings.windows.entries().get(place));
    let Some(entry) = entry else { return Pop::Nothing };
    let instance = entry.seen.fetch_add(1, Ordering::Relaxed);
    let (first, last) = match entry.instances {
        Some((from, to)) => (instance == from, instance.checked_add(1) == Some(to)),
        None => (true, true),
    };
    if first {
        open(log);
    }
    if last { Pop::Close } else { Pop::Nothing }
}

fn open(log: &Log) {
    if OPEN.fetch_add(1, Ordering::AcqRel) == 0 {
        CLOSED.store(0, Ordering::Relaxed);
        attachment::switch_on();
        COLLECTING.store(true, Ordering::Relaxed);
        log.window(true, now());
    }
}

/// The range that closes a window was popped.
pub(crate) fn close(log: &Log) {
    if OPEN.fetch_sub(1, Ordering::AcqRel) == 1 {
        COLLECTING.store(false, Ordering::Relaxed);
        log.window(false, now());
        CLOSED.store(monotonic(), Ordering::Relaxed);
    }
}

/// Lets go of CUPTI some time after a window has closed. Called by the writer thread now and then, after it has fetched what
/// there is.
pub(crate) fn settle() {
    let closed = CLOSED.load(Ordering::Relaxed);
    let over = closed != 0 && monotonic().saturating_sub(closed) > LINGER && !any_open();
    if over {
        CLOSED.store(0, Ordering::Relaxed);
    }
    if over || attachment::is_draining() {
        attachment::step_back();
    }
}

/// Whether [`settle`] has more to do.
pub(crate) fn is_settling() -> bool {
    CLOSED.load(Ordering::Relaxed) != 0 || any_open() || attachment::is_draining()
}

/// Whether a window is open, for the writer thread.
pub(crate) fn any_open() -> bool {
    OPEN.load(Ordering::Acquire) > 0
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
