//! Counters of kernels for the panel of the timeline, by the name of the kernel.

use std::collections::BTreeMap;

use types::KernelReport;

use super::columns;
use crate::words::number::{count, percent};

/// Rows of names and values for each kernel whose counters were read; absent where none were.
pub(super) fn counters(report: &KernelReport) -> Option<String> {
    let mut found: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for kernel in &report.sampled {
        let Some(counted) = &kernel.counted else { continue };
        let share = |value: Option<f64>| value.map(|share| percent(Some(share)));
        let rows = [
            ("counted in", Some(count(counted.launches, "launch"))),
            ("FLOP/s", counted.flops_per_second.map(|rate| rate.to_string())),
            ("FLOPs per byte", counted.arithmetic_intensity.map(|intensity| intensity.to_string())),
            ("DRAM, of peak", share(counted.dram_share)),
            ("tensor cores, of peak", share(counted.tensor_share)),
            ("SM, of peak", share(counted.sm_share)),
            ("L2 hits", share(counted.l2_hit_share)),
            ("occupancy", share(counted.occupancy_achieved)),
        ];
        // Kernels are listed by time: the first of a name says most about it.
        found
            .entry(&kernel.name)
            .or_insert_with(|| rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect());
    }
    if found.is_empty() { None } else { columns::encoded(&found) }
}
