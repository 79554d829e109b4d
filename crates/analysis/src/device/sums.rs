//! Device work summed up: by kernel, by copy, by stage and by device.

use std::collections::{BTreeMap, HashSet};

use types::timeline::{DeviceQueue, DeviceWork, Timeline, WorkKind};
use types::{Bytes, CopySummary, DeviceId, KernelSummary, Nanos, Stage};

use super::graph_samples;
use crate::evidence::PlacedTimeline;
use crate::kernel;

/// Everything the device work of a run adds up to.
#[derive(Debug, Default)]
pub(crate) struct DeviceSums {
    /// One row per name, stage and device, longest first.
    pub(crate) kernels: Vec<KernelSummary>,
    /// The same for copies and fills.
    pub(crate) copies: Vec<CopySummary>,
    /// Work of a stage and of those nested in it.
    pub(crate) stages: BTreeMap<Stage, StageSum>,
    /// Work of the whole run.
    pub(crate) whole: StageSum,
    /// Graphs that the source records whole, without their kernels.
    pub(crate) graphs: u64,
    /// Of graphs of which some launches were recorded kernel by kernel, those launches, and all.
    pub(crate) graph_launches: (u64, u64),
}

/// Device work of one stage, or of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StageSum {
    /// Time at least one piece of work ran, summed over devices.
    pub(crate) busy: Nanos,
    /// Time of kernels.
    pub(crate) kernel_time: Nanos,
    /// Kernels.
    pub(crate) kernels: u64,
    /// Time of all work.
    pub(crate) time: Nanos,
    /// Kernels, copies and fills.
    pub(crate) pieces: u64,
    /// Calls that launched them: a graph is launched once.
    pub(crate) launches: u64,
}

/// What is summed under one name, stage and device.
#[derive(Clone, Copy)]
struct Row {
    calls: u64,
    total: Nanos,
    min: Nanos,
    max: Nanos,
    bytes: Option<Bytes>,
}

impl DeviceSums {
    /// Sums up every timeline.
    pub(crate) fn of(timelines: &[PlacedTimeline<'_>]) -> Self {
        sum(timelines)
    }
}

fn sum(timelines: &[PlacedTimeline<'_>]) -> DeviceSums {
    let mut sums = DeviceSums::default();
    let mut kernels: BTreeMap<(String, Option<Stage>, DeviceId), Row> = BTreeMap::new();
    let mut copies: BTreeMap<(String, Option<Stage>, DeviceId), Row> = BTreeMap::new();
    for placed in timelines {
        let rows = add(&mut sums, placed);
        for ((_, name), of_name) in placed.timeline.names.iter().zip(rows) {
            for ((stage, ordinal, is_kernel), row) in of_name {
                let key = (name.to_owned(), stage, placed.device(ordinal));
                let table = if is_kernel { &mut kernels } else { &mut copies };
                table.entry(key).and_modify(|all| all.add(row)).or_insert(row);
            }
        }
    }
    sums.kernels = kernels.into_iter().map(kernel_summary).collect();
    sums.kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.total_ns));
    graph_samples::estimate(&mut sums.kernels, timelines);
    sums.graph_launches = graph_samples::share(timelines);
    sums.copies = copies.into_iter().map(copy_summary).collect();
    sums.copies.sort_by_key(|copy| std::cmp::Reverse(copy.total_ns));
    sums
}

/// Sums of one name, each for a stage, a device, and kernels or others. There are few of them, so that looking through is
/// faster than hashing, which matters with millions of launches.
type RowsOfName = Vec<((Option<Stage>, u32, bool), Row)>;

