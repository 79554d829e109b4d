//! What changes look at: the timeline, its graph, and what is known of its work.

use types::Nanos;
use types::timeline::{Timeline, WorkKind};

use super::graph::Graph;
use super::node::CallNode;
use crate::device::Mark;
use crate::kernel::{self, Family, KernelKind};
use crate::operators::shapes::WorkRoofline;
use crate::scope::Scope;

/// Everything a change may look at.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) timeline: &'a Timeline,
    pub(crate) graph: &'a Graph,
    /// Per work: what it counts for.
    pub(crate) scopes: &'a [Option<Scope>],
    /// Per work, where shapes and the device tell.
    pub(crate) roofline: &'a [Option<WorkRoofline>],
    /// Per work: whether its operator read half precision.
    pub(crate) reads_half: &'a [bool],
    /// Starts of steps, in order.
    pub(crate) steps: &'a [Nanos],
    /// Per work: what findings ask about.
    pub(crate) marks: &'a [Option<Mark>],
    /// Per name of the timeline.
    pub(crate) kinds: &'a [KernelKind],
}

impl Setting<'_> {
    /// Whether work belongs to a part of the run.
    pub(super) fn is_meant(&self, row: usize, scope: Option<Scope>) -> bool {
        scope.is_none_or(|scope| self.scopes[row] == Some(scope))
    }

    /// Work of a part of the run.
    pub(super) fn rows(&self, scope: Option<Scope>) -> impl Iterator<Item = usize> {
        (0..self.graph.work.len()).filter(move |row| self.is_meant(*row, scope))
    }

    /// Calls of a part of the run.
    pub(super) fn calls(&self, scope: Option<Scope>) -> impl Iterator<Item = (usize, &CallNode)> {
        let is_meant = move |call: &CallNode| scope.is_none_or(|scope| call.scope == Some(scope));
        self.graph.calls.iter().enumerate().filter(move |(_, call)| is_meant(call))
    }

    /// What the name of work tells.
    pub(super) fn kind(&self, row: usize) -> &KernelKind {
        &self.kinds[self.timeline.work[row].name.index()]
    }

    /// The family of work.
    pub(super) fn family(&self, row: usize) -> Family {
        match self.timeline.work[row].kind {
            WorkKind::Kernel => self.kind(row).family,
            kind => kernel::family_of_work(kind, ""),
        }
    }
}
