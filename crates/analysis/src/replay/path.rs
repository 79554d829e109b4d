//! The critical path: from the last node back to the first, always to the predecessor that let a node start last.

use std::collections::BTreeMap;

use types::timeline::{Timeline, WorkKind};
use types::{Facts, IdleCause, Nanos, Remark};

use super::costs::Costs;
use super::graph::Graph;
use super::node::{Node, NodePlace};
use super::schedule::{Binding, Schedule};
use crate::kernel::{self, Family};
use crate::time::{Span, Spans};

/// What a part of the critical path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathCause {
    /// Kernels of a family, copies and memsets.
    Work(Family),
    /// The host.
    Host(IdleCause),
    /// From a launch to the start of its work.
    LaunchLatency,
    /// From the end of work to the start of what waited for it on the device.
    DeviceLatency,
    /// Before everything that the trace holds.
    Start,
}

impl PathCause {
    /// What `report::words` calls it.
    pub(crate) fn remark(self) -> Remark {
        let facts = Facts::new();
        match self {
            Self::Work(family) => Remark::new("path.kernels", facts.with("family", family.name())),
            Self::Host(cause) => Remark::new(&format!("path.host.{}", cause.name()), facts),
            Self::LaunchLatency => Remark::new("path.launch-latency", facts),
            Self::DeviceLatency => Remark::new("path.device-latency", facts),
            Self::Start => Remark::new("path.start", facts),
        }
    }
}

/// Time of the critical path within spans of the replay, by cause.
pub(crate) fn causes(
    timeline: &Timeline,
    graph: &Graph,
    costs: &Costs,
    schedule: &Schedule,
    within: &Spans,
) -> BTreeMap<PathCause, Nanos> {
    let families: Vec<Family> = timeline.names.iter().map(|(_, name)| kernel::family(name)).collect();
    let family = |row: usize| {
        let work = &timeline.work[row];
        if work.kind == WorkKind::Kernel { families[work.name.index()] } else { kernel::family_of_work(work.kind, "") }
    };
    let mut sums: BTreeMap<PathCause, Nanos> = BTreeMap::new();
    // Work may overlap the work before it, and counts only until that one's own part begins.
    let mut reached = Nanos::new(i64::MAX);
    let mut add = |cause: PathCause, from: Nanos, to: Nanos| {
        let time = within.total_within(Span::new(from, to.min(reached)));
        reached = reached.min(from);
        if time > Nanos::ZERO {
            *sums.entry(cause).or_default() += time;
        }
    };
    let Some(mut here) = last(graph, schedule, within) else { return sums };
    // Every step goes back in time or in order, so the number of nodes bounds the walk.
    for _ in 0..=2 * graph.order.len() {
        let next = match here {
            Step::Returned(place) => {
                let (node, span) = (&graph.calls[place], schedule.calls[place]);
                let waited = node.wait.filter(|_| costs.waits[place]).map(|wait| {
                    let work = wait.work.node.index();
                    (if wait.until_end { schedule.passed[work] } else { schedule.work[work].start }, wait)
                });
                match waited.filter(|(moment, wait)| *moment + wait.work.lag >= span.end && *moment <= span.end) {
                    Some((moment, wait)) => {
                        add(PathCause::Host(node.kind.unwrap_or(IdleCause::Launching)), moment, span.end);
                        let work = wait.work.node.index();
                        if wait.until_end { Step::Passed(work) } else { Step::Started(work) }
                    }
                    None => {
                        add(PathCause::Host(node.kind.unwrap_or(IdleCause::Launching)), span.start, span.end);
                        Step::Called(place)
                    }
                }
            }
            Step::Called(place) => {
                let (node, start) = (&graph.calls[place], schedule.calls[place].start);
                let before = [node.before, node.handed_over].into_iter().flatten().map(NodePlace::index);
                let Some(before) = before.max_by_key(|before| schedule.calls[*before].end) else {
                    add(PathCause::Start, graph.span.start, start);
                    break;
                };
                add(PathCause::Host(node.doing), schedule.calls[before].end, start);
                Step::Returned(before)
            }
            Step::Passed(row) => {
                // Where work runs beside, others go on from its start.
                let from = schedule.work[row].start.min(schedule.passed[row]);
                add(PathCause::Work(family(row)), from, schedule.passed[row]);
                Step::Started(row)
            }
            Step::Started(row) => {
                let start = schedule.work[row].start;
                match schedule.bound(graph, costs, row) {
                    Some(Binding::Launch(call)) => {
                        add(PathCause::LaunchLatency, schedule.calls[call].start, start);
                        Step::Called(call)
                    }
                    Some(Binding::Work(before)) => {
                        add(PathCause::DeviceLatency, schedule.passed[before], start);
                        Step::Passed(before)
                    }
                    None => {
                        add(PathCause::Start, graph.span.start, start);
                        break;
                    }
                }
            }
        };
        here = next;
    }
    sums
}

/// A place on the way back.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The return of a call.
    Returned(usize),
    /// Its start.
    Called(usize),
    /// The end of work, for those that wait for it.
    Passed(usize),
    /// Its start.
    Started(usize),
}

/// What ends last within the spans.
fn last(graph: &Graph, schedule: &Schedule, within: &Spans) -> Option<Step> {
    let until = within.as_slice().last()?.end;
    let mut latest: Option<(Nanos, Step)> = None;
    for node in &graph.order {
        let (end, step) = match *node {
            Node::Call(place)
                if graph.calls[place as usize].launched > 0 || graph.calls[place as usize].wait.is_some() =>
            {
                (schedule.calls[place as usize].end, Step::Returned(place as usize))
            }
            Node::Call(_) => continue,
            Node::Work(row) => (schedule.passed[row as usize], Step::Passed(row as usize)),
        };
        if end <= until && latest.is_none_or(|(latest, _)| end >= latest) {
            latest = Some((end, step));
        }
    }
    latest.map(|(_, step)| step)
}
