//! Kernels of the whole program: how many each region has, and what lies outside of all.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use types::counter::{CounterTable, ProfiledKind};
use types::{DeviceId, Nanos, OutsideRegions, RegionKernel, RegionTotals};

use super::capture::RegionInputs;
use super::kernels::KernelSelection;
use super::tree::{Membership, Node};
use crate::counter::TIME;
use crate::kernel;
use crate::statistics::share;

/// Kernels of the whole program by region.
pub(super) struct Survey<'a> {
    table: &'a CounterTable,
    rows: &'a [Rc<Membership>],
    kernels: HashMap<Node, Kernels<'a>>,
}

/// Kernels of a region: all, those not nested any further, and launches by name.
#[derive(Default)]
struct Kernels<'a> {
    inclusive: u64,
    exclusive: u64,
    calls: BTreeMap<(&'a str, Option<u32>), u64>,
}

impl<'a> Survey<'a> {
    /// A survey, with the kernels that count.
    pub(super) fn new(table: &'a CounterTable, rows: &'a [Rc<Membership>], selection: &KernelSelection) -> Self {
        let mut kernels: HashMap<Node, Kernels<'a>> = HashMap::new();
        for (work, found) in table.work.iter().zip(rows).filter(|(work, _)| selection.keeps(&work.name)) {
            let mut nodes: Vec<Node> = found.inclusive.iter().map(|(node, _)| *node).collect();
            // Several threads may have the same region open.
            nodes.sort_unstable();
            nodes.dedup();
            for node in nodes {
                let of_node = kernels.entry(node).or_default();
                of_node.inclusive += 1;
                of_node.exclusive += u64::from(found.exclusive.contains(&node));
                *of_node.calls.entry((&work.name, work.device)).or_default() += 1;
            }
        }
        Self { table, rows, kernels }
    }

    /// Fills in the kernels of a region.
    pub(super) fn add_to(&self, totals: &mut RegionTotals, node: Node) {
        let kernel = |((name, device), calls): (&(&str, Option<u32>), &u64)| RegionKernel {
            name: (*name).to_owned(),
            short_name: kernel::short_name(name),
            device: device.map(DeviceId::cuda),
            calls: *calls,
            total_ns: None,
            mean_ns: None,
        };
        let found = self.kernels.get(&node);
        totals.kernels_inclusive = Some(found.map_or(0, |kernels| kernels.inclusive));
        totals.kernels_exclusive = Some(found.map_or(0, |kernels| kernels.exclusive));
        totals.kernels = found.into_iter().flat_map(|kernels| kernels.calls.iter().map(kernel)).collect();
        totals.kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.calls));
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
    let (capture, rows) = inputs.captures.iter().zip(of_rows).find(|(capture, _)| capture.include.is_empty())?;
    let is_kernels = capture.table.work.iter().all(|work| work.kind != ProfiledKind::Range);
    let inside = |found: &Rc<Membership>| found.inclusive.iter().any(|(node, _)| selected[*node]);
    (is_kernels && !rows.is_empty()).then(|| outside(capture.table, rows.iter().map(inside)))
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
