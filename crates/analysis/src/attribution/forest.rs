//! Ranges nested in each other, and the launches inside each.

use std::cmp::Reverse;

use types::Nanos;
use types::timeline::{Range, RangeStyle, Timeline};

use super::launch::{Launches, NONE};
use super::nesting::{ByThread, Open};
use crate::time::Spans;

/// Nesting of ranges, and the launches inside each.
pub(super) struct Forest {
    /// Per launch: the innermost pushed range, or [`NONE`].
    pub(super) innermost: Vec<u32>,
    /// Per launch: whether ranges that do not nest overlap around it. Empty where none do.
    pub(super) contested: Vec<bool>,
    pub(super) spans: RangeSpans,
}

/// Per range: the one around it, and its run of launches.
#[derive(Clone, Debug)]
pub(super) struct RangeSpans {
    pub(super) parent: Vec<u32>,
    pub(super) first: Vec<u32>,
    pub(super) end: Vec<u32>,
    pub(super) crossing: u64,
    /// When the trace ended.
    pub(super) last: Nanos,
}

impl Forest {
    /// `last` is when the trace ended.
    pub(super) fn new(timeline: &Timeline, launches: &Launches, last: Nanos) -> Self {
        let count = timeline.ranges.len();
        let mut innermost = vec![NONE; launches.len()];
        let mut contested = Vec::new();
        let mut spans =
            RangeSpans { parent: vec![NONE; count], first: vec![0; count], end: vec![0; count], crossing: 0, last };
        if count == 0 {
            return Self { innermost, contested: Vec::new(), spans };
        }
        let row = |place: u32| &timeline.ranges[place as usize];
        let close = |range: &Range| range.end.unwrap_or(last);
        let rows = timeline.ranges.iter().enumerate().map(|(place, range)| (place as u32, range.thread.0));
        let order = ByThread::new(timeline.threads.len(), rows, |place| (row(place).start, Reverse(close(row(place)))));
        for thread in 0..timeline.threads.len() {
            let mut open = Open::default();
            let of_thread = launches.calls.span(thread);
            let (mut place, until) = (of_thread.start, of_thread.end);
            for range in order.of(thread).iter().copied() {
                let (start, end) = (row(range).start, close(row(range)));
                while place < until && launches.starts[place] < start {
                    innermost[place] = open.innermost(launches.starts[place]).unwrap_or(NONE);
                    place += 1;
                }
                spans.first[range as usize] = place as u32;
                spans.end[range as usize] = seek(&launches.starts[..until], place, end) as u32;
                if row(range).style == RangeStyle::PushPop {
                    spans.parent[range as usize] = open.open(range, start, end).unwrap_or(NONE);
                }
            }
            for (innermost, start) in innermost[place..until].iter_mut().zip(&launches.starts[place..until]) {
                *innermost = open.innermost(*start).unwrap_or(NONE);
            }
            if !open.crossing.is_empty() {
                spans.crossing += open.crossing.len() as u64;
                contested.resize(launches.len(), false);
                let overlaps = Spans::union(open.crossing);
                for place in launches.calls.span(thread) {
                    contested[place] = overlaps.contains(launches.starts[place]);
                }
            }
        }
        Self { innermost, contested, spans }
    }
}

/// First place from `from` on whose start is not before `moment`. Most ranges are short, so the search gallops.
fn seek(starts: &[Nanos], from: usize, moment: Nanos) -> usize {
    let (mut low, mut step) = (from, 1);
    while starts.get(low + step - 1).is_some_and(|start| *start < moment) {
        low += step;
        step *= 2;
    }
    let high = (low + step - 1).min(starts.len());
    low + starts[low..high].partition_point(|start| *start < moment)
}
