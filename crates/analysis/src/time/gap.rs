//! Gaps: when a device had nothing to do, and what the host did meanwhile.
//!
//! A gap ends with the work that runs next. Until the host called for that work, the gap is put down to what the host
//! did: allocate, wait for the device, copy, or else prepare the launch. Between the call and the start on the device it is
//! the launch itself. Work that was called for before the gap started was queued: then the host is not to blame.

use types::timeline::Timeline;

use super::activity::Activity;
use super::host::Host;
use super::span::Span;
use super::waiting::{GapCause, Waiting};

/// One gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When.
    pub span: Span,
    /// The work that ended it, in the timeline; absent at the end of the window.
    pub next: Option<u32>,
    /// What it is put down to.
    pub waiting: Waiting,
}

/// Gaps of a device in the window of an activity, in order. `launch` has the call of each row of [`Timeline::work`].
pub fn gaps(timeline: &Timeline, launch: &[Option<u32>], device: u32, activity: &Activity) -> Vec<Gap> {
    let of_device = |place: &u32| {
        let work = &timeline.work[*place as usize];
        timeline.queues[work.queue.0 as usize].device == device && work.end() > work.start
    };
    let mut order: Vec<u32> = (0..timeline.work.len() as u32).filter(of_device).collect();
    let start = |place: &u32| timeline.work[*place as usize].start;
    if !order.is_sorted_by_key(start) {
        order.sort_by_key(start);
    }
    let host = Host::new(timeline, launch, &order);
    let gap = |span: &Span| {
        let place = order.partition_point(|work| timeline.work[*work as usize].start < span.end);
        let next = order.get(place).copied().filter(|work| timeline.work[*work as usize].start == span.end);
        let call = next.and_then(|work| launch[work as usize]);
        let called = call.map(|call| timeline.calls[call as usize].start);
        Gap { span: *span, next, waiting: host.divide(*span, called) }
    };
    activity.busy.gaps(activity.window).as_slice().iter().map(gap).collect()
}

/// Idle time of many gaps by cause.
pub fn waiting(gaps: &[Gap]) -> Waiting {
    let mut sum = Waiting::default();
    for gap in gaps {
        for cause in GapCause::ALL {
            sum.add(cause, gap.waiting.of(cause));
        }
    }
    sum
}
