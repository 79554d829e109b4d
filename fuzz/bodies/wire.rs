//! A file of the collector: any bytes are read or refused, in time and memory that the bytes themselves bound.

use types::timeline::Timeline;

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Ok(timeline) = ingest::wire::read("process-1.wire", bytes) else { return false };
    // A record is at least three bytes; a range may be cut into as many parts as there are windows.
    let rows = timeline.work.len() + timeline.calls.len();
    assert!(rows <= bytes.len() / 3);
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
