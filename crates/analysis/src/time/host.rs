//! What the host did while a device waited.

use types::Nanos;
use types::timeline::{NameId, Timeline};

use super::span::{Span, Spans};
use super::waiting::{GapCause, Waiting};

/// What the threads that launch work for a device did; the sets do not overlap.
pub(crate) struct Host {
    allocation: Spans,
    synchronisation: Spans,
    copy: Spans,
}

impl Host {
    /// `launch` has the call of each row of [`Timeline::work`]; `rows` are those of the device.
    pub(crate) fn new(timeline: &Timeline, launch: &[Option<u32>], rows: &[u32]) -> Self {
        let mut launches = vec![false; timeline.threads.len()];
        for call in rows.iter().filter_map(|row| launch[*row as usize]) {
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
