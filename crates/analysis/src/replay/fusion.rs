//! Chains of elementwise kernels as one kernel each.

use types::Nanos;
use types::timeline::{QueueId, WorkKind};

use super::bound::Bound;
use super::costs::Costs;
use super::setting::Setting;
use crate::device::MOST_FUSED;
use crate::kernel;
use crate::scope::Scope;

/// Kernels further apart than this have something of the host between them.
const APART: Nanos = Nanos::new(1_000_000);

/// Of each [`MOST_FUSED`] kernels of a chain the longest stays. At best the host no longer prepares the others either.
pub(super) fn fuse(setting: &Setting<'_>, costs: &mut Costs, scope: Option<Scope>, bound: Bound) {
    let names = setting.timeline.names.iter();
    let elementwise: Vec<bool> = names.map(|(_, name)| kernel::is_unfused_elementwise(name)).collect();
    let starts: Vec<bool> = setting.timeline.names.iter().map(|(_, name)| kernel::reads_nothing(name)).collect();
    let mut rows: Vec<usize> = (0..setting.graph.work.len()).collect();
    let key = |row: &usize| (setting.timeline.work[*row].queue, setting.timeline.work[*row].start);
    if !rows.is_sorted_by_key(key) {
        rows.sort_by_key(key);
    }
    let mut chain: Vec<usize> = Vec::new();
    let mut open: Option<(QueueId, Option<Scope>)> = None;
    for row in rows {
        let work = &setting.timeline.work[row];
        let here = Some((work.queue, setting.scopes[row]));
        let fuses = work.kind == WorkKind::Kernel && elementwise[work.name.index()] && setting.is_meant(row, scope);
        let is_apart = chain.last().is_some_and(|last| {
            let ended = setting.timeline.work[*last].end();
            work.start - ended > APART
        });
        if open != here || !fuses || is_apart || starts[work.name.index()] {
            close(setting, costs, &mut chain, bound);
        }
        open = here;
        if fuses {
            chain.push(row);
        }
    }
    close(setting, costs, &mut chain, bound);
}

fn close(setting: &Setting<'_>, costs: &mut Costs, chain: &mut Vec<usize>, bound: Bound) {
    for fused in chain.chunks(MOST_FUSED) {
        let longest = fused.iter().copied().max_by_key(|row| costs.run[*row]);
        for row in fused.iter().copied().filter(|row| Some(*row) != longest) {
            costs.remove(setting.graph, row);
            let launch = setting.graph.work[row].launch.filter(|_| bound == Bound::High);
            if let Some(launch) = launch.map(|launch| launch.node.index())
                && setting.graph.calls[launch].launched == 1
            {
                costs.gap[launch] = Nanos::ZERO;
            }
        }
    }
    chain.clear();
}
