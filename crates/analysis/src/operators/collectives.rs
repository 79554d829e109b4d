//! Collectives of a trace by name, message and group, with the bandwidth they reached.
//!
//! Bus bandwidth is defined as by nccl-tests (<https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md>): bytes
//! of the message over time, times the share that crosses the links of one rank. The time of a collective's kernel includes
//! waiting for the other ranks, so the figure is what was reached, not what the links can do; the shortest call waited least.
//!
//! Links are those of the catalogue, and only count for groups that fit into the machine: a trace lists the devices of the
//! machine it was recorded on, but not where the other ranks are.

use std::collections::BTreeMap;

use types::timeline::{Collective, DeviceWork, Timeline, WorkKind};
use types::{Bytes, BytesPerSecond, CollectiveSummary, Hardware, Nanos};

use crate::attribution::Attribution;
use crate::evidence::PlacedTimeline;
use crate::kernel::{self, Family};
use crate::statistics::share;
use crate::time::{Span, Spans};

#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    total: Nanos,
    least: Nanos,
}

impl Sum {
    fn add(&mut self, time: Nanos) {
        self.least = if self.calls == 0 { time } else { self.least.min(time) };
        self.calls += 1;
        self.total += time;
    }
}

/// Name, element type, group, its size, and bytes of a call.
type Key<'a> = (&'a str, &'a str, &'a str, Option<u32>, Option<u64>);

/// A kernel of a collective.
#[derive(Clone, Debug)]
pub struct CollectiveCall<'a> {
    /// Its row in [`types::timeline::Timeline::work`].
    pub row: u32,
    /// What the framework says of it; absent where only its kernel was recorded.
    pub called: Option<&'a Collective>,
    /// Bytes of the message.
    pub bytes: Option<Bytes>,
    /// Its number among those with the same group, from zero.
    pub number: u32,
    /// No other kernel ran on its device.
    pub exposed: Nanos,
}

/// Every kernel of a collective, by device and start; without loading and warming up.
pub fn collective_calls<'a>(timeline: &'a Timeline, attribution: &Attribution) -> Vec<CollectiveCall<'a>> {
    let communicates: Vec<_> =
        timeline.names.iter().map(|(_, name)| kernel::family(name) == Family::Communication).collect();
    let device = |work: &DeviceWork| timeline.queues[work.queue.0 as usize].device;
    let mut rows: Vec<u32> = Vec::new();
    let mut computing: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for (row, work) in timeline.work.iter().enumerate() {
        let is_kernel = matches!(work.kind, WorkKind::Kernel | WorkKind::Graph);
        if is_kernel && !communicates[work.name.index()] {
            computing.entry(device(work)).or_default().push(Span::new(work.start, work.end()));
        } else if work.kind == WorkKind::Kernel && !attribution.is_aside(row) {
            rows.push(row as u32);
        }
    }
    let computing: BTreeMap<u32, Spans> =
        computing.into_iter().map(|(device, spans)| (device, Spans::union(spans))).collect();
    rows.sort_by_key(|row| {
        let work = &timeline.work[*row as usize];
        (device(work), work.start)
    });
    let mut numbers: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    let call = |row: u32| {
        let work = &timeline.work[row as usize];
        let operator = attribution.operator[row as usize].map(|row| &timeline.operators[row as usize]);
        let signature = operator.and_then(|operator| operator.signature).map(|id| timeline.signatures.get(id));
        let called = signature.and_then(|signature| signature.collective.as_ref());
        let number = numbers.entry((device(work), called.map_or("", |called| called.group.as_str()))).or_default();
        *number += 1;
        let covered = computing.get(&device(work)).map(|spans| spans.total_within(Span::new(work.start, work.end())));
        CollectiveCall {
            row,
            called,
            bytes: called.and_then(bytes).map(Bytes::new),
            number: *number - 1,
            exposed: work.duration - covered.unwrap_or_default(),
        }
    };
    rows.into_iter().map(call).collect()
}

/// The short name of a kernel that communicates.
fn kernel_of_collective(name: &str) -> Option<String> {
    (kernel::family(name) == Family::Communication).then(|| kernel::short_name(name))
}

