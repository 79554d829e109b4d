//! Gaps: when a device had nothing to do, and what the host did meanwhile.
//!
//! A gap ends with the work that runs next. Until the host called for that work, the gap is put down to what the host
//! did: allocate, wait for the device, copy, or else prepare the launch. Between the call and the begin on the device it is
//! the launch itself. Work that was called for before the gap began was queued: then the host is not to blame.

use types::Nanos;
use types::timeline::{NameId, Timeline};

use super::{Activity, Span, Spans};
use crate::attribution::Attribution;

/// What a device waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapCause {
    /// The host prepared and launched the next work: framework, interpreter, driver.
    Launch,
    /// The host waited for the device.
    Synchronisation,
    /// The host was in a call that copies or fills.
    Copy,
    /// The host took or gave back memory.
    Allocation,
    /// The next work was launched already: the device's own latency, or an order between streams.
    Queued,
    /// The trace does not tell: no call launched the next work, or none follows.
    Unknown,
}

impl GapCause {
    /// Every cause.
    pub const ALL: [Self; 6] =
        [Self::Launch, Self::Synchronisation, Self::Copy, Self::Allocation, Self::Queued, Self::Unknown];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Synchronisation => "synchronisation",
            Self::Copy => "copy",
            Self::Allocation => "allocation",
            Self::Queued => "queued",
            Self::Unknown => "unknown",
        }
    }
}

/// Idle time by cause; the parts make up the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting([Nanos; GapCause::ALL.len()]);

impl Waiting {
    /// Time put down to a cause.
    pub fn of(&self, cause: GapCause) -> Nanos {
        self.0[cause as usize]
    }

    /// All of it.
    pub fn total(&self) -> Nanos {
        self.0.iter().copied().sum()
    }

    /// The cause of the most; the first of equals.
    pub fn main(&self) -> GapCause {
        let most = self.0.iter().max().copied().unwrap_or_default();
        GapCause::ALL.into_iter().find(|cause| self.of(*cause) == most).unwrap_or(GapCause::Unknown)
    }

    fn add(&mut self, cause: GapCause, time: Nanos) {
        self.0[cause as usize] += time;
    }
}

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

/// Gaps of a device in the window of an activity, in order.
pub fn gaps(timeline: &Timeline, attribution: &Attribution, device: u32, activity: &Activity) -> Vec<Gap> {
    let of_device = |place: &u32| {
        let work = &timeline.work[*place as usize];
        timeline.queues[work.queue.0 as usize].device == device && work.end() > work.start
    };
    let mut order: Vec<u32> = (0..timeline.work.len() as u32).filter(of_device).collect();
    let start = |place: &u32| timeline.work[*place as usize].start;
    if !order.is_sorted_by_key(start) {
        order.sort_by_key(start);
    }
    let host = Host::new(timeline, attribution, &order);
    let gap = |span: &Span| {
        let place = order.partition_point(|work| timeline.work[*work as usize].start < span.end);
        let next = order.get(place).copied().filter(|work| timeline.work[*work as usize].start == span.end);
        let launch = next.and_then(|work| attribution.launch[work as usize]);
        let called = launch.map(|call| timeline.calls[call as usize].start);
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

/// What the threads that launch work for a device did; the sets do not overlap.
pub(crate) struct Host {
    allocation: Spans,
    synchronisation: Spans,
    copy: Spans,
}

impl Host {
    pub(crate) fn new(timeline: &Timeline, attribution: &Attribution, works: &[u32]) -> Self {
        let mut launches = vec![false; timeline.threads.len()];
        for call in works.iter().filter_map(|work| attribution.launch[*work as usize]) {
            launches[timeline.calls[call as usize].thread.0 as usize] = true;
        }
        let causes: Vec<Option<GapCause>> = timeline.names.iter().map(|(_, name)| cause_of_call(name)).collect();
        let during = |cause: GapCause| {
            let calls = timeline.calls.iter().filter(|call| launches[call.thread.0 as usize]);
            let of_cause = |name: NameId| causes[name.index()] == Some(cause);
            Spans::union(calls.filter(|call| of_cause(call.name)).map(|call| Span::new(call.start, call.end())))
        };
        let allocation = during(GapCause::Allocation);
        let synchronisation = during(GapCause::Synchronisation).subtract(&allocation);
        let copy = during(GapCause::Copy).subtract(&allocation).subtract(&synchronisation);
        Self { allocation, synchronisation, copy }
    }

    /// Divides a gap. `called` is when the host called for the work that ended it.
    pub(crate) fn divide(&self, gap: Span, called: Option<Nanos>) -> Waiting {
        let mut waiting = Waiting::default();
        if called.is_some_and(|called| called <= gap.start) {
            waiting.add(GapCause::Queued, gap.length());
            return waiting;
        }
        let before = Span::new(gap.start, called.unwrap_or(gap.end).min(gap.end));
        let mut rest = before.length();
        let known = [
            (GapCause::Allocation, &self.allocation),
            (GapCause::Synchronisation, &self.synchronisation),
            (GapCause::Copy, &self.copy),
        ];
        for (cause, spans) in known {
            let time = spans.total_within(before);
            waiting.add(cause, time);
            rest = rest - time;
        }
        let preparing = if called.is_some() { GapCause::Launch } else { GapCause::Unknown };
        waiting.add(preparing, rest);
        waiting.add(GapCause::Launch, gap.length() - before.length());
        waiting
    }
}

/// What a call of the CUDA runtime or driver keeps the host with; `None` for those that are part of launching.
pub(crate) fn cause_of_call(name: &str) -> Option<GapCause> {
    // nsys writes the version of the interface behind the name: `cudaLaunchKernel_v7000`.
    let plain = name.split_once("_v").map_or(name, |(plain, _)| plain);
    let call = plain.strip_prefix("cuda").or_else(|| plain.strip_prefix("cu"))?;
    if call.contains("Synchronize") {
        return Some(GapCause::Synchronisation);
    }
    const ALLOCATION: &[&str] = &[
        "Malloc",
        "Free",
        "MemAlloc",
        "MemFree",
        "HostAlloc",
        "HostRegister",
        "MemCreate",
        "MemMap",
        "MemUnmap",
        "MemSetAccess",
    ];
    if ALLOCATION.iter().any(|start| call.starts_with(start)) {
        return Some(GapCause::Allocation);
    }
    let copies = call.starts_with("Memcpy") || call.starts_with("Memset");
    copies.then_some(GapCause::Copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_their_names() {
        assert_eq!(cause_of_call("cudaStreamSynchronize_v3020"), Some(GapCause::Synchronisation));
        assert_eq!(cause_of_call("cuCtxSynchronize"), Some(GapCause::Synchronisation));
        assert_eq!(cause_of_call("cudaMalloc"), Some(GapCause::Allocation));
        assert_eq!(cause_of_call("cuMemAlloc_v2"), Some(GapCause::Allocation));
        assert_eq!(cause_of_call("cudaMemcpyAsync"), Some(GapCause::Copy));
        assert_eq!(cause_of_call("cuMemsetD8Async"), Some(GapCause::Copy));
        assert_eq!(cause_of_call("cudaLaunchKernel"), None);
        assert_eq!(cause_of_call("aten::mm"), None);
    }
}
