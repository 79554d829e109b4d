//! Kernels and ranges sorted by the region they belong to.

use std::collections::{BTreeMap, HashMap};

use types::counter::ProfiledKind;

use super::capture::RegionCapture;
use super::include::Include;
use super::kernels::KernelSelection;
use super::totals::Row;
use super::tree::{Membership, Node, Tree};

/// Rows of a region.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Nested regions included.
    pub(super) inclusive: Vec<Row>,
    /// Nested regions left out.
    pub(super) exclusive: Vec<Row>,
}

/// A region in one process, on one device, from one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) node: Node,
    pub(super) process: Option<u32>,
    pub(super) device: Option<u32>,
    pub(super) thread: Option<u64>,
}

/// Kernels and ranges by region.
#[derive(Debug, Default)]
pub(super) struct RegionRows {
    /// By region.
    pub(super) all: HashMap<Node, Rows>,
    /// By region, process, device and thread.
    pub(super) parts: BTreeMap<Part, Rows>,
    /// The innermost region of a row inside a region.
    pub(super) innermost: HashMap<(Node, Row), Node>,
    /// Fewest entries by region, process and thread.
    pub(super) instances: HashMap<(Node, Option<u32>, Option<u64>), u64>,
    /// Kernels of regions that the selection leaves out.
    pub(super) left_out: u64,
    /// The same by region.
    pub(super) left_out_of: HashMap<Node, u64>,
}

impl RegionRows {
    /// Puts one kernel or range where it belongs, where it is asked for.
    pub(super) fn add(
        &mut self,
        place: Row,
        capture: &RegionCapture<'_>,
        membership: &Membership,
        tree: &Tree,
        selected: &[bool],
        kernels: &KernelSelection,
    ) {
        let work = &capture.table.work[place.1];
        if work.kind == ProfiledKind::Range {
            let Some((node, thread)) = measured(capture.include, membership, tree) else { return };
            if selected[node] {
                self.all.entry(node).or_default().inclusive.push(place);
                let part = Part { node, process: work.process, device: work.device, thread };
                self.parts.entry(part).or_default().inclusive.push(place);
                self.innermost.insert((node, place), node);
            }
            return;
        }
        let is_kept = kernels.keeps(&work.name);
        let mut is_selected = false;
        let mut counted: Vec<Node> = Vec::new();
        for (node, thread) in membership.inclusive.iter().filter(|(node, _)| selected[*node]) {
            is_selected = true;
            // A region without a kernel that counts is still one.
            let all = self.all.entry(*node).or_default();
            let part = Part { node: *node, process: work.process, device: work.device, thread: *thread };
            let part = self.parts.entry(part).or_default();
            if !is_kept {
                if !counted.contains(node) {
                    counted.push(*node);
                    *self.left_out_of.entry(*node).or_default() += 1;
                }
                continue;
            }
            let is_innermost = membership.exclusive.contains(node);
            part.inclusive.push(place);
            if is_innermost {
                part.exclusive.push(place);
            }
            if !counted.contains(node) {
                counted.push(*node);
                all.inclusive.push(place);
                if is_innermost {
                    all.exclusive.push(place);
                }
                let inside = membership.leaves.iter().map(|(leaf, _)| *leaf);
                let inner = inside.into_iter().find(|leaf| tree.keys[*leaf].is_within(&tree.keys[*node]));
                self.innermost.insert((*node, place), inner.unwrap_or(*node));
            }
        }
        self.left_out += u64::from(is_selected && !is_kept);
    }
}

/// The region that a measured range is: the innermost of the stack that an expression asked for, else the innermost of
/// the first stack.
fn measured(include: &[String], membership: &Membership, tree: &Tree) -> Option<(Node, Option<u64>)> {
    let asked = |(leaf, _): &&(Node, Option<u64>)| {
        let key = std::slice::from_ref(&tree.keys[*leaf]);
        include.iter().any(|text| !Include::new(text).matching(key).is_empty())
    };
    membership.leaves.iter().find(asked).or(membership.leaves.first()).copied()
}
