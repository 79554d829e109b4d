//! Windows of collection: outside of them nothing of the device was recorded, so that a range counts with the part of it
//! that lies inside. Otherwise a stage of which eight steps were recorded would show the time of all of its steps and the
//! kernels of eight.

use types::Nanos;
use types::timeline::{Range, Timeline};

use super::contents::Contents;

/// Spans in which collection was on, in order.
pub(super) struct Windows {
    spans: Vec<(Nanos, Nanos)>,
}

impl Windows {
    /// The windows of a file; `None` where it was collected throughout.
    pub(super) fn of(contents: &Contents<'_>, zero: u64) -> Option<Self> {
        if contents.windows.is_empty() {
            return None;
        }
        let time = |wall: u64| {
            let distance = i128::from(wall) - i128::from(zero);
            i64::try_from(distance).ok().and_then(Timeline::time)
        };
        let mut moments: Vec<_> =
            contents.windows.iter().filter_map(|(open, wall)| Some((time(*wall)?, *open))).collect();
        moments.sort_unstable_by_key(|(time, _)| *time);
        let mut spans = Vec::new();
        let mut opened = None;
        for (time, open) in moments {
            match (open, opened) {
                (true, None) => opened = Some(time),
                (false, Some(start)) => {
                    spans.push((start, time));
                    opened = None;
                }
                _ => {}
            }
        }
        // A window that was open at the end holds everything after it started.
        spans.extend(opened.map(|start| (start, Nanos::new(Timeline::LARGEST_TIME - 1))));
        Some(Self { spans })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.spans.len() as u64
    }

    /// The parts of ranges that lie in windows, added to `kept`; how many ranges lost something.
    pub(super) fn clip(&self, ranges: Vec<Range>, kept: &mut Vec<Range>) -> u64 {
        let mut clipped = 0;
        for range in ranges {
            let end = range.end.unwrap_or(Nanos::new(Timeline::LARGEST_TIME - 1));
            let inside = self.spans.iter().filter(|(from, to)| *from < end && range.start < *to);
            let parts: Vec<_> = inside.map(|(from, to)| (range.start.max(*from), end.min(*to))).collect();
            clipped += u64::from(parts != [(range.start, end)]);
            for (start, stop) in parts {
                let whole = stop == end && range.end.is_none();
                kept.push(Range { start, end: (!whole).then_some(stop), ..range.clone() });
            }
        }
        clipped
    }
}
