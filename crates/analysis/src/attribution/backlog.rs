//! Work that was launched before the recording: it has no launch, and launched work of its queue comes behind it. A queue runs its
//! work in order. The recording may lack the work too: then a device does nothing in it, although its first work was launched long
//! before that starts.

use std::collections::BTreeMap;

use types::Nanos;
use types::timeline::Timeline;

use crate::time::Span;

/// Work that starts later than this after its launch waits behind something.
pub(super) const LONG: Nanos = Nanos::new(1_000_000);

/// Which work it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// One entry for each row of [`Timeline::work`].
    pub(crate) rows: Vec<bool>,
    /// From the first start to the last end.
    pub(crate) span: Option<Span>,
    /// Starts of devices' first works that waited for others in no recording.
    held: Vec<Nanos>,
}

impl Backlog {
    /// `launch` has the call of each row.
    pub(crate) fn new(timeline: &Timeline, launch: &[Option<u32>]) -> Self {
        let mut first: Vec<Option<Nanos>> = vec![None; timeline.queues.len()];
        for (work, _) in timeline.work.iter().zip(launch).filter(|(_, call)| call.is_some()) {
            let first = &mut first[work.queue.0 as usize];
            *first = Some(first.map_or(work.start, |first| first.min(work.start)));
        }
        let works = timeline.work.iter().zip(launch);
        let is_before = |(work, call): (&types::timeline::DeviceWork, &Option<u32>)| {
            call.is_none() && first[work.queue.0 as usize].is_some_and(|first| work.start < first)
        };
        let rows: Vec<bool> = works.map(is_before).collect();
        let works = timeline.work.iter().zip(&rows).filter(|(_, is_before)| **is_before);
        let span = works.map(|(work, _)| Span::new(work.start, work.end())).reduce(Span::hull);
        Self { rows, span, held: held(timeline, launch) }
    }

    /// Until when it kept a device from `own` work. Work of which more than half ran before that end did not wait for all of it: a
    /// recording may also lack launches of its own.
    pub(crate) fn until(&self, own: Option<Span>) -> Option<Nanos> {
        let own = own?;
        let recorded = self.span.map(|span| span.end).filter(|end| *end - own.start <= own.end - *end);
        recorded.max(self.held.iter().copied().find(|start| *start == own.start))
    }

    /// How much work it is.
    pub(crate) fn count(&self) -> u64 {
        self.rows.iter().filter(|is_before| **is_before).count() as u64
    }
}

/// When devices start their first works, where each of those was launched long before: something occupied the device until then.
fn held(timeline: &Timeline, launch: &[Option<u32>]) -> Vec<Nanos> {
    let mut first: BTreeMap<u32, (Nanos, Option<u32>)> = BTreeMap::new();
    for (work, call) in timeline.work.iter().zip(launch) {
        let device = timeline.queues[work.queue.0 as usize].device;
        let first = first.entry(device).or_insert((work.start, *call));
        *first = (*first).min((work.start, *call));
    }
    let waited = |(start, call): (Nanos, Option<u32>)| {
        call.is_some_and(|call| start - timeline.calls[call as usize].end() >= LONG).then_some(start)
    };
    first.into_values().filter_map(waited).collect()
}
