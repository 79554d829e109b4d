//! Times of a timeline on the clock of the day.

use types::Nanos;
use types::timeline::Timeline;

/// Times after this are counted from 1970: 2001-09-09. Before `baseTimeNanoseconds` traces had such times themselves.
const UNIX_TIMES: i64 = 1_000_000_000_000_000_000;

/// What turns times of a timeline into nanoseconds since 1970; `None` where they are relative to nothing.
pub fn unix_zero(timeline: &Timeline) -> Option<Nanos> {
    let first = timeline.work.iter().map(|work| work.start).chain(timeline.calls.iter().map(|call| call.start)).next();
    match first {
        Some(first) if first.get() >= UNIX_TIMES => Some(Nanos::ZERO),
        _ => timeline.clock.unix_ns_at_zero,
    }
}
