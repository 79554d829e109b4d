//! Kernels as another tool has already summed them up: all there is without a timeline, and a check where there is one.

use std::collections::BTreeMap;

use types::{DeviceId, KernelSummary, Nanos, QualityCounter, Severity};

use crate::kernel;

/// All launches of one kernel, as a table of another tool has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKernel {
    /// Full demangled name.
    pub name: String,
    /// Launches.
    pub calls: u64,
    /// Time of all.
    pub total: Nanos,
    /// Shortest.
    pub min: Nanos,
    /// Longest.
    pub max: Nanos,
}

/// The rows of a run that has no timeline, longest first.
pub(crate) fn kernels(listed: &[ListedKernel]) -> Vec<KernelSummary> {
    let row = |one: &ListedKernel| KernelSummary {
        name: one.name.clone(),
        short_name: kernel::short_name(&one.name),
        family: kernel::family(&one.name).name().to_owned(),
        stage: None,
        device: DeviceId::unnumbered(),
        calls: one.calls,
        total_ns: one.total,
        min_ns: one.min,
        max_ns: one.max,
        estimate: None,
    };
    let mut rows: Vec<_> = listed.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

/// Kernels whose launches or time the table has differently from the timeline.
pub(crate) fn differing(listed: &[ListedKernel], kernels: &[KernelSummary]) -> Option<QualityCounter> {
    if listed.is_empty() || kernels.is_empty() {
        return None;
    }
    let mut sums: BTreeMap<&str, [(u64, Nanos); 2]> = BTreeMap::new();
    for one in listed {
        let sum = &mut sums.entry(&one.name).or_default()[0];
        *sum = (sum.0 + one.calls, sum.1 + one.total);
    }
    for one in kernels {
        let sum = &mut sums.entry(&one.name).or_default()[1];
        *sum = (sum.0 + one.calls, sum.1 + one.total_ns);
    }
    let differing = sums.values().filter(|[table, timeline]| table != timeline).count() as u64;
    let all = sums.len() as u64;
    let counter = QualityCounter::some("kernels_differ_from_table", Severity::Error, differing);
    counter.map(|counter| counter.of(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, calls: u64, total: i64) -> ListedKernel {
        let time = Nanos::new(total);
        ListedKernel { name: name.to_owned(), calls, total: time, min: time, max: time }
    }

    #[test]
    fn a_table_agrees_with_itself_and_not_with_another() {
        let table = [listed("gemm", 2, 30), listed("copy", 1, 5)];
        let mut rows = kernels(&table);
        assert_eq!(differing(&table, &rows), None);
        rows[0].total_ns = Nanos::new(31);
        let found = differing(&table, &rows).unwrap();
        assert_eq!((found.value, found.share), (1, Some(0.5)));
        assert_eq!(differing(&table, &[]), None);
    }
}
