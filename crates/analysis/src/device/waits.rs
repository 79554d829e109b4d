//! Waiting for work, divided by what the host did meanwhile.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{NameId, Timeline, WorkKind};
use types::{IdleCause, Nanos};

use super::partition::Partition;
use super::recurring::Recurring;
use crate::attribution::Attribution;
use crate::scope::Scope;
use crate::time::{Host, Span, cause_of_call};

/// Waiting time by what the host did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// By top stage and cause.
    pub(crate) of_stage: BTreeMap<(Scope, IdleCause), Nanos>,
    /// The part of it that comes once: the longest before each kernel, beyond the mean of the others before it.
    pub(crate) once: BTreeMap<(Scope, IdleCause), Nanos>,
    /// Calls during stages that keep the host from launching: by top stage, cause and name.
    pub(crate) calls: BTreeMap<(Scope, IdleCause, String), u64>,
    /// Waiting that graphs explain, by top stage.
    pub(crate) of_graphs: BTreeMap<Scope, GraphWaits>,
    /// How many gaps between kernels there are, by top stage.
    pub(crate) between_kernels: BTreeMap<Scope, u64>,
}

/// What a device waited for inside graphs and before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraphWaits {
    /// While the host was in a call that launches a graph.
    pub(crate) launching: Nanos,
    /// For launches, before the host first calls for a graph.
    pub(crate) before_first: Nanos,
    /// Between two kernels of one graph.
    pub(crate) between_kernels: Nanos,
}

/// Divides all waiting of a partition.
pub(super) fn waits(timeline: &Timeline, attribution: &Attribution, partition: &Partition) -> Waits {
    let mut waits = Waits { calls: calls(timeline, partition), ..Waits::default() };
    let device = |row: u32| timeline.queues[timeline.work[row as usize].queue.0 as usize].device;
    let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for row in 0..timeline.work.len() as u32 {
        rows.entry(device(row)).or_default().push(row);
    }
    // A device waits for the threads that launch for it, whatever those of other devices do.
    let host = |rows: &Vec<u32>| Host::new(timeline, &attribution.launch, rows, attribution.lulls());
    let hosts: BTreeMap<u32, Host> = rows.iter().map(|(device, rows)| (*device, host(rows))).collect();
    let mut order: Vec<u32> = (0..timeline.work.len() as u32).collect();
    order.sort_by_key(|row| timeline.work[*row as usize].start);
    let graph_of = attribution.graph_launches(timeline);
    let first_graph = first_graphs(timeline, attribution, partition);
    let mut last_kernels: HashMap<u32, usize> = HashMap::new();
    for (place, row) in
        order.iter().enumerate().filter(|(_, row)| timeline.work[**row as usize].kind == WorkKind::Kernel)
    {
        last_kernels.insert(device(*row), place);
    }
    // Waits of a device since its last kernel, before copies and memsets too, and those before kernels of one name.
    let mut before: HashMap<u32, BTreeMap<(Scope, IdleCause), Nanos>> = HashMap::new();
    let mut recurring: HashMap<(u32, NameId, Scope, IdleCause), Recurring> = HashMap::new();
    let mut gaps = partition.waits.clone();
    gaps.sort_unstable();
    for (place, row) in order.into_iter().map(|row| row as usize).enumerate() {
        let work = &timeline.work[row];
        let device = device(row as u32);
        let before = before.entry(device).or_default();
        let first = gaps.partition_point(|(before, _)| (*before as usize) < row);
        for (_, gap) in gaps[first..].iter().copied().take_while(|(of, _)| *of as usize == row) {
            let Some(stage) = partition.scopes[row] else { continue };
            let next = attribution.launch[row].map(|call| &timeline.calls[call as usize]);
            let waiting = hosts[&device].divide(gap, next);
            let (launching, between) = (waiting.of(IdleCause::Launching), waiting.of(IdleCause::BetweenKernels));
            let of_graphs = waits.of_graphs.entry(stage).or_default();
            if let Some(call) = next.filter(|_| graph_of(row).is_some()) {
                let inside = gap.intersect(Span::new(call.start, call.end())).length().max(Nanos::ZERO);
                of_graphs.launching += inside.min(launching);
                of_graphs.between_kernels += between;
            }
            if let Some(first) = first_graph.get(&stage) {
                of_graphs.before_first +=
                    launching.min(gap.intersect(Span::new(gap.start, *first)).length().max(Nanos::ZERO));
            }
            *waits.between_kernels.entry(stage).or_default() += u64::from(between > Nanos::ZERO);
            for cause in IdleCause::ALL {
                let time = waiting.of(cause);
                *waits.of_stage.entry((stage, cause)).or_default() += time;
                if time > Nanos::ZERO {
                    *before.entry((stage, cause)).or_default() += time;
                }
            }
        }
        if work.kind == WorkKind::Kernel || last_kernels.get(&device).is_none_or(|last| place > *last) {
            for ((stage, cause), time) in std::mem::take(before) {
                recurring.entry((device, work.name, stage, cause)).or_default().add(time);
            }
        }
    }
    for ((_, _, stage, cause), times) in recurring {
        *waits.once.entry((stage, cause)).or_default() += times.once();
    }
    waits
}

/// When the host first calls for a graph, by top stage.
fn first_graphs(timeline: &Timeline, attribution: &Attribution, partition: &Partition) -> BTreeMap<Scope, Nanos> {
    let graph_of = attribution.graph_launches(timeline);
    let mut first: BTreeMap<Scope, Nanos> = BTreeMap::new();
    for (row, (scope, call)) in partition.scopes.iter().zip(&attribution.launch).enumerate() {
        if let Some((scope, call)) = scope.zip(*call).filter(|_| graph_of(row).is_some()) {
            let start = timeline.calls[call as usize].start;
            let first = first.entry(scope).or_insert(start);
            *first = start.min(*first);
        }
    }
    first
}

