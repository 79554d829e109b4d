//! Kernels of the whole program: how many each region has, and what lies outside of all.

use std::collections::BTreeMap;
use std::rc::Rc;

use types::counter::{CounterTable, ProfiledKind};
use types::{Nanos, OutsideRegions, RegionKernel};

use super::columns::TIME;
use super::kernels::KernelSelection;
use super::roll::RegionInputs;
use super::tree::{Membership, Node};
use crate::kernel;
use crate::statistics::share;

/// Kernels of the whole program by region.
pub(super) struct Survey<'a> {
    table: &'a CounterTable,
    rows: &'a [Rc<Membership>],
    kept: Vec<bool>,
}

impl<'a> Survey<'a> {
    /// A survey, with the kernels that count.
    pub(super) fn new(table: &'a CounterTable, rows: &'a [Rc<Membership>], kernels: &KernelSelection) -> Self {
        let kept = table.work.iter().map(|work| kernels.keeps(&work.name)).collect();
        Self { table, rows, kept }
    }

    /// Kernels of a region: all, those not nested any further, and by name.
    pub(super) fn kernels(&self, node: Node) -> (u64, u64, Vec<RegionKernel>) {
        let (mut all, mut apart) = (0, 0);
        let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
        for (row, found) in self.rows.iter().enumerate().filter(|(row, _)| self.kept[*row]) {
            if found.inclusive.iter().any(|(other, _)| *other == node) {
                all += 1;
                apart += u64::from(found.exclusive.contains(&node));
                *calls.entry(&self.table.work[row].name).or_default() += 1;
            }
        }
        let kernel = |(name, calls): (&str, u64)| RegionKernel {
            name: name.to_owned(),
            short_name: kernel::short_name(name),
            calls,
            total_ns: None,
        };
        let mut kernels: Vec<RegionKernel> = calls.into_iter().map(kernel).collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.calls));
        (all, apart, kernels)
    }

    /// What lies outside of the regions that are asked for.
    pub(super) fn outside(&self, selected: &[bool]) -> OutsideRegions {
        let inside = |found: &Rc<Membership>| found.inclusive.iter().any(|(node, _)| selected[*node]);
        outside(self.table, self.rows.iter().map(inside))
    }
}

/// Kernels outside of every region, where a capture took everything.
pub(super) fn unfiltered(
    inputs: &RegionInputs<'_>,
    of_rows: &[Vec<Rc<Membership>>],
    selected: &[bool],
) -> Option<OutsideRegions> {
    let (captured, rows) = inputs.captures.iter().zip(of_rows).find(|(captured, _)| captured.include.is_empty())?;
    let is_kernels = captured.table.work.iter().all(|work| work.kind != ProfiledKind::Range);
    let inside = |found: &Rc<Membership>| found.inclusive.iter().any(|(node, _)| selected[*node]);
    (is_kernels && !rows.is_empty()).then(|| outside(captured.table, rows.iter().map(inside)))
}

fn outside(table: &CounterTable, inside: impl Iterator<Item = bool>) -> OutsideRegions {
    let (mut kernels, mut all) = (0u64, 0u64);
    let (mut time, mut whole) = (Some(0.0), Some(0.0));
    for (row, is_inside) in inside.enumerate() {
        let took = table.number(row, TIME);
        all += 1;
        whole = whole.zip(took).map(|(sum, took)| sum + took);
        if !is_inside {
            kernels += 1;
            time = time.zip(took).map(|(sum, took)| sum + took);
        }
    }
    OutsideRegions {
        kernels,
        kernels_share: share(kernels as f64, all as f64).unwrap_or_default(),
        total_ns: time.map(|time| Nanos::new(time.round() as i64)),
        time_share: time.zip(whole).and_then(|(time, whole)| share(time, whole)),
    }
}
