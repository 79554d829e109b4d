//! The kernels that inference looks at, in order.

use types::Nanos;
use types::timeline::{QueueId, Timeline, WorkKind};

/// Kernels of the busiest queue in the order they were launched.
pub(super) struct Sequence {
    /// When each was launched.
    pub(super) moments: Vec<Nanos>,
    /// Number of each one's name.
    pub(super) names: Vec<u32>,
    /// Time of each on the device.
    pub(super) times: Vec<Nanos>,
}

impl Sequence {
    /// `moments` says of all work when it was launched.
    pub(super) fn new(timeline: &Timeline, moments: &[Option<Nanos>]) -> Self {
        let mut counts = vec![0u64; timeline.queues.len()];
        let kernels = || {
            let rows = timeline.work.iter().zip(moments);
            rows.filter(|(work, _)| matches!(work.kind, WorkKind::Kernel | WorkKind::Graph))
        };
        for (work, _) in kernels() {
            counts[work.queue.0 as usize] += 1;
        }
        let busiest = (0..counts.len()).max_by_key(|queue| counts[*queue]).unwrap_or(0);
        let of_queue = kernels().filter(|(work, _)| work.queue == QueueId(busiest as u32));
        let mut rows: Vec<(Nanos, Nanos, u32, Nanos)> = of_queue
            .filter_map(|(work, moment)| Some(((*moment)?, work.start, work.name.index() as u32, work.duration)))
            .collect();
        // Nodes of a graph share the moment of their launch; the device tells their order.
        rows.sort_unstable();
        Self {
            moments: rows.iter().map(|(moment, ..)| *moment).collect(),
            names: rows.iter().map(|(_, _, name, _)| *name).collect(),
            times: rows.iter().map(|(.., time)| *time).collect(),
        }
    }
}
