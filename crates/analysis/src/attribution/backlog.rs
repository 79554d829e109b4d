//! Work that was launched before the recording: it has no launch, and launched work of its queue comes behind it. A queue runs its
//! work in order.

use types::Nanos;
use types::timeline::Timeline;

use crate::time::Span;

/// Which work it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// One entry for each row of [`Timeline::work`].
    pub(crate) rows: Vec<bool>,
    /// From the first start to the last end.
    pub(crate) span: Option<Span>,
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
        Self { rows, span }
    }

    /// Until when it kept a device from `own` work. Work of which more than half ran before that end did not wait for all of it: a
    /// recording may also lack launches of its own.
    pub(crate) fn until(&self, own: Option<Span>) -> Option<Nanos> {
        let end = self.span?.end;
        own.filter(|own| end - own.start <= own.end - end).map(|_| end)
    }

    /// How much work it is.
    pub(crate) fn count(&self) -> u64 {
        self.rows.iter().filter(|is_before| **is_before).count() as u64
    }
}
