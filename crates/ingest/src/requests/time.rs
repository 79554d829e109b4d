//! Times of clients, which are fractions of seconds or milliseconds, in whole nanoseconds.

use types::Nanos;

/// Nanoseconds of a second.
pub(super) const SECOND: f64 = 1e9;

/// A time that is not a number, or one that 64 bits do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotATime;

/// `time` in units of `unit` nanoseconds, rounded.
pub(super) fn nanos(time: f64, unit: f64) -> Result<Nanos, NotATime> {
    let rounded = (time * unit).round();
    // The largest double below 2^63 is exact; NaN is not below it.
    if rounded.abs() < 9_223_372_036_854_775_808.0 { Ok(Nanos::new(rounded as i64)) } else { Err(NotATime) }
}

/// When chunks arrive, from the time to the first and the times between them. Clients take times in whole nanoseconds, so
/// each gap is rounded for itself, and a sum of thousands does not drift.
pub(super) fn chunks(first: f64, gaps: &[f64], unit: f64) -> Result<Vec<Nanos>, NotATime> {
    let mut chunks = Vec::with_capacity(gaps.len() + 1);
    let mut now = nanos(first, unit)?;
    chunks.push(now);
    for gap in gaps {
        now = Nanos::new(now.get().checked_add(nanos(*gap, unit)?.get()).ok_or(NotATime)?);
        chunks.push(now);
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_to_the_nanosecond_the_clock_gave() {
        // 0.1 + 0.2 is 0.30000000000000004.
        assert_eq!(nanos(0.1 + 0.2, SECOND), Ok(Nanos::new(300_000_000)));
        assert_eq!(nanos(219.586_559_113, SECOND), Ok(Nanos::new(219_586_559_113)));
        assert_eq!(nanos(4.898_437, 1e6), Ok(Nanos::new(4_898_437)));
        assert_eq!(nanos(-1e-17, SECOND), Ok(Nanos::ZERO));
        for time in [f64::NAN, f64::INFINITY, 1e308, -1e10] {
            assert_eq!(nanos(time, SECOND), Err(NotATime), "{time}");
        }
    }

    #[test]
    fn chunks_are_sums_that_do_not_drift_or_overflow() {
        let found = chunks(0.5, &vec![0.000_000_001; 1_000_000], SECOND).unwrap();
        assert_eq!(found.last(), Some(&Nanos::new(501_000_000)));
        assert_eq!(chunks(9e9, &[9e9], SECOND), Err(NotATime));
    }
}
