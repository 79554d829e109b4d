//! Changes: what would be different, as an edit of the costs before a replay.
//!
//! A change says what it does to the nodes that it is about and nothing more; what that is worth is the replay's business.
//! Where a change can be had cheaper or dearer, both ends are replayed ([`Bound`]).

use types::timeline::{CopyDirection, WorkKind};
use types::{Facts, Hardware, IdleCause, Nanos, Remark};

use super::bound::Bound;
use super::capture::capture;
use super::chosen::Chosen;
use super::costs::{Costs, Part, scaled};
use super::fusion;
use super::hardware;
use super::setting::Setting;
use crate::kernel::Family;
use crate::scope::Scope;

/// A kernel takes at least about this, however little it does: no rate makes it shorter.
pub(super) const SHORTEST_KERNEL: Nanos = Nanos::new(1_500);

/// How fast kernels run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// This many times as fast.
    Times(f64),
    /// In their roofline time, where that is known; others stay.
    Roofline,
}

/// What becomes of copies between host and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFate {
    /// They run beside everything else, and nothing waits for them.
    Hidden,
    /// They are not done.
    Removed,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The launches of each step or stage in one graph.
    CudaGraphs,
    /// Chains of elementwise kernels as one kernel each.
    FusedElementwise,
    /// Kernels of a family at another pace.
    Kernels(Family, Pace),
    /// Copies between host and device; of one direction where it is named.
    Copies(Option<CopyDirection>, CopyFate),
    /// Communication runs beside everything else.
    HiddenCommunication,
    /// A host that is this many times as fast.
    Host(f64),
    /// From one device to another: each kernel at the ratio of the rates that limit it.
    Hardware(Box<[Hardware; 2]>),
    /// What the host does between calls for this cause is done elsewhere.
    WithoutHost(IdleCause),
    /// The host no longer waits for the device.
    WithoutSynchronisation,
    /// Chosen work is launched with this share of its launches.
    Grouped(Chosen, f64),
    /// Chosen work takes this share of its time; nothing at all is not launched either.
    Share(Chosen, f64),
}

impl Change {
    /// Edits costs, of one part of the run where it is named.
    pub(crate) fn apply(&self, setting: &Setting<'_>, costs: &mut Costs, scope: Option<Scope>, bound: Bound) {
        let graph = setting.graph;
        match self {
            Self::CudaGraphs => capture(setting, costs, scope, bound),
            Self::FusedElementwise => fusion::fuse(setting, costs, scope, bound),
            Self::Kernels(family, pace) => {
                for row in setting.rows(scope).filter(|row| setting.family(*row) == *family) {
                    let share = match pace {
                        Pace::Times(times) => Some(1.0 / times),
                        Pace::Roofline => setting.roofline[row].map(|roofline| roofline.share),
                    };
                    quicken(costs, row, share.unwrap_or(1.0));
                }
            }
            Self::Copies(direction, fate) => {
                let is_meant = |row: &usize| match setting.timeline.work[*row].kind {
                    WorkKind::Copy(CopyDirection::DeviceToDevice | CopyDirection::PeerToPeer) => false,
                    WorkKind::Copy(found) => direction.is_none_or(|direction| direction == found),
                    _ => false,
                };
                for row in setting.rows(scope).filter(is_meant) {
                    match fate {
                        CopyFate::Removed => costs.remove(graph, row),
                        CopyFate::Hidden => beside(setting, costs, row),
                    }
                }
            }
            Self::HiddenCommunication => {
                for row in setting.rows(scope).filter(|row| setting.family(*row) == Family::Communication) {
                    beside(setting, costs, row);
                }
            }
            Self::Host(times) => quicken_host(setting, costs, scope, 1.0 / times),
            Self::Hardware(devices) => {
                let [from, to] = &**devices;
                for row in setting.rows(scope).filter(|row| setting.timeline.work[*row].kind == WorkKind::Kernel) {
                    let share = hardware::share(setting, row, from, to, bound);
                    quicken(costs, row, share);
                }
            }
            Self::WithoutHost(cause) => {
                for (place, call) in setting.calls(scope).filter(|(_, call)| call.doing == *cause) {
                    costs.gap[place] = (costs.gap[place] - call.doing_ns).max(Nanos::ZERO);
                }
            }
            Self::WithoutSynchronisation => {
                for (place, _) in setting.calls(scope).filter(|(_, call)| call.kind == Some(IdleCause::Synchronising)) {
                    costs.waits[place] = false;
                }
            }
            Self::Grouped(chosen, share) => {
                let rows = setting.rows(scope).filter(|row| chosen.holds(setting, *row));
                let launches: Vec<usize> = rows.filter_map(|row| Some(graph.work[row].launch?.node.index())).collect();
                for launch in launches {
                    costs.own[launch] = scaled(costs.own[launch], *share);
                    costs.gap[launch] = scaled(costs.gap[launch], *share);
                }
            }
            Self::Share(chosen, share) => {
                let rows: Vec<usize> = setting.rows(scope).filter(|row| chosen.holds(setting, *row)).collect();
                for row in rows {
                    if *share > 0.0 {
                        quicken(costs, row, chosen.share(setting, row, *share))
                    } else {
                        costs.remove(graph, row)
                    }
                }
            }
        }
    }

