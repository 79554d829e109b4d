//! Device work by queue.

use types::Nanos;
use types::timeline::Timeline;

/// How far back the work of another queue is looked at.
const BACK: usize = 8;

/// Rows of each queue, by their start.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) rows: Vec<Vec<u32>>,
}

impl Queues {
    pub(super) fn new(timeline: &Timeline) -> Self {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); timeline.queues.len()];
        for (row, work) in timeline.work.iter().enumerate() {
            rows[work.queue.0 as usize].push(row as u32);
        }
        for rows in &mut rows {
            let start = |row: &u32| timeline.work[*row as usize].start;
            if !rows.is_sorted_by_key(start) {
                rows.sort_by_key(start);
            }
        }
        Self { rows }
    }

    /// The latest work of a queue that had ended at a moment and that `which` chooses, among the last few.
    pub(super) fn ended(
        &self,
        timeline: &Timeline,
        queue: usize,
        moment: Nanos,
        which: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let rows = &self.rows[queue];
        let started = rows.partition_point(|row| timeline.work[*row as usize].start <= moment);
        let last = rows[started.saturating_sub(BACK)..started].iter().copied();
        let ended = last.filter(|row| timeline.work[*row as usize].end() <= moment && which(*row));
        ended.max_by_key(|row| timeline.work[*row as usize].end())
    }

    /// Queues of the device that a queue belongs to, without itself.
    pub(super) fn beside(timeline: &Timeline, queue: usize) -> impl Iterator<Item = usize> {
        let own = &timeline.queues[queue];
        let same = move |other: &usize| {
            let other_queue = &timeline.queues[*other];
            *other != queue && other_queue.device == own.device && other_queue.process == own.process
        };
        (0..timeline.queues.len()).filter(same)
    }
}
