//! What a process used, as the system counts it.

use types::{Bytes, Nanos};

use crate::disturbance::SchedulerTimes;

/// What a process, and whatever it waited for, used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// From the moment it was asked for to its end.
    pub wall: Nanos,
    /// Of that, until it was the program.
    pub start: Nanos,
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
    /// No more than this: until a new process is the program it has what we have, and the system counts that too.
    AtMost(Bytes),
    /// The system does not say.
    Unknown,
}

/// Kilobytes that this process may still touch before the new one is the program, and that the system's counts may be off by:
/// it counts in batches. Half a megabyte was seen.
const SLACK: u64 = 2048;

/// Kilobytes this process has had at most.
pub(super) fn own_peak() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a local of the right type; all-zero is valid where the call fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_maxrss).unwrap_or_default()
}

/// Collects a process that has ended.
pub(super) fn collect(id: libc::pid_t, [wall, start]: [Nanos; 2], own: u64) -> std::io::Result<Usage> {
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
        start,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_memory: peak_memory(u64::try_from(usage.ru_maxrss).unwrap_or_default(), own),
        switches_involuntary: u64::try_from(usage.ru_nivcsw).unwrap_or_default(),
        first_thread: first_thread.map(|times| [nanos(times.ran), nanos(times.waited)]),
    })
}

/// Of the largest size the system saw, in kilobytes of 1024 bytes, and what we had ourselves by then.
fn peak_memory(largest: u64, own: u64) -> PeakMemory {
    let bytes = |kilobytes: u64| Bytes::new(kilobytes * 1024);
    match (largest, own) {
        (0, _) | (_, 0) => PeakMemory::Unknown,
        (largest, own) if largest <= own + SLACK => PeakMemory::AtMost(bytes(largest)),
        (largest, _) => PeakMemory::Known(bytes(largest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_had_ourselves_is_not_taken_for_memory_of_the_program() {
        assert_eq!(peak_memory(9_000, 4_000), PeakMemory::Known(Bytes::new(9_000 * 1024)));
        assert_eq!(peak_memory(4_100, 4_000), PeakMemory::AtMost(Bytes::new(4_100 * 1024)));
        assert_eq!(peak_memory(5_000, 0), PeakMemory::Unknown);
        assert_eq!(peak_memory(0, 4_000), PeakMemory::Unknown);
    }
}