    /// Whether both bounds are the same.
    pub(crate) fn is_exact(&self) -> bool {
        !matches!(self, Self::CudaGraphs | Self::FusedElementwise | Self::Hardware(_))
    }

    /// Whether it makes device work shorter, so that it matters where the host waits for the device.
    pub(crate) fn is_of_device(&self) -> bool {
        !matches!(
            self,
            Self::CudaGraphs | Self::Host(_) | Self::WithoutHost(_) | Self::WithoutSynchronisation | Self::Grouped(..)
        )
    }

    /// What a replay with it takes for granted.
    pub fn assumes(&self) -> Remark {
        let facts = Facts::new();
        let (id, facts) = match self {
            Self::CudaGraphs => ("assumes.cuda-graphs", facts),
            Self::FusedElementwise => ("assumes.fused-elementwise", facts),
            Self::Kernels(family, Pace::Times(times)) => {
                ("assumes.kernels", facts.with("family", family.name()).with("times", *times))
            }
            Self::Kernels(family, Pace::Roofline) => ("assumes.kernels-roofline", facts.with("family", family.name())),
            Self::Copies(_, CopyFate::Hidden) => ("assumes.copies-hidden", facts),
            Self::Copies(_, CopyFate::Removed) => ("assumes.copies-removed", facts),
            Self::HiddenCommunication => ("assumes.hidden-communication", facts),
            Self::Host(times) => ("assumes.host", facts.with("times", *times)),
            Self::Hardware(devices) => {
                ("assumes.hardware", facts.with("from", &devices[0].name).with("to", &devices[1].name))
            }
            Self::WithoutHost(IdleCause::DataLoading) => ("assumes.data-loading", facts),
            Self::WithoutHost(_) => ("assumes.host-work", facts),
            Self::WithoutSynchronisation => ("assumes.no-synchronisation", facts),
            Self::Grouped(chosen, share) => ("assumes.grouped", chosen.facts(*share)),
            Self::Share(chosen, share) if *share > 0.0 => ("assumes.share", chosen.facts(*share)),
            Self::Share(chosen, share) => ("assumes.removed", chosen.facts(*share)),
        };
        Remark::new(id, facts)
    }
}

/// A kernel in a share of its time.
fn quicken(costs: &mut Costs, row: usize, share: f64) {
    let run = costs.run[row];
    costs.run[row] = scaled(run, share).max(run.min(SHORTEST_KERNEL));
}

/// Nothing waits for this work any longer.
fn beside(setting: &Setting<'_>, costs: &mut Costs, row: usize) {
    costs.part[row] = Part::Beside;
    if let Some(launch) = setting.graph.work[row].launch {
        let place = launch.node.index();
        let call = &setting.graph.calls[place];
        // A copy that blocked becomes one that does not.
        if call.kind == Some(IdleCause::Copying) && call.wait.is_some_and(|wait| wait.work.node.index() == row) {
            costs.waits[place] = false;
        }
    }
}

fn quicken_host(setting: &Setting<'_>, costs: &mut Costs, scope: Option<Scope>, share: f64) {
    for (row, work) in setting.graph.work.iter().enumerate() {
        // The part of a launch's lag that passes inside the call is the host's.
        let Some(launch) = work.launch.filter(|_| setting.is_meant(row, scope)) else { continue };
        let inside = costs.launch[row].min(costs.own[launch.node.index()]).max(Nanos::ZERO);
        costs.launch[row] = costs.launch[row] - inside + scaled(inside, share);
    }
    for (place, _) in setting.calls(scope) {
        if setting.graph.calls[place].before.is_some() {
            costs.gap[place] = scaled(costs.gap[place], share);
        }
        costs.own[place] = scaled(costs.own[place], share);
    }
}