/// Adds the stage sums of one timeline and gives back its rows, name by name.
fn add(sums: &mut DeviceSums, placed: &PlacedTimeline<'_>) -> Vec<RowsOfName> {
    let PlacedTimeline { timeline, attribution, .. } = placed;
    let mut rows: Vec<RowsOfName> = vec![Vec::new(); timeline.names.len()];
    let mut busy = Busy::new(timeline);
    let mut stages = [StageSum::default(); Stage::ALL.len()];
    let graph_of = attribution.graph_launches(timeline);
    let mut graphs: HashSet<u32> = HashSet::new();
    for index in by_start(timeline).into_iter().filter(|index| !attribution.is_aside(*index)) {
        let work = &timeline.work[index];
        let ordinal = timeline.queues[work.queue.0 as usize].device;
        let is_kernel = matches!(work.kind, WorkKind::Kernel | WorkKind::Graph);
        let innermost = attribution.stage[index];
        let key = (innermost, ordinal, is_kernel);
        let of_name = &mut rows[work.name.index()];
        match of_name.iter_mut().find(|(other, _)| *other == key) {
            Some((_, row)) => row.add(Row::of(work)),
            None => of_name.push((key, Row::of(work))),
        }
        let is_launch = graph_of(index).is_none_or(|call| graphs.insert(call));
        sums.whole.add(work, busy.more(None, work), is_launch);
        let mut stage = innermost;
        while let Some(inner) = stage {
            stages[inner as usize].add(work, busy.more(Some(inner), work), is_launch);
            stage = inner.parent();
        }
        sums.graphs += u64::from(work.kind == WorkKind::Graph);
    }
    for (stage, sum) in Stage::ALL.into_iter().zip(stages).filter(|(_, sum)| sum.pieces > 0) {
        sums.stages.entry(stage).or_default().join(sum);
    }
    rows
}

/// Places of the work, ordered by begin. Sources mostly are already, and then this costs one look at each row.
fn by_start(timeline: &Timeline) -> Vec<usize> {
    let mut order: Vec<usize> = (0..timeline.work.len()).collect();
    let start = |index: &usize| timeline.work[*index].start;
    if !order.is_sorted_by_key(start) {
        order.sort_by_key(start);
    }
    order
}

/// How far devices were busy, while work is looked at in the order it began: one place for the whole run and one for each
/// stage.
struct Busy {
    /// Place of each queue's device in `until`.
    device: Vec<usize>,
    until: Vec<[Nanos; 1 + Stage::ALL.len()]>,
}

impl Busy {
    fn new(timeline: &Timeline) -> Self {
        let mut ordinals: Vec<u32> = timeline.queues.iter().map(|queue| queue.device).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        let place = |queue: &DeviceQueue| ordinals.partition_point(|ordinal| *ordinal < queue.device);
        // Before anything that a timeline can hold.
        let never = Nanos::new(-Timeline::LARGEST_TIME);
        Self {
            device: timeline.queues.iter().map(place).collect(),
            until: vec![[never; 1 + Stage::ALL.len()]; ordinals.len()],
        }
    }

    /// Time this work adds to what was busy before.
    fn more(&mut self, stage: Option<Stage>, work: &DeviceWork) -> Nanos {
        let device = self.device[work.queue.0 as usize];
        let until = &mut self.until[device][stage.map_or(0, |stage| 1 + stage as usize)];
        let more = (work.end() - work.start.max(*until)).max(Nanos::ZERO);
        *until = work.end().max(*until);
        more
    }
}

impl StageSum {
    fn join(&mut self, other: Self) {
        self.busy += other.busy;
        self.kernel_time += other.kernel_time;
        self.kernels += other.kernels;
        self.time += other.time;
        self.pieces += other.pieces;
        self.launches += other.launches;
    }

    fn add(&mut self, work: &DeviceWork, busy: Nanos, is_launch: bool) {
        self.busy += busy;
        self.time += work.duration;
        self.pieces += 1;
        self.launches += u64::from(is_launch);
        if matches!(work.kind, WorkKind::Kernel | WorkKind::Graph) {
            self.kernel_time += work.duration;
            self.kernels += 1;
        }
    }
}

impl Row {
    fn of(work: &DeviceWork) -> Self {
        Self { calls: 1, total: work.duration, min: work.duration, max: work.duration, bytes: work.bytes }
    }

    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.bytes = self.bytes.zip(other.bytes).map(|(one, two)| one + two);
    }
}

fn kernel_summary(((name, stage, device), row): ((String, Option<Stage>, DeviceId), Row)) -> KernelSummary {
    KernelSummary {
        short_name: kernel::short_name(&name),
        family: kernel::family(&name).name().to_owned(),
        name,
        stage,
        device,
        calls: row.calls,
        total_ns: row.total,
        min_ns: row.min,
        max_ns: row.max,
        estimate: None,
    }
}

fn copy_summary(((name, stage, device), row): ((String, Option<Stage>, DeviceId), Row)) -> CopySummary {
    CopySummary { name, stage, device, calls: row.calls, total_ns: row.total, bytes: row.bytes }
}
