//! A torch profiler trace: any bytes are read or refused by name; in chunks, as a stream and from beginning to end they say
//! the same; and what is missing is counted. The first byte says how large a chunk is.

use ingest::IngestError;
use ingest::torch::{TorchSettings, Trace, read, read_stream};
use types::Failure;
use types::timeline::Timeline;

/// What must hold for any input; whether it was read.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Some((first, bytes)) = bytes.split_first() else { return false };
    let largest_event_bytes = 1 << 16;
    let whole = TorchSettings { threads: 1, chunk_bytes: None, largest_event_bytes };
    let reading = read("trace.json", bytes, &whole);
    same(&reading, &read_stream("trace.json", bytes, &whole));
    if first % 4 == 0 {
        let chunks = TorchSettings { threads: 2, chunk_bytes: Some(usize::from(*first) + 1), largest_event_bytes };
        same(&reading, &read("trace.json", bytes, &chunks));
    }
    match reading {
        Ok(trace) => {
            check_trace(&trace);
            true
        }
        Err(error) => {
            assert!(error.to_string().starts_with("trace.json") && error.hint().is_some());
            false
        }
    }
}

fn same(one: &Result<Trace, IngestError>, other: &Result<Trace, IngestError>) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_eq!((&one.census, &one.loss), (&other.census, &other.loss));
            let (one, other) = (&one.timeline, &other.timeline);
            assert_eq!((&one.work, &one.calls, &one.operators), (&other.work, &other.calls, &other.operators));
            assert_eq!((&one.ranges, &one.memory, &one.threads), (&other.ranges, &other.memory, &other.threads));
            assert_eq!((&one.queues, &one.quality), (&other.queues, &other.quality));
            assert!(one.names.iter().eq(other.names.iter()) && one.signatures.iter().eq(other.signatures.iter()));
        }
        (Err(one), Err(other)) => assert_eq!(one, other),
        _ => panic!("{one:?} is not {other:?}"),
    }
}

/// What joins rely on: every place is in its table, and no sum of two times overflows.
fn check_trace(trace: &Trace) {
    let timeline = &trace.timeline;
    assert_eq!(trace.loss.is_some(), timeline.quality.iter().any(|counter| LOSSES.contains(&counter.counter.as_str())));
    for work in &timeline.work {
        assert!((work.queue.0 as usize) < timeline.queues.len());
        assert!(work.duration.get() >= 0 && work.end().get().abs() < Timeline::LARGEST_TIME);
    }
    for operator in &timeline.operators {
        assert!((operator.thread.0 as usize) < timeline.threads.len());
        assert!(operator.duration.get() >= 0 && operator.end().get().abs() < Timeline::LARGEST_TIME);
        if let Some(signature) = operator.signature {
            timeline.signatures.get(signature);
        }
    }
    for counter in &timeline.quality {
        assert!(counter.value > 0 && !counter.counter.is_empty());
        assert!(counter.share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}

const LOSSES: [&str; 3] = ["trace_ends_early", "trace_damaged", "trace_followed_by_other_data"];
