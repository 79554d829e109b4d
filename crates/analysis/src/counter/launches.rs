//! Hardware counters summed up: what a profiler counted for each kernel or range it replayed.

use std::collections::BTreeMap;

use types::counter::{CounterTable, DetailedWork, ProfiledKind, ProfiledWork};
use types::{Bytes, CounterSummary, DeviceId, KernelSummary, Nanos, Stage};

use super::name::TIME;
use crate::kernel;
use crate::timings::rounded;

/// Counters of the raw page, in the order they are looked for.
const DRAM: &str = "dram__bytes.sum";
const DRAM_READ: &str = "dram__bytes_read.sum";
const DRAM_WRITTEN: &str = "dram__bytes_write.sum";
const DRAM_RATE: &str = "dram__bytes.sum.per_second";
const COMPUTE: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const MEMORY: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
const OCCUPANCY: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";

/// Every counter of a raw page that is used here, so that readers need keep no other.
pub const USED_COUNTERS: [&str; 8] = [TIME, DRAM, DRAM_READ, DRAM_WRITTEN, DRAM_RATE, COMPUTE, MEMORY, OCCUPANCY];

/// Sections and metrics of the details page that say the same.
const SPEED_OF_LIGHT: &str = "GPU Speed Of Light Throughput";
const MEMORY_WORKLOAD: &str = "Memory Workload Analysis";
const OCCUPANCY_SECTION: &str = "Occupancy";

/// What was counted for one launch or one range. Times are nanoseconds, shares percent; what was not counted is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchCounters {
    /// The profiler's number for it, and its process: one launch in all pages of one capture.
    pub(super) id: u64,
    pub(super) process: Option<u32>,
    pub(super) name: String,
    pub(super) is_kernel: bool,
    pub(super) stage: Option<Stage>,
    pub(super) device: Option<u32>,
    pub(super) time: Option<f64>,
    pub(super) dram: Option<f64>,
    /// Bytes per second, for where no page has the bytes themselves.
    pub(super) dram_rate: Option<f64>,
    pub(super) compute: Option<f64>,
    pub(super) memory: Option<f64>,
    pub(super) occupancy: Option<f64>,
}

impl LaunchCounters {
    /// Every row of a raw page.
    pub fn of_table(table: &CounterTable) -> Vec<Self> {
        let row = |(row, work): (usize, &ProfiledWork)| {
            let number = |name: &str| table.number(row, name);
            Self { dram_rate: number(DRAM_RATE), ..Self::of_counters(work, number) }
        };
        table.work.iter().enumerate().map(row).collect()
    }

    /// Every work of a details page: by the metrics of its sections, else by counters that were asked for by name.
    pub fn of_details(works: &[DetailedWork]) -> Vec<Self> {
        let of = |detailed: &DetailedWork| {
            let number = |section: &str, metric: &str| detailed.section(section)?.number(metric);
            let named = |counter: &str| detailed.sections.iter().find_map(|section| section.number(counter));
            let counted = Self::of_counters(&detailed.work, named);
            Self {
                time: number(SPEED_OF_LIGHT, "Duration").or(counted.time),
                dram_rate: number(MEMORY_WORKLOAD, "Memory Throughput").or_else(|| named(DRAM_RATE)),
                compute: number(SPEED_OF_LIGHT, "Compute (SM) Throughput").or(counted.compute),
                memory: number(SPEED_OF_LIGHT, "Memory Throughput").or(counted.memory),
                occupancy: number(OCCUPANCY_SECTION, "Achieved Occupancy").or(counted.occupancy),
                ..counted
            }
        };
        works.iter().map(of).collect()
    }

    fn of_counters(work: &ProfiledWork, number: impl Fn(&str) -> Option<f64>) -> Self {
        let read_and_written = number(DRAM_READ).zip(number(DRAM_WRITTEN)).map(|(read, written)| read + written);
        Self {
            time: number(TIME),
            dram: number(DRAM).or(read_and_written),
            compute: number(COMPUTE),
            memory: number(MEMORY),
            occupancy: number(OCCUPANCY),
            ..Self::of_work(work)
        }
    }

    /// Bytes to and from the device's memory.
    fn dram_bytes(&self) -> Option<f64> {
        self.dram.or_else(|| Some(self.dram_rate? * self.time? / 1e9))
    }

    fn of_work(work: &ProfiledWork) -> Self {
        let is_kernel = work.kind == ProfiledKind::Kernel;
        let path: Vec<_> = work.pushed.iter().map(|range| &*range.name).collect();
        let name = if is_kernel || path.is_empty() {
            work.name.to_string()
        } else {
            format!("{} {}", work.name, path.join("::"))
        };
        let stage = work.pushed.iter().rev().find_map(|range| Stage::from_range(range.domain.as_deref(), &range.name));
        Self {
            id: work.id,
            process: work.process,
            name,
            is_kernel,
            stage,
            device: work.device,
            time: None,
            dram: None,
            dram_rate: None,
            compute: None,
            memory: None,
            occupancy: None,
        }
    }

