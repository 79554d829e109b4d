//! A SQLite export of nsys: any bytes are read or refused, in time and memory that the bytes themselves bound.

use types::timeline::Timeline;

/// Tables that become rows. A hostile file can let all of them begin at the same page.
const TABLES: usize = 7;

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Ok(timeline) = ingest::nsys::sqlite::read("trace.sqlite", bytes) else { return false };
    let rows = timeline.work.len() + timeline.calls.len() + timeline.ranges.len();
    assert!(rows <= TABLES * bytes.len() / 2);
    let bounded = |time: types::Nanos| Timeline::time(time.get()).is_some();
    for work in &timeline.work {
        assert!(bounded(work.start) && bounded(work.end()) && work.duration >= types::Nanos::ZERO);
        assert!(timeline.queues.get(work.queue.0 as usize).is_some());
        timeline.name(work.name);
    }
    for call in &timeline.calls {
        assert!(bounded(call.start) && bounded(call.end()) && call.duration >= types::Nanos::ZERO);
        assert!(timeline.threads.get(call.thread.0 as usize).is_some());
        timeline.name(call.name);
    }
    for range in &timeline.ranges {
        assert!(bounded(range.start) && range.end.is_none_or(|end| bounded(end) && end >= range.start));
        assert!(timeline.threads.get(range.thread.0 as usize).is_some());
        timeline.name(range.name);
    }
    true
}
