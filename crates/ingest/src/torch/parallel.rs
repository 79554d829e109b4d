//! The events of a large trace on several threads.
//!
//! The bytes are cut into chunks of equal size. In each, a worker guesses where an event starts and reads from there to
//! the first event of the next chunk. The chunks are then put together in order: one whose guess is where the chunk before
//! it ended was right and is taken; one whose guess is anywhere else is thrown away and read again from the right place.
//! So the result does not depend on the guesses, only the time does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use super::events::{Expectation, Pause, Progress, guess, scan};
use super::part::Part;

/// How to read in parallel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) threads: usize,
    pub(crate) chunk: usize,
    pub(crate) largest: usize,
}

/// What a worker found: where it started, the rows from there, and where it stopped.
struct Stretch {
    start: usize,
    part: Part,
    progress: Progress,
}

/// Reads the events from `at` on, in a list that has just been opened there.
pub(crate) fn read(bytes: &[u8], at: usize, plan: Plan, part: &mut Part) -> Progress {
    let chunk = plan.chunk.max(1);
    let count = (bytes.len() - at).div_ceil(chunk);
    if plan.threads < 2 || count < 2 {
        return scan(bytes, at, Expectation::Event, usize::MAX, plan.largest, part);
    }
    let end_of = |index: usize| if index + 1 == count { usize::MAX } else { at + (index + 1) * chunk };
    let (next, over) = (AtomicUsize::new(1), AtomicBool::new(false));
    let work = |index: usize| {
        let start = guess(bytes, at + index * chunk, end_of(index).min(bytes.len()))?;
        let mut part = Part::new();
        let progress = scan(bytes, start, Expectation::Event, end_of(index), plan.largest, &mut part);
        Some(Stretch { start, part, progress })
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let worker = |sender: mpsc::Sender<_>| {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count || over.load(Ordering::Relaxed) || sender.send((index, work(index))).is_err() {
                    return;
                }
            }
        };
        // This thread reads too: the first chunk, and whatever was guessed wrong.
        for _ in 1..plan.threads.min(count) {
            let sender = sender.clone();
            scope.spawn(move || worker(sender));
        }
        drop(sender);
        let mut progress = scan(bytes, at, Expectation::Event, end_of(0), plan.largest, part);
        let mut early = BTreeMap::new();
        for index in 1..count {
            if progress.pause != Pause::Boundary {
                break;
            }
            let found = loop {
                if let Some(found) = early.remove(&index) {
                    break found;
                }
                // While no chunk is ready, take one, so that this thread does not stand idle.
                match receiver.try_recv() {
                    Ok((other, found)) => early.insert(other, found),
                    Err(_) => match next.fetch_add(1, Ordering::Relaxed) {
                        mine if mine < count => early.insert(mine, work(mine)),
                        _ => match receiver.recv() {
                            Ok((other, found)) => early.insert(other, found),
                            Err(_) => break None,
                        },
                    },
                };
            };
            match found {
                _ if progress.at >= end_of(index) => {}
                Some(found) if found.start == progress.at => {
                    part.absorb(found.part);
                    progress = found.progress;
                }
                _ => progress = scan(bytes, progress.at, Expectation::Event, end_of(index), plan.largest, part),
            }
        }
        over.store(true, Ordering::Relaxed);
        progress
    })
}