    /// The device it ran on; absent where the page does not say.
    pub fn device(&self) -> Option<DeviceId> {
        self.device.map(DeviceId::cuda)
    }
}

/// One row per kernel or range and device, longest first.
pub(crate) fn summaries(counted: &[LaunchCounters]) -> Vec<CounterSummary> {
    let mut groups: BTreeMap<(&str, Option<u32>), Vec<&LaunchCounters>> = BTreeMap::new();
    for one in counted {
        groups.entry((&one.name, one.device)).or_default().push(one);
    }
    let summary = |((name, _), all): ((&str, Option<u32>), Vec<&LaunchCounters>)| CounterSummary {
        name: name.to_owned(),
        short_name: if all[0].is_kernel { kernel::short_name(name) } else { name.to_owned() },
        device: all[0].device(),
        calls: all.len() as u64,
        total_ns: sum(&all, |one| one.time).map(rounded),
        dram_bytes: sum(&all, LaunchCounters::dram_bytes).map(|bytes| Bytes::new(bytes.round().max(0.0) as u64)),
        compute_share: weighted(&all, |one| one.compute),
        memory_share: weighted(&all, |one| one.memory),
        occupancy: weighted(&all, |one| one.occupancy),
    };
    let mut summaries: Vec<_> = groups.into_iter().map(summary).collect();
    summaries.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    summaries
}

/// Kernels as the counters time them, for a run that has no timeline.
pub(crate) fn kernels(counted: &[LaunchCounters]) -> Vec<KernelSummary> {
    let mut rows: BTreeMap<(&str, Option<Stage>, DeviceId), KernelSummary> = BTreeMap::new();
    for one in counted.iter().filter(|one| one.is_kernel) {
        let Some(time) = one.time.map(rounded) else { continue };
        let device = one.device().unwrap_or_else(DeviceId::unnumbered);
        let fresh = || KernelSummary {
            name: one.name.clone(),
            short_name: kernel::short_name(&one.name),
            family: kernel::family(&one.name).name().to_owned(),
            stage: one.stage,
            device: device.clone(),
            calls: 0,
            total_ns: Nanos::ZERO,
            min_ns: time,
            max_ns: time,
            estimate: None,
        };
        let row = rows.entry((&one.name, one.stage, device.clone())).or_insert_with(fresh);
        row.calls += 1;
        row.total_ns += time;
        row.min_ns = row.min_ns.min(time);
        row.max_ns = row.max_ns.max(time);
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

/// The sum; absent where one is.
fn sum(all: &[&LaunchCounters], value: impl Fn(&LaunchCounters) -> Option<f64>) -> Option<f64> {
    all.iter().map(|one| value(one)).sum()
}

/// Mean of percentages weighted by time, as a share; absent where one or its time is.
fn weighted(all: &[&LaunchCounters], value: impl Fn(&LaunchCounters) -> Option<f64>) -> Option<f64> {
    let weight: f64 = sum(all, |one| one.time)?;
    let parts: f64 = all.iter().map(|one| Some(value(one)? * one.time?)).sum::<Option<f64>>()?;
    crate::statistics::share(parts / 100.0, weight)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn counted(name: &str, time: f64, compute: Option<f64>) -> LaunchCounters {
        LaunchCounters {
            id: 0,
            process: Some(7),
            name: name.to_owned(),
            is_kernel: true,
            stage: None,
            device: Some(0),
            time: Some(time),
            dram: Some(10.0),
            dram_rate: None,
            compute,
            memory: None,
            occupancy: None,
        }
    }

    #[test]
    fn shares_are_weighted_by_time() {
        // 90% for 100 ns and 10% for 300 ns: (0.9 * 100 + 0.1 * 300) / 400 = 0.3.
        let rows = summaries(&[counted("gemm", 100.0, Some(90.0)), counted("gemm", 300.0, Some(10.0))]);
        assert_eq!((rows.len(), rows[0].calls, rows[0].total_ns), (1, 2, Some(Nanos::new(400))));
        assert!((rows[0].compute_share.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!((rows[0].dram_bytes, rows[0].memory_share), (Some(Bytes::new(20)), None));
    }

    #[test]
    fn a_launch_without_a_counter_leaves_the_row_open() {
        let rows = summaries(&[counted("gemm", 100.0, Some(90.0)), counted("gemm", 300.0, None)]);
        assert_eq!(rows[0].compute_share, None);
    }

    #[test]
    fn kernels_keep_their_shortest_and_longest_launch() {
        let rows = kernels(&[counted("gemm", 100.0, None), counted("gemm", 300.0, None), counted("copy", 1.0, None)]);
        assert_eq!((rows[0].min_ns, rows[0].max_ns, rows[1].calls), (Nanos::new(100), Nanos::new(300), 1));
    }
}
