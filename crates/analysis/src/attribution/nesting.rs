//! Nesting of spans on a thread, rebuilt from their times; the order of the source is not trusted.

use types::Nanos;

use crate::time::Span;

/// Rows grouped by thread, in order within each.
#[derive(Clone, Debug)]
pub(super) struct ByThread {
    /// Places of the rows, thread after thread.
    pub(super) rows: Vec<u32>,
    /// Where each thread starts, and the end.
    offsets: Vec<u32>,
}

impl ByThread {
    /// Groups `(row, thread)` pairs. Ties keep the order of the source.
    pub(super) fn new<K: Ord>(
        threads: usize,
        rows: impl Iterator<Item = (u32, u32)> + Clone,
        key: impl Fn(u32) -> K,
    ) -> Self {
        let mut offsets = vec![0u32; threads + 1];
        for (_, thread) in rows.clone() {
            offsets[thread as usize + 1] += 1;
        }
        for thread in 0..threads {
            offsets[thread + 1] += offsets[thread];
        }
        let mut next = offsets.clone();
        let mut places = vec![0u32; offsets[threads] as usize];
        for (row, thread) in rows {
            let place = &mut next[thread as usize];
            places[*place as usize] = row;
            *place += 1;
        }
        for thread in 0..threads {
            let of_thread = &mut places[offsets[thread] as usize..offsets[thread + 1] as usize];
            sort(of_thread, &key);
        }
        Self { rows: places, offsets }
    }

    /// Where a thread's rows lie in [`Self::rows`].
    pub(super) fn span(&self, thread: usize) -> std::ops::Range<usize> {
        self.offsets[thread] as usize..self.offsets[thread + 1] as usize
    }

    /// Rows of a thread.
    pub(super) fn of(&self, thread: usize) -> &[u32] {
        &self.rows[self.span(thread)]
    }
}

/// Sorts rows, ties in the order they have. Sources write ranges when they close, so that each row stands just behind those
/// inside it: putting every row where it belongs is then quicker than sorting afresh, which is done where it is not.
fn sort<K: Ord>(rows: &mut [u32], key: &impl Fn(u32) -> K) {
    /// Places a row may move on average: about how deep ranges nest.
    const MOVES: usize = 16;
    let mut moves = MOVES * rows.len();
    for at in 1..rows.len() {
        let this = key(rows[at]);
        if key(rows[at - 1]) <= this {
            continue;
        }
        let (mut low, mut step) = (at - 1, 1);
        while low > 0 && key(rows[low - 1]) > this {
            low = low.saturating_sub(step);
            step *= 2;
        }
        let place = low + rows[low..at].partition_point(|row| key(*row) <= this);
        match moves.checked_sub(at - place) {
            Some(left) => moves = left,
            None => return rows.sort_by_cached_key(|row| key(*row)),
        }
        rows[place..=at].rotate_right(1);
    }
}

/// Spans of one thread that are open at a moment. Feed it in order of (start ascending, end descending).
///
/// Ends never grow towards the top: a span that ends before one opened inside it can no longer be the innermost, because
/// the later one covers all that is left of it. So each span is pushed and popped once, however badly spans nest.
#[derive(Debug, Default)]
pub(super) struct Open {
    stack: Vec<(Nanos, u32)>,
    /// Where spans that ended inside one opened later overlap with it.
    pub(super) crossing: Vec<Span>,
}

impl Open {
    /// Opens a span and gives back the one it lies in.
    pub(super) fn open(&mut self, row: u32, start: Nanos, end: Nanos) -> Option<u32> {
        self.close_until(start);
        while let Some((other, _)) = self.stack.pop_if(|(other, _)| *other < end) {
            self.crossing.push(Span::new(start, other));
        }
        let parent = self.stack.last().map(|(_, row)| *row);
        self.stack.push((end, row));
        parent
    }

    /// The innermost span around a moment. Moments never go back.
    pub(super) fn innermost(&mut self, moment: Nanos) -> Option<u32> {
        self.close_until(moment);
        self.stack.last().map(|(_, row)| *row)
    }

    fn close_until(&mut self, moment: Nanos) {
        while self.stack.pop_if(|(end, _)| *end <= moment).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_sorted_and_ties_keep_their_order(keys in proptest::collection::vec(0..20i64, 0..100)) {
            let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
            sort(&mut rows, &|row| keys[row as usize]);
            let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
            expected.sort_by_key(|row| keys[*row as usize]);
            prop_assert_eq!(rows, expected);
        }

        #[test]
        fn the_innermost_span_is_the_last_opened_that_is_still_open(
            mut spans in proptest::collection::vec((0..50i64, 0..50i64), 0..20),
            mut moments in proptest::collection::vec(0..60i64, 0..20),
        ) {
            spans.sort_by_key(|(start, length)| (*start, std::cmp::Reverse(start + length)));
            moments.sort_unstable();
            let mut open = Open::default();
            let mut next = spans.iter().enumerate().peekable();
            for moment in moments {
                while let Some((row, (start, length))) = next.next_if(|(_, span)| span.0 <= moment) {
                    let parent = open.open(row as u32, Nanos::new(*start), Nanos::new(start + length));
                    if let Some(parent) = parent {
                        let (from, long) = spans[parent as usize];
                        prop_assert!(from <= *start && start + length <= from + long, "a parent holds its child");
                    }
                }
                let found = open.innermost(Nanos::new(moment));
                let around = |span: &(i64, i64)| span.0 <= moment && moment < span.0 + span.1;
                prop_assert_eq!(found, spans.iter().rposition(around).map(|row| row as u32));
            }
        }
    }

    #[test]
    fn rows_in_no_order_are_sorted_all_the_same() {
        let keys: Vec<i64> = (0..5_000).map(|place| (place * 7_919) % 5_003).collect();
        let mut rows: Vec<u32> = (0..5_000).collect();
        sort(&mut rows, &|row| keys[row as usize]);
        assert!(rows.is_sorted_by_key(|row| keys[*row as usize]));
    }

    #[test]
    fn spans_that_cross_are_kept_with_their_overlap() {
        let mut open = Open::default();
        open.open(0, Nanos::new(0), Nanos::new(10));
        assert_eq!(open.open(1, Nanos::new(5), Nanos::new(15)), None);
        assert_eq!(open.crossing, [Span::new(Nanos::new(5), Nanos::new(10))]);
        assert_eq!(open.innermost(Nanos::new(7)), Some(1));
    }
}
