//! A number of kernels, copies and memsets.

use types::Nanos;
use types::timeline::Timeline;

/// How many kernels, copies and memsets, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Their time on the device, summed.
    pub time: Nanos,
}

impl Amount {
    /// Those of which something is true, by their place in [`Timeline::work`].
    pub(super) fn of(timeline: &Timeline, is_meant: impl Fn(usize) -> bool) -> Self {
        let mut amount = Self::default();
        for (_, work) in timeline.work.iter().enumerate().filter(|(place, _)| is_meant(*place)) {
            amount.add(work.duration);
        }
        amount
    }

    /// Counts one more.
    pub(crate) fn add(&mut self, time: Nanos) {
        self.count += 1;
        self.time += time;
    }
}