/// Calls of the launching side that are not part of launching, within the wall time of each stage.
fn calls(timeline: &Timeline, partition: &Partition) -> BTreeMap<(Scope, IdleCause, String), u64> {
    let causes: Vec<_> = timeline.names.iter().map(|(_, name)| cause_of_call(name)).collect();
    let mut order: Vec<_> = partition.stages.iter().collect();
    order.sort_by_key(|stage| stage.wall.start);
    let mut counts: BTreeMap<(Scope, NameId), u64> = BTreeMap::new();
    for call in timeline.calls.iter().filter(|call| causes[call.name.index()].is_some()) {
        let place = order.partition_point(|stage| stage.wall.start <= call.start);
        let around = place.checked_sub(1).map(|place| order[place]).filter(|stage| stage.wall.contains(call.start));
        if let Some(stage) = around {
            *counts.entry((stage.stage, call.name)).or_default() += 1;
        }
    }
    let named = |((stage, name), count): ((Scope, NameId), u64)| {
        Some(((stage, causes[name.index()]?, timeline.name(name).to_owned()), count))
    };
    counts.into_iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use types::Stage;
    use types::timeline::{DeviceQueue, HostThread, QueueId, ThreadId};

    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, call, timeline};

    fn divided(timeline: &Timeline) -> Waits {
        let attribution = attribute(timeline, &AttributionSettings::default());
        waits(timeline, &attribution, &Partition::new(timeline, &attribution))
    }

    #[test]
    fn a_wait_comes_once_as_far_as_the_same_kernel_is_not_waited_for_again() {
        let of = |last_start: i64| {
            let mut timeline = timeline(
                1_000,
                &[
                    Launch::new(0, 100, 10).named("fill"),
                    Launch::new(200, 300, 10).named("memset"),
                    Launch::new(320, 340, 60).named("gemm"),
                    Launch::new(last_start - 40, last_start, 10).named("gemm"),
                ],
            );
            timeline.work[1].kind = WorkKind::Fill;
            let found = divided(&timeline);
            let prefill = (Scope::Stage(Stage::Prefill), IdleCause::Launching);
            [&found.of_stage, &found.once].map(|waits| waits[&prefill].get())
        };
        // The device waits until 100 for the fill, from 110 to 300 for the memset, and from 310 to 340 for the first GEMM.
        assert_eq!(of(400), [320, 320], "a memset and its kernel are waited for once");
        // The second GEMM is waited for from 400 to 450: 50 of the 220 before the first come back.
        assert_eq!(of(450), [370, 270]);
        // From 400 to 700: 220 come back, and the 80 beyond that do not.
        assert_eq!(of(700), [620, 180]);
    }

    #[test]
    fn a_device_waits_for_its_own_threads_and_for_each_kernel_by_itself() {
        // Two devices, each launched for by a thread of its own, wait from 200 to 700 for the same kernel, and the second thread
        // waits for its device meanwhile.
        let each = [Launch::new(0, 100, 100).named("fill"), Launch::new(600, 700, 100).named("gemm")];
        let mut timeline = timeline(1_000, &[&each[..], &each[..]].concat());
        timeline.ranges.clear();
        timeline.threads.push(HostThread { process: Some(1), rank: None, thread: Some(2) });
        timeline.queues.push(DeviceQueue { device: 1, stream: Some(9), ..timeline.queues[0].clone() });
        for row in [2, 3] {
            timeline.work[row].queue = QueueId(1);
            timeline.calls[row].thread = ThreadId(1);
        }
        call(&mut timeline, "cudaStreamSynchronize", 210, 300, None);
        timeline.calls[4].thread = ThreadId(1);
        let found = divided(&timeline);
        let of = |cause| found.of_stage[&(Scope::Run, cause)].get();
        assert_eq!([of(IdleCause::Synchronising), of(IdleCause::Launching)], [300, 700]);
        let once = found.once[&(Scope::Run, IdleCause::Launching)].get();
        assert_eq!(once, 700, "no device waits for a kernel twice");
    }

    #[test]
    fn time_in_blocking_calls_is_theirs_and_the_rest_is_launching() {
        // The device waits until 100 and from 200 to 700; the host waits for it from 210 to 250, copies from 300 to 350.
        let mut timeline = timeline(1_000, &[Launch::new(0, 100, 100), Launch::new(600, 700, 100)]);
        call(&mut timeline, "cudaStreamSynchronize", 210, 40, None);
        call(&mut timeline, "cudaMemcpyAsync", 300, 50, None);
        let found = divided(&timeline);
        let of = |cause| found.of_stage[&(Scope::Stage(Stage::Prefill), cause)].get();
        assert_eq!(of(IdleCause::Synchronising), 40);
        assert_eq!(of(IdleCause::Copying), 50);
        assert_eq!(found.of_stage.values().copied().sum::<Nanos>(), Nanos::new(600));
        let calls: Vec<_> =
            found.calls.iter().map(|((_, cause, name), count)| (*cause, name.as_str(), *count)).collect();
        let expected =
            [(IdleCause::Synchronising, "cudaStreamSynchronize", 1), (IdleCause::Copying, "cudaMemcpyAsync", 1)];
        assert_eq!(calls, expected);
    }
}
