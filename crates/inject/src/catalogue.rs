//! What is said once and must not be lost: names of domains, registered strings, problems. Any thread adds, the writer
//! thread reads, nothing is ever taken out, and it may be read again from the beginning (by the child of a fork).

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words: half a mebibyte.
const WORDS: usize = 1 << 16;
/// Longest text.
const LONGEST: usize = 2048;

/// Kinds of entries.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Domain = 1,
    Registered = 2,
    Problem = 3,
    Collector = 4,
}

/// An entry.
pub(crate) struct Entry<'a> {
    pub(crate) kind: u8,
    pub(crate) number: u32,
    pub(crate) text: &'a [u8],
}

struct Arena {
    /// Words that are taken.
    taken: AtomicUsize,
    dropped: AtomicU64,
    words: UnsafeCell<[u64; WORDS]>,
}

// SAFETY: every word is written by the one thread that took it, before it publishes the first word of its entry.
unsafe impl Sync for Arena {}

static ARENA: Arena =
    Arena { taken: AtomicUsize::new(0), dropped: AtomicU64::new(0), words: UnsafeCell::new([0; WORDS]) };

fn head(place: usize) -> &'static AtomicU64 {
    // SAFETY: callers stay below `WORDS`, and a word that is the first of an entry is only used as an atomic.
    unsafe { AtomicU64::from_ptr(ARENA.words.get().cast::<u64>().add(place)) }
}

/// Adds an entry; what does not fit is dropped and counted.
pub(crate) fn add(kind: Kind, number: u32, text: &[u8]) {
    let text = text.get(..LONGEST).unwrap_or(text);
    let words = 1 + text.len().div_ceil(8);
    let place = ARENA.taken.fetch_add(words, Ordering::Relaxed);
    if place.saturating_add(words) > WORDS {
        // Full from here on. Taking it back would let a shorter one in behind a gap that is never filled.
        ARENA.taken.store(WORDS, Ordering::Relaxed);
        ARENA.dropped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: these words were taken for this entry, and are read only after the first of them is published.
    unsafe {
        let at = ARENA.words.get().cast::<u64>().add(place + 1);
        core::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), text.len());
    }
    let first = kind as u64 | (text.len() as u64) << 8 | u64::from(number) << 32;
    head(place).store(first, Ordering::Release);
}

/// Entries that did not fit.
pub(crate) fn dropped() -> u64 {
    ARENA.dropped.load(Ordering::Relaxed)
}

/// Hands over the entries from a place on; the place to go on from next time.
pub(crate) fn read(mut place: usize, mut each: impl FnMut(Entry<'_>)) -> usize {
    while place < WORDS {
        let first = head(place).load(Ordering::Acquire);
        if first == 0 {
            break;
        }
        let length = (first >> 8) as u16 as usize;
        // SAFETY: the entry is published, so its text is written and stays as it is; it lies inside the arena.
        let text = unsafe {
            let at = ARENA.words.get().cast::<u64>().add(place + 1);
            core::slice::from_raw_parts(at.cast::<u8>(), length)
        };
        each(Entry { kind: first as u8, number: (first >> 32) as u32, text });
        place += 1 + length.div_ceil(8);
    }
    place
}
