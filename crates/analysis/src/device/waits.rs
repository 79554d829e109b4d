//! What the host did while the device waited for it.
//!
//! The time a device waits for a piece of work is looked at on the thread that launched it: time inside calls that block
//! belongs to what they wait for, all other time to preparing and launching.

use std::collections::BTreeMap;

use types::timeline::{ThreadId, Timeline};
use types::{Nanos, Stage};

use super::partition::Partition;
use crate::attribution::Attribution;
use crate::loss::Wait;
use crate::modules::top;
use crate::time::Span;

/// Waiting time by what the host did, per row of device work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// By top stage and cause.
    pub(crate) of_stage: BTreeMap<(Stage, Wait), Nanos>,
    /// Calls that blocked while the device had nothing to do: by top stage, cause and name.
    pub(crate) calls: BTreeMap<(Stage, Wait, String), u64>,
}

/// Names of calls that block, by what they wait for; the begin of the name decides, the first that fits.
const BLOCKING: [(&str, Wait); 12] = [
    ("cudaDeviceSynchronize", Wait::Synchronisation),
    ("cudaStreamSynchronize", Wait::Synchronisation),
    ("cudaEventSynchronize", Wait::Synchronisation),
    ("cuCtxSynchronize", Wait::Synchronisation),
    ("cuStreamSynchronize", Wait::Synchronisation),
    ("cuEventSynchronize", Wait::Synchronisation),
    ("cudaMemcpy", Wait::Copy),
    ("cuMemcpy", Wait::Copy),
    ("cudaMalloc", Wait::Allocation),
    ("cudaFree", Wait::Allocation),
    ("cuMemAlloc", Wait::Allocation),
    ("cuMemFree", Wait::Allocation),
];

/// What a call waits for; absent where it does not block.
pub(crate) fn blocking(name: &str) -> Option<Wait> {
    BLOCKING.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, wait)| *wait)
}

/// Divides all waiting of a partition.
pub(crate) fn waits(timeline: &Timeline, attribution: &Attribution, partition: &Partition) -> Waits {
    let blocking = blocking_calls(timeline);
    let mut waits = Waits::default();
    for (row, part) in partition.parts.iter().enumerate() {
        let Some(stage) = attribution.stage[row].map(top).filter(|_| part.wait > Nanos::ZERO) else { continue };
        let mut open = part.wait;
        match attribution.launch[row].map(|call| timeline.calls[call as usize].thread) {
            None => *waits.of_stage.entry((stage, Wait::Unknown)).or_default() += open,
            Some(thread) => {
                let until = timeline.work[row].start;
                let gap = Span::new(until - part.wait, until);
                for (call, wait, name) in overlapping(&blocking, thread, gap) {
                    let covered = call.intersect(gap).length().min(open);
                    *waits.of_stage.entry((stage, wait)).or_default() += covered;
                    *waits.calls.entry((stage, wait, timeline.name(name).to_owned())).or_default() += 1;
                    open = open - covered;
                }
                *waits.of_stage.entry((stage, Wait::Launch)).or_default() += open;
            }
        }
    }
    waits
}

type Blocking = (Span, Wait, types::timeline::NameId);

/// Calls that block, by thread, in order of their begin. Calls of one thread follow each other.
fn blocking_calls(timeline: &Timeline) -> BTreeMap<ThreadId, Vec<Blocking>> {
    let kinds: Vec<_> = timeline.names.iter().map(|(_, name)| blocking(name)).collect();
    let mut threads: BTreeMap<ThreadId, Vec<Blocking>> = BTreeMap::new();
    for call in &timeline.calls {
        if let Some(wait) = kinds[call.name.index()] {
            threads.entry(call.thread).or_default().push((Span::new(call.start, call.end()), wait, call.name));
        }
    }
    for calls in threads.values_mut() {
        calls.sort_by_key(|(span, _, _)| span.start);
    }
    threads
}

fn overlapping(
    blocking: &BTreeMap<ThreadId, Vec<Blocking>>,
    thread: ThreadId,
    gap: Span,
) -> impl Iterator<Item = Blocking> {
    let calls = blocking.get(&thread).map_or(&[][..], Vec::as_slice);
    let first = calls.partition_point(|(span, _, _)| span.end <= gap.start);
    calls[first..].iter().take_while(move |(span, _, _)| span.start < gap.end).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{Settings, attribute};
    use crate::device::sample::{Launch, call, timeline};

    fn divided(timeline: &Timeline) -> Waits {
        let attribution = attribute(timeline, &Settings::default());
        waits(timeline, &attribution, &Partition::new(timeline, &attribution))
    }

    #[test]
    fn time_in_blocking_calls_is_theirs_and_the_rest_is_launching() {
        // The device waits from 200 to 700; the host waits for it until 250, copies from 300 to 350.
        let mut timeline = timeline(1_000, &[Launch::new(0, 100, 100), Launch::new(600, 700, 100)]);
        call(&mut timeline, "cudaStreamSynchronize", 50, 200, None);
        call(&mut timeline, "cudaMemcpyAsync", 300, 50, None);
        let found = divided(&timeline);
        let of = |wait| found.of_stage.get(&(Stage::Prefill, wait)).map(|time| time.get());
        assert_eq!(of(Wait::Synchronisation), Some(100));
        assert_eq!(of(Wait::Copy), Some(50));
        assert_eq!(of(Wait::Launch), Some(450));
        assert_eq!(found.of_stage.values().copied().sum::<Nanos>(), Nanos::new(600));
        assert_eq!(found.calls.len(), 2);
    }

    #[test]
    fn without_the_call_that_launched_it_nobody_knows() {
        let mut timeline = timeline(1_000, &[Launch::new(0, 100, 100)]);
        timeline.calls.clear();
        assert!(divided(&timeline).of_stage.is_empty(), "work without a call has no stage either");
    }

    #[test]
    fn launches_do_not_block() {
        assert_eq!(blocking("cudaLaunchKernel"), None);
        assert_eq!(blocking("cudaMemsetAsync"), None);
        assert_eq!(blocking("cudaMemcpyAsync"), Some(Wait::Copy));
    }
}
