//! From device work to the host, by the numbers that both sides carry.

use types::timeline::{QueueId, ThreadId, Timeline};

/// Which call launched each kernel, copy and memset.
pub(super) struct Join {
    /// Per work: place in [`Timeline::calls`].
    pub(super) call: Vec<Option<u32>>,
    /// Work whose number belongs to calls of several processes, with nothing that tells which.
    pub(super) ambiguous: u64,
}

impl Join {
    /// Joins work to calls by process and correlation number.
    pub(super) fn new(timeline: &Timeline) -> Self {
        let calls = timeline.calls.iter().enumerate();
        let rows = calls.filter_map(|(place, call)| Some((call.correlation?.0.get(), call.thread, place as u32)));
        let start = |place: u32| timeline.calls[place as usize].start;
        // A runtime call and the driver call inside it may share the number: the one that started first.
        let mut calls =
            NumberIndex::new(timeline, rows, |one, other| if start(other) < start(one) { other } else { one });
        let process = |place: u32| timeline.threads[timeline.calls[place as usize].thread.0 as usize].process;
        let mut ambiguous = 0;
        let call = timeline.work.iter().map(|work| {
            let mut found: Option<u32> = None;
            for place in calls.of(work.correlation?.0.get(), work.queue) {
                match found {
                    Some(first) if process(first) != process(place) => {
                        ambiguous += 1;
                        return None;
                    }
                    Some(first) if start(first) <= start(place) => {}
                    _ => found = Some(place),
                }
            }
            found
        });
        Self { call: call.collect(), ambiguous }
    }
}

/// Rows of the host by number and by where they come from: process and rank. A source may give one number to thousands of
/// rows; they are merged into one for each number and origin, so that looking a number up never walks over them.
pub(super) struct NumberIndex {
    /// Number, origin and place, in order.
    rows: Vec<(u64, u32, u32)>,
    /// Per queue and origin: whether a row of that origin may belong to work of that queue.
    agrees: Vec<Vec<bool>>,
    /// Where the last number was found. Work follows its calls, so the next search gallops on from there.
    hint: usize,
}

type Origin = (Option<u32>, Option<u32>);

impl NumberIndex {
    /// Takes rows as number, thread and place. `merge` says which place stands for two rows of one number and origin.
    ///
    /// Some sources number the process of a queue and some do not; an unknown process agrees with any.
    pub(super) fn new(
        timeline: &Timeline,
        rows: impl Iterator<Item = (u64, ThreadId, u32)>,
        merge: impl Fn(u32, u32) -> u32,
    ) -> Self {
        let threads: Vec<Origin> = timeline.threads.iter().map(|thread| (thread.process, thread.rank)).collect();
        let mut origins = threads.clone();
        origins.sort_unstable();
        origins.dedup();
        let of_thread: Vec<u32> =
            threads.iter().map(|origin| origins.partition_point(|other| other < origin) as u32).collect();
        let mut rows: Vec<_> =
            rows.map(|(number, thread, place)| (number, of_thread[thread.0 as usize], place)).collect();
        if !rows.is_sorted() {
            rows.sort_unstable();
        }
        rows.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 = merge(kept.2, next.2);
            }
            same
        });
        let agree = |one: Option<u32>, other: Option<u32>| one.is_none() || other.is_none() || one == other;
        let agrees = timeline.queues.iter().map(|queue| {
            origins.iter().map(|(process, rank)| agree(*process, queue.process) && agree(*rank, queue.rank)).collect()
        });
        Self { rows, agrees: agrees.collect(), hint: 0 }
    }

    /// Places of the rows with a number that may belong to work of a queue, one per process and rank.
    pub(super) fn of(&mut self, number: u64, queue: QueueId) -> impl Iterator<Item = u32> {
        self.hint = seek(&self.rows, self.hint, number);
        let agrees = &self.agrees[queue.0 as usize];
        let same = self.rows[self.hint..].iter().take_while(move |(other, ..)| *other == number);
        same.filter(|(_, origin, _)| agrees[*origin as usize]).map(|(.., place)| *place)
    }
}

/// First place whose number is not below `number`, searched from the last find on.
fn seek(rows: &[(u64, u32, u32)], hint: usize, number: u64) -> usize {
    let mut low = if rows.get(hint).is_some_and(|(first, ..)| *first <= number) { hint } else { 0 };
    let mut step = 1;
    while rows.get(low + step).is_some_and(|(other, ..)| *other < number) {
        low += step;
        step *= 2;
    }
    let high = (low + step).min(rows.len());
    low + rows[low..high].partition_point(|(other, ..)| *other < number)
}
