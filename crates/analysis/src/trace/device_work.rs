//! Device work summed up: by kernel, by copy, by stage and by device.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{DeviceWork, Timeline, WorkKind};
use types::{Bytes, CopySummary, DeviceId, KernelSummary, Nanos, Stage};

use super::PlacedTimeline;
use crate::kernel;

/// Everything the device work of a run adds up to.
#[derive(Debug, Default)]
pub(super) struct DeviceSums {
    /// One row per name, stage and device, longest first.
    pub(super) kernels: Vec<KernelSummary>,
    /// The same for copies and fills.
    pub(super) copies: Vec<CopySummary>,
    /// Work of a stage and of those nested in it.
    pub(super) stages: BTreeMap<Stage, StageSum>,
    /// Work of the whole run.
    pub(super) whole: StageSum,
    /// Graphs that the source records whole, without their kernels.
    pub(super) graphs: u64,
}

/// Device work of one stage, or of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StageSum {
    /// Time at least one piece of work ran, summed over devices.
    pub(super) busy: Nanos,
    /// Time of kernels.
    pub(super) kernel_time: Nanos,
    /// Kernels.
    pub(super) kernels: u64,
    /// Time of all work.
    pub(super) time: Nanos,
    /// Kernels, copies and fills.
    pub(super) launches: u64,
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

/// Sums up every timeline.
pub(super) fn sum(timelines: &[PlacedTimeline<'_>]) -> DeviceSums {
    let mut sums = DeviceSums::default();
    let mut kernels: BTreeMap<(String, Option<Stage>, DeviceId), Row> = BTreeMap::new();
    let mut copies: BTreeMap<(String, Option<Stage>, DeviceId), Row> = BTreeMap::new();
    for placed in timelines {
        let rows = add(&mut sums, placed);
        for ((name, stage, ordinal, is_kernel), row) in rows {
            let key = (placed.timeline.names.get(name).to_owned(), stage, placed.device(ordinal));
            let table = if is_kernel { &mut kernels } else { &mut copies };
            table.entry(key).and_modify(|all| all.add(row)).or_insert(row);
        }
    }
    sums.kernels = kernels.into_iter().map(kernel_summary).collect();
    sums.kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.total_ns));
    sums.copies = copies.into_iter().map(copy_summary).collect();
    sums.copies.sort_by_key(|copy| std::cmp::Reverse(copy.total_ns));
    sums
}

type Key = (types::timeline::NameId, Option<Stage>, u32, bool);

/// Adds the stage sums of one timeline and gives back its rows.
fn add(sums: &mut DeviceSums, placed: &PlacedTimeline<'_>) -> HashMap<Key, Row> {
    let PlacedTimeline { timeline, attribution, .. } = placed;
    let mut rows: HashMap<Key, Row> = HashMap::new();
    let mut busy = Busy::default();
    for index in by_start(timeline) {
        let work = &timeline.work[index];
        let ordinal = timeline.queues[work.queue.0 as usize].device;
        let is_kernel = matches!(work.kind, WorkKind::Kernel | WorkKind::Graph);
        let innermost = attribution.stage[index];
        rows.entry((work.name, innermost, ordinal, is_kernel))
            .and_modify(|row| row.add(Row::of(work)))
            .or_insert_with(|| Row::of(work));
        sums.whole.add(work, busy.more(None, ordinal, work));
        let mut stage = innermost;
        while let Some(inner) = stage {
            let more = busy.more(Some(inner), ordinal, work);
            sums.stages.entry(inner).or_default().add(work, more);
            stage = inner.parent();
        }
        sums.graphs += u64::from(work.kind == WorkKind::Graph);
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

/// How far devices were busy, while work is looked at in the order it began.
#[derive(Default)]
struct Busy {
    until: HashMap<(Option<Stage>, u32), Nanos>,
}

impl Busy {
    /// Time this work adds to what was busy before.
    fn more(&mut self, stage: Option<Stage>, device: u32, work: &DeviceWork) -> Nanos {
        let until = self.until.entry((stage, device)).or_insert(work.start);
        let more = (work.end() - work.start.max(*until)).max(Nanos::ZERO);
        *until = work.end().max(*until);
        more
    }
}

impl StageSum {
    fn add(&mut self, work: &DeviceWork, busy: Nanos) {
        self.busy += busy;
        self.time += work.duration;
        self.launches += 1;
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
        self.calls += other.calls;
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
    }
}

fn copy_summary(((name, stage, device), row): ((String, Option<Stage>, DeviceId), Row)) -> CopySummary {
    CopySummary { name, stage, device, calls: row.calls, total_ns: row.total, bytes: row.bytes }
}