/// One summary per collective, message and group, longest first. Kernels whose message was not recorded are summed up by name:
/// kernels of graphs have no operator around them that could tell.
pub(crate) fn summaries(timelines: &[PlacedTimeline<'_>], hardware: Option<&Hardware>) -> Vec<CollectiveSummary> {
    let here = timelines.iter().map(|placed| placed.timeline.devices.len()).max().unwrap_or(0);
    let link = hardware.and_then(Hardware::link_bytes_per_second);
    let mut sums: BTreeMap<Key<'_>, Sum> = BTreeMap::new();
    let mut unknown: BTreeMap<String, Sum> = BTreeMap::new();
    for placed in timelines {
        let PlacedTimeline { timeline, attribution, .. } = *placed;
        let kernels: Vec<Option<String>> = timeline.names.iter().map(|(_, name)| kernel_of_collective(name)).collect();
        let described = |operator: u32| {
            let signature = timeline.operators[operator as usize].signature.map(|id| timeline.signatures.get(id));
            signature.and_then(|signature| signature.collective.as_ref())
        };
        // Calls that the framework describes; of the others, the kernels alone.
        let mut calls: BTreeMap<u32, (&Collective, Nanos)> = BTreeMap::new();
        for (place, (work, operator)) in timeline.work.iter().zip(&attribution.operator).enumerate() {
            if work.kind != WorkKind::Kernel || attribution.is_aside(place) {
                continue;
            }
            match (operator.and_then(|row| Some((row, described(row)?))), &kernels[work.name.index()]) {
                (Some((row, called)), _) => calls.entry(row).or_insert((called, Nanos::ZERO)).1 += work.duration,
                (None, Some(name)) => unknown.entry(name.clone()).or_default().add(work.duration),
                (None, None) => {}
            }
        }
        for (called, time) in calls.into_values() {
            let key =
                (called.name.as_str(), called.dtype.as_str(), called.group.as_str(), called.group_size, bytes(called));
            sums.entry(key).or_default().add(time);
        }
    }
    let of_machine = |ranks: Option<u32>| link.filter(|_| ranks.is_some_and(|ranks| ranks as usize <= here));
    let mut rows: Vec<_> = sums.into_iter().map(|(key, sum)| summary(key, sum, of_machine(key.3))).collect();
    rows.extend(unknown.into_iter().map(|(name, sum)| summary((&name, "", "", None, None), sum, None)));
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

fn summary(
    (name, dtype, group, group_size, bytes): Key<'_>,
    sum: Sum,
    link: Option<BytesPerSecond>,
) -> CollectiveSummary {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let crossing = bytes.zip(group_size).and_then(|(bytes, ranks)| Some(bytes as f64 * crossing_share(name, ranks)?));
    let rate = |calls: u64, time: Nanos| {
        let bytes = crossing.filter(|bytes| *bytes > 0.0 && time > Nanos::ZERO)?;
        Some(BytesPerSecond::new(bytes * calls as f64 / time.as_seconds().get()))
    };
    let best = rate(1, sum.least);
    // In-network reduction sends less than the definition counts.
    let link_share = best.zip(link).and_then(|(best, link)| share(best.get(), link.get())).filter(|part| *part <= 1.0);
    CollectiveSummary {
        name: name.to_owned(),
        dtype: known(dtype),
        group_size,
        group: known(group),
        bytes: bytes.map(Bytes::new),
        calls: sum.calls,
        total_ns: sum.total,
        min_ns: sum.least,
        bus_bytes_per_second: rate(sum.calls, sum.total),
        bus_bytes_per_second_best: best,
        link_bytes_per_second: link.filter(|_| link_share.is_some()),
        link_share,
    }
}

/// Bytes of the whole message: the larger of what a rank hands in and gets, since a gather grows it and a scatter shrinks it.
fn bytes(called: &Collective) -> Option<u64> {
    let elements = called.input_elements.max(called.output_elements)?;
    let size = match called.dtype.trim_start_matches("c10::") {
        "Double" | "Long" | "double" | "long" | "long int" => 8,
        "Float" | "Int" | "float" | "int" => 4,
        "BFloat16" | "Half" | "Short" | "short" | "short int" => 2,
        "Byte" | "Char" | "Bool" | "unsigned char" | "signed char" | "char" | "bool" => 1,
        dtype if dtype.starts_with("Float8") => 1,
        _ => return None,
    };
    elements.checked_mul(size)
}

/// Share of the message that crosses the links of one of `ranks` ranks; `None` for collectives without a message, or of a
/// name that is not known.
pub(crate) fn crossing_share(name: &str, ranks: u32) -> Option<f64> {
    let ranks = f64::from(ranks);
    let name = name.trim_start_matches('_');
    let starts = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
    if ranks < 2.0 {
        return None;
    }
    if starts(&["allreduce", "all_reduce"]) {
        Some(2.0 * (ranks - 1.0) / ranks)
    } else if starts(&["allgather", "all_gather", "reduce_scatter", "all_to_all", "alltoall"]) {
        Some((ranks - 1.0) / ranks)
    } else {
        starts(&["broadcast", "reduce", "send", "recv"]).then_some(1.0)
    }
}

/// Whether every rank of it has a message of its own size: tokens for the experts of a rank, rows of its tables.
pub(crate) fn is_exchange(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    ["all_to_all", "alltoall"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_bandwidth_is_that_of_nccl_tests() {
        let sum = Sum { calls: 2, total: Nanos::new(3_000_000), least: Nanos::new(1_000_000) };
        let key = ("allreduce", "Float", "default_pg", Some(8), Some(800_000));
        let row = summary(key, sum, Some(BytesPerSecond::new(5.6e9)));
        assert_eq!((row.link_share, row.above_shortest()), (Some(0.25), Some(Nanos::new(1_000_000))));
        let unknown = summary(("ncclKernel", "", "", None, None), sum, None);
        assert_eq!((unknown.bus_bytes_per_second, unknown.above_shortest()), (None, None), "calls may differ in size");
        let slower = summary(key, sum, Some(BytesPerSecond::new(1e9)));
        assert_eq!((slower.link_share, slower.link_bytes_per_second), (None, None), "not the link that carried it");
        // 2 x 7/8 of 800 kB is 1.4 MB: twice in 3 ms, and once in 1 ms.
        let mean = row.bus_bytes_per_second.unwrap().get();
        assert!((mean / (2.8e6 / 3e-3) - 1.0).abs() < 1e-12, "{mean}");
        assert!((row.bus_bytes_per_second_best.unwrap().get() / 1.4e9 - 1.0).abs() < 1e-12);
        assert_eq!(crossing_share("_allgather_base", 4), Some(0.75));
        assert_eq!(crossing_share("barrier", 4), None);
        assert_eq!(crossing_share("allreduce", 1), None);
    }

    #[test]
    fn a_message_is_the_larger_of_both_sides_and_unknown_without_a_type() {
        let called = |dtype: &str| Collective {
            dtype: dtype.to_owned(),
            input_elements: Some(10),
            output_elements: Some(80),
            ..Collective::default()
        };
        assert_eq!(bytes(&called("BFloat16")), Some(160));
        assert_eq!(bytes(&called("")), None);
        assert_eq!(bytes(&Collective { dtype: "Float".to_owned(), ..Collective::default() }), None);
    }
}
