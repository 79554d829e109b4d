//! What a process used, as the system counts it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

use types::{Bytes, Nanos};

use super::exit::monotonic;
use crate::disturbance::SchedulerTimes;

/// What a process, and whatever it waited for, used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// From the moment it became the program to its end.
    pub wall: Nanos,
    /// Processor time in programs.
    pub user: Nanos,
    /// Processor time in the system.
    pub system: Nanos,
    /// Most memory one of its processes had at a time.
    pub peak_memory: PeakMemory,
    /// Times a processor was taken from it while it wanted to go on.
    pub switches_involuntary: u64,
    /// Processor time of its first thread, and the time that was ready to run and did not; absent where the system does not
    /// count.
    pub first_thread: Option<[Nanos; 2]>,
}

/// Most memory one of the processes had at a time, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeakMemory {
    /// This much.
    Known(Bytes),
    /// No more than this: until a new process becomes another program it has what we have, and the system counts that too.
    AtMost(Bytes),
    /// The system does not say.
    Unknown,
}

/// Kilobytes that a new process may still touch before it becomes the program, and that the system's counts may be off by:
/// it counts in batches. Half a megabyte was seen.
const SLACK: u64 = 2048;

/// A page that a new process writes to before it becomes another program, and both see.
pub(super) struct StartNote(NonNull<StartFacts>);

/// What it writes; zero where it did not.
#[derive(Default)]
struct StartFacts {
    /// Kilobytes it had.
    memory: AtomicI64,
    /// When, by [`monotonic`].
    began: AtomicI64,
}

/// The page as the new process sees it.
#[derive(Clone, Copy)]
pub(super) struct SharedPlace(NonNull<StartFacts>);

// SAFETY: it points to memory shared between processes, which is only used by atomic operations.
unsafe impl Send for SharedPlace {}
// SAFETY: as above.
unsafe impl Sync for SharedPlace {}

impl StartNote {
    pub(super) fn new() -> std::io::Result<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place of the system's choice.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<StartFacts>(), access, kind, -1, 0) };
        match NonNull::new(page.cast()).filter(|_| page != libc::MAP_FAILED) {
            Some(place) => Ok(Self(place)),
            None => Err(std::io::Error::last_os_error()),
        }
    }

    pub(super) fn place(&self) -> SharedPlace {
        SharedPlace(self.0)
    }

    /// Kilobytes the new process had; absent where it could not tell.
    pub(super) fn memory(&self) -> Option<u64> {
        u64::try_from(self.facts().memory.load(Ordering::SeqCst)).ok().filter(|kilobytes| *kilobytes > 0)
    }

    /// When it was about to become the program; absent where it could not tell.
    pub(super) fn began(&self) -> Option<Nanos> {
        Some(Nanos::new(self.facts().began.load(Ordering::SeqCst))).filter(|time| *time > Nanos::ZERO)
    }

    fn facts(&self) -> &StartFacts {
        // SAFETY: the mapping is ours until this is dropped; all-zero, as it starts, is valid.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for StartNote {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size, and nobody in this process uses it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<StartFacts>()) };
    }
}

impl SharedPlace {
    /// Between fork and exec: writes down what the process has, and the time.
    pub(super) fn write(&self) {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a local of the right type; all-zero is valid where the call fails.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        // SAFETY: the mapping is inherited, and stays until the process becomes another program.
        let facts = unsafe { self.0.as_ref() };
        facts.memory.store(usage.ru_maxrss, Ordering::SeqCst);
        facts.began.store(monotonic().get(), Ordering::SeqCst);
    }
}

/// Collects a process that has ended.
pub(super) fn collect(id: libc::pid_t, wall: Nanos, at_fork: Option<u64>) -> std::io::Result<Usage> {
    let nanos = |time: u64| Nanos::new(i64::try_from(time).unwrap_or(i64::MAX));
    let first_thread = SchedulerTimes::of_first_thread(id.unsigned_abs());
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers are to locals of the right type, and the child has not been collected.
    while unsafe { libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr()) } == -1 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: wait4 filled it in; all-zero was valid before.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000);
    Ok(Usage {
        wall,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_memory: peak_memory(u64::try_from(usage.ru_maxrss).unwrap_or_default(), at_fork),
        switches_involuntary: u64::try_from(usage.ru_nivcsw).unwrap_or_default(),
        first_thread: first_thread.map(|times| [nanos(times.ran), nanos(times.waited)]),
    })
}

/// Of the largest size the system saw, in kilobytes of 1024 bytes, and the size before the process became the program.
fn peak_memory(largest: u64, at_fork: Option<u64>) -> PeakMemory {
    let bytes = |kilobytes: u64| Bytes::new(kilobytes * 1024);
    match (largest, at_fork) {
        (0, _) | (_, None) => PeakMemory::Unknown,
        (largest, Some(before)) if largest <= before + SLACK => PeakMemory::AtMost(bytes(largest)),
        (largest, Some(_)) => PeakMemory::Known(bytes(largest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_had_ourselves_is_not_taken_for_memory_of_the_program() {
        assert_eq!(peak_memory(9_000, Some(4_000)), PeakMemory::Known(Bytes::new(9_000 * 1024)));
        assert_eq!(peak_memory(4_100, Some(4_000)), PeakMemory::AtMost(Bytes::new(4_100 * 1024)));
        assert_eq!(peak_memory(5_000, None), PeakMemory::Unknown);
        assert_eq!(peak_memory(0, Some(4_000)), PeakMemory::Unknown);
    }
}
