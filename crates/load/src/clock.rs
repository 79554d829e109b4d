//! Clocks of this machine, and how two of them relate.

use types::Nanos;

/// How often both clocks are read before the tightest reading is kept.
const READINGS: usize = 100;

/// The same moment on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// Unix time.
    pub epoch_ns: Nanos,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: Nanos,
    /// How far the two readings may be apart.
    pub uncertainty_ns: Nanos,
}

impl ClockPair {
    /// Now: the reading of Unix time between the two closest readings of the monotonic clock.
    pub fn read() -> Self {
        let pairs = (0..READINGS).map(|_| Self::read_once());
        pairs.min_by_key(|pair| pair.uncertainty_ns).expect("there is more than one reading")
    }

    /// One reading.
    fn read_once() -> Self {
        let (before, epoch_ns, after) = (monotonic(), read(libc::CLOCK_REALTIME), monotonic());
        let half = Nanos::new((after - before).get() / 2);
        Self { epoch_ns, monotonic_ns: before + half, uncertainty_ns: half + Nanos::new(1) }
    }
}

/// `CLOCK_MONOTONIC`, which profilers on the same machine can read too.
pub(crate) fn monotonic() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

/// Processor time of the calling thread.
pub(crate) fn thread_time() -> Nanos {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// One of the system's clocks.
fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing. The clocks named above always exist; were one missing, zero would stay.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_lies_between_readings_of_both_clocks() {
        let (monotonic_before, epoch_before) = (monotonic(), read(libc::CLOCK_REALTIME));
        let pair = ClockPair::read();
        assert!((monotonic_before..=monotonic()).contains(&pair.monotonic_ns));
        assert!((epoch_before..=read(libc::CLOCK_REALTIME)).contains(&pair.epoch_ns));
        assert!(pair.uncertainty_ns > Nanos::ZERO);
    }
}
