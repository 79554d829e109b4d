//! How busy a device was in a window of time.

use std::collections::BTreeSet;

use types::Nanos;
use types::timeline::{Timeline, WorkKind};

use super::span::{Span, Spans};

/// What one device did in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// The window.
    pub window: Span,
    /// When anything ran: the union over streams.
    pub busy: Spans,
    /// When a kernel (or graph) ran.
    pub kernels: Spans,
    /// When a copy or memset ran.
    pub memory: Spans,
    /// Time of all kernels, copies and memsets, each counted in full even where they overlap.
    pub work_ns: Nanos,
}

impl Activity {
    /// Time in which anything ran.
    pub fn busy_ns(&self) -> Nanos {
        self.busy.total()
    }

    /// Time in which nothing ran; with [`Self::busy_ns`] it makes up the window.
    pub fn idle_ns(&self) -> Nanos {
        self.window.length() - self.busy_ns()
    }

    /// Work time that ran beside other work: what adding durations up counts twice.
    pub fn overlap_ns(&self) -> Nanos {
        self.work_ns - self.busy_ns()
    }

    /// Busy share of the window; absent for an empty window.
    pub fn busy_share(&self) -> Option<f64> {
        crate::statistics::share(self.busy_ns().get() as f64, self.window.length().get() as f64)
    }
}

/// Ordinals of the devices that have work, in order.
pub fn devices(timeline: &Timeline) -> Vec<u32> {
    let ordinals: BTreeSet<u32> = timeline.work.iter().map(|work| device_of(timeline, work.queue.0)).collect();
    ordinals.into_iter().collect()
}

/// What a device did in a window; without a window, from its first work to its last. Absent where it has no work and no
/// window is given.
pub fn activity(timeline: &Timeline, device: u32, window: Option<Span>) -> Option<Activity> {
    let of_device = || timeline.work.iter().filter(|work| device_of(timeline, work.queue.0) == device);
    let window = match window {
        Some(window) => window,
        None => of_device().map(|work| Span::new(work.start, work.end())).reduce(Span::hull)?,
    };
    let (mut kernels, mut memory, mut work_ns) = (Vec::new(), Vec::new(), Nanos::ZERO);
    for work in of_device() {
        let span = Span::new(work.start, work.end()).intersect(window);
        if span.is_empty() {
            continue;
        }
        work_ns += span.length();
        match work.kind {
            WorkKind::Kernel | WorkKind::Graph => kernels.push(span),
            WorkKind::Copy(_) | WorkKind::Fill => memory.push(span),
        }
    }
    let (kernels, memory) = (Spans::union(kernels), Spans::union(memory));
    let busy = Spans::union(kernels.as_slice().iter().chain(memory.as_slice()).copied());
    Some(Activity { window, busy, kernels, memory, work_ns })
}

fn device_of(timeline: &Timeline, queue: u32) -> u32 {
    timeline.queues[queue as usize].device
}
