//! Spans of time and sets of them.

use types::Nanos;

/// From a start to an end; the end is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Start.
    pub start: Nanos,
    /// End.
    pub end: Nanos,
}

/// A set of moments: spans in order that neither touch nor overlap, none of them empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<Span>);

impl Span {
    /// From a start to an end.
    pub fn new(start: Nanos, end: Nanos) -> Self {
        Self { start, end }
    }

    /// Its length; zero where the end comes first.
    pub fn length(self) -> Nanos {
        (self.end - self.start).max(Nanos::ZERO)
    }

    /// Whether it holds no moment.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether a moment lies in it.
    pub fn contains(self, moment: Nanos) -> bool {
        self.start <= moment && moment < self.end
    }

    /// What two spans share; empty where that is nothing.
    pub fn intersect(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// The smallest span that holds both.
    pub fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Spans {
    /// No moment.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// The union of spans in any order, in `n log n`, or `n` where they are already sorted.
    pub fn union(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut sorted: Vec<Span> = Vec::new();
        let mut is_sorted = true;
        for span in spans.into_iter().filter(|span| !span.is_empty()) {
            match sorted.last_mut() {
                // Work follows work closely, so that most spans need no room of their own.
                Some(last) if last.start <= span.start && span.start <= last.end => last.end = last.end.max(span.end),
                last => {
                    is_sorted &= last.is_none_or(|last| last.start <= span.start);
                    sorted.push(span);
                }
            }
        }
        if is_sorted {
            return Self(sorted);
        }
        sorted.sort_unstable();
        sorted.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        Self(sorted)
    }

    /// The spans, in order.
    pub fn as_slice(&self) -> &[Span] {
        &self.0
    }

    /// Time in all of them.
    pub fn total(&self) -> Nanos {
        self.0.iter().map(|span| span.length()).sum()
    }

    /// Whether a moment lies in one of them.
    pub fn contains(&self, moment: Nanos) -> bool {
        let first = self.0.partition_point(|span| span.end <= moment);
        self.0.get(first).is_some_and(|span| span.contains(moment))
    }

    /// What lies within a window.
    pub fn within(&self, window: Span) -> Self {
        let mut inside = Vec::new();
        self.for_each_within(window, |span| inside.push(span));
        Self(inside)
    }

    /// Time within a window, without making a new set.
    pub fn total_within(&self, window: Span) -> Nanos {
        let mut total = Nanos::ZERO;
        self.for_each_within(window, |span| total += span.length());
        total
    }

    /// What of a window lies in none of them.
    pub fn gaps(&self, window: Span) -> Self {
        let mut gaps = Vec::new();
        self.for_each_gap(window, |gap| gaps.push(gap));
        Self(gaps)
    }

    /// Hands over what lies within a window, in order.
    pub(crate) fn for_each_within(&self, window: Span, take: impl FnMut(Span)) {
        let first = self.0.partition_point(|span| span.end <= window.start);
        let inside = self.0[first..].iter().take_while(|span| span.start < window.end);
        inside.map(|span| span.intersect(window)).filter(|span| !span.is_empty()).for_each(take);
    }

    /// Hands over what of a window lies in none of them, in order.
    pub(crate) fn for_each_gap(&self, window: Span, mut take: impl FnMut(Span)) {
        let mut from = window.start;
        self.for_each_within(window, |span| {
            if span.start > from {
                take(Span::new(from, span.start));
            }
            from = span.end;
        });
        if window.end > from {
            take(Span::new(from, window.end));
        }
    }

    /// Moments in this set and not in the other.
    pub fn subtract(&self, other: &Self) -> Self {
        let mut left = Vec::with_capacity(self.0.len());
        let mut taken = other.0.iter().peekable();
        for span in &self.0 {
            let mut from = span.start;
            while taken.next_if(|taken| taken.end <= from).is_some() {}
            // A span of the other set may reach into the next one of this, so it is looked at without being used up.
            let mut ahead = taken.clone();
            while let Some(taken) = ahead.next_if(|taken| taken.start < span.end) {
                left.push(Span::new(from, taken.start));
                from = taken.end;
            }
            left.push(Span::new(from, span.end));
        }
        left.retain(|span| !span.is_empty());
        Self(left)
    }

    /// Moments in both sets.
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut shared = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let both = a.intersect(**b);
            if !both.is_empty() {
                shared.push(both);
            }
            if a.end <= b.end {
                left.next();
            } else {
                right.next();
            }
        }
        Self(shared)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Nanos::new(start), Nanos::new(end))
    }

    /// Moments 0..64 of a set, one bit each: arithmetic that cannot be wrong.
    fn moments(spans: &Spans) -> u64 {
        (0..64)
            .filter(|at| spans.0.iter().any(|span| span.contains(Nanos::new(*at))))
            .fold(0, |bits, at| bits | 1 << at)
    }

    fn any_spans() -> impl Strategy<Value = Vec<Span>> {
        proptest::collection::vec((0..64i64, 0..64i64).prop_map(|(start, end)| span(start, end)), 0..12)
    }

    #[test]
    fn touching_spans_become_one_and_empty_ones_vanish() {
        let spans = Spans::union([span(5, 9), span(0, 3), span(3, 5), span(20, 20), span(30, 25)]);
        assert_eq!(spans.as_slice(), [span(0, 9)]);
        assert_eq!(spans.total(), Nanos::new(9));
    }

    #[test]
    fn gaps_reach_to_both_ends_of_the_window() {
        let spans = Spans::union([span(2, 4), span(6, 8)]);
        assert_eq!(spans.gaps(span(0, 10)).as_slice(), [span(0, 2), span(4, 6), span(8, 10)]);
        assert_eq!(spans.gaps(span(3, 7)).as_slice(), [span(4, 6)]);
        assert_eq!(Spans::default().gaps(span(1, 2)).as_slice(), [span(1, 2)]);
        assert_eq!(spans.gaps(span(9, 9)).as_slice(), []);
    }

    proptest! {
        #[test]
        fn a_union_holds_the_moments_of_its_parts_and_nothing_else(parts in any_spans()) {
            let spans = Spans::union(parts.iter().copied());
            let expected = parts.iter().map(|part| moments(&Spans(vec![*part]))).fold(0, |all, one| all | one);
            prop_assert_eq!(moments(&spans), expected);
            prop_assert!((0..64).all(|at| spans.contains(Nanos::new(at)) == (expected >> at & 1 == 1)));
            prop_assert!(spans.0.iter().all(|span| !span.is_empty()));
            prop_assert!(spans.0.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(spans.total().get(), i64::from(expected.count_ones()));
        }

        #[test]
        fn busy_and_idle_make_up_any_window(parts in any_spans(), from in 0..64i64, to in 0..64i64) {
            let (spans, window) = (Spans::union(parts), span(from, to));
            prop_assert_eq!(spans.within(window).total() + spans.gaps(window).total(), window.length());
            prop_assert_eq!(spans.total_within(window), spans.within(window).total());
            prop_assert_eq!(moments(&spans.within(window)) & moments(&spans.gaps(window)), 0);
        }

        #[test]
        fn an_intersection_holds_the_moments_of_both_and_a_difference_the_others(left in any_spans(), right in any_spans()) {
            let (left, right) = (Spans::union(left), Spans::union(right));
            prop_assert_eq!(moments(&left.intersect(&right)), moments(&left) & moments(&right));
            prop_assert_eq!(left.intersect(&right), right.intersect(&left));
            prop_assert_eq!(moments(&left.subtract(&right)), moments(&left) & !moments(&right));
        }
    }
}
