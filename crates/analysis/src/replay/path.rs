//! The critical path: from the last node back to the first, always to the predecessor that let a node start last.

use std::collections::BTreeMap;

use types::timeline::{Timeline, WorkKind};
use types::{Facts, IdleCause, Nanos, Remark};

use super::costs::Costs;
use super::graph::Graph;
use super::node::{CallNode, Node, NodePlace, Wait};
use super::schedule::{Binding, Schedule};
use crate::kernel::{self, Family};
use crate::statistics::share;
use crate::time::{LATENCY, Span, Spans, Waiting, behind_launch};
use crate::timings::rounded;

/// What a part of the critical path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathCause {
    /// Kernels of a family, copies and memsets.
    Work(Family),
    /// The host, or the delay between a launch and the start of its work: what idle time is put down to.
    Host(IdleCause),
}

impl PathCause {
    /// What `report::words` calls it.
    pub(crate) fn remark(self) -> Remark {
        let facts = Facts::new();
        match self {
            Self::Work(family) => Remark::new("path.kernels", facts.with("family", family.name())),
            Self::Host(cause) => Remark::new(&format!("cause.idle.{}", cause.name()), facts),
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
    let Some(first) = within.as_slice().first().map(|span| span.start.min(graph.span.start)) else {
        return BTreeMap::new();
    };
    let families: Vec<Family> = timeline.names.iter().map(|(_, name)| kernel::family(name)).collect();
    let family = |row: usize| {
        let work = &timeline.work[row];
        if work.kind == WorkKind::Kernel { families[work.name.index()] } else { kernel::family_of_work(work.kind, "") }
    };
    let mut sums: BTreeMap<PathCause, Nanos> = BTreeMap::new();
    // Work may overlap the work before it, and counts only until that one's own part begins.
    let mut reached = Nanos::new(i64::MAX);
    let mut add = |from: Nanos, to: Nanos, part: Part| {
        let time = within.total_within(Span::new(from, to.min(reached)));
        reached = reached.min(from);
        if time > Nanos::ZERO {
            part.add(&mut sums, time);
        }
    };
    let call = |node: &CallNode| Part::Host(graph.host.during(node.span, Some(cause_of(node))));
    let start = |start: Nanos| Part::Host(graph.host.during(Span::new(first, start), None));
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
                // By the clock of the device, work may end a little after the call that waited for it.
                let bound = |(moment, wait): &(Nanos, Wait)| {
                    *moment + wait.work.lag >= span.end && *moment + wait.work.lag.min(Nanos::ZERO) <= span.end
                };
                match waited.filter(bound) {
                    Some((moment, wait)) => {
                        add(moment, span.end, Part::One(PathCause::Host(cause_of(node))));
                        let work = wait.work.node.index();
                        if wait.until_end { Step::Passed(work) } else { Step::Started(work) }
                    }
                    None => {
                        add(span.start, span.end, call(node));
                        Step::Called(place)
                    }
                }
            }
            Step::Called(place) => {
                let (node, began) = (&graph.calls[place], schedule.calls[place].start);
                let before = [node.before, node.handed_over].into_iter().flatten().map(NodePlace::index);
                let Some(before) = before.max_by_key(|before| schedule.calls[*before].end) else {
                    add(first, began, start(node.span.start));
                    break;
                };
                let gap = Span::new(node.span.start - node.gap, node.span.start);
                add(schedule.calls[before].end, began, Part::Host(graph.host.during(gap, None)));
                Step::Returned(before)
            }
            Step::Passed(row) => {
                // Where work runs beside, others go on from its start.
                let from = schedule.work[row].start.min(schedule.passed[row]);
                add(from, schedule.passed[row], Part::One(PathCause::Work(family(row))));
                Step::Started(row)
            }
            Step::Started(row) => {
                let began = schedule.work[row].start;
                match schedule.bound(graph, costs, row) {
                    Some(Binding::Launch(place)) => {
                        let span = schedule.calls[place];
                        let returned = span.end.min(began);
                        let late = if began - returned > LATENCY { IdleCause::Queued } else { IdleCause::Launching };
                        add(returned, began, Part::One(PathCause::Host(late)));
                        add(span.start, returned, call(&graph.calls[place]));
                        Step::Called(place)
                    }
                    Some(Binding::Work(before)) => {
                        let gap = behind_launch(began - schedule.passed[before]);
                        add(schedule.passed[before], began, Part::One(PathCause::Host(gap)));
                        Step::Passed(before)
                    }
                    None => {
                        add(first, began, Part::One(PathCause::Host(IdleCause::NotRecorded)));
                        break;
                    }
                }
            }
        };
        here = next;
    }
    sums
}

/// What a part of the path is put down to.
enum Part {
    /// One cause.
    One(PathCause),
    /// What the host did in the recording of it, each in proportion.
    Host(Waiting),
}

impl Part {
    fn add(&self, sums: &mut BTreeMap<PathCause, Nanos>, time: Nanos) {
        let during = match self {
            Self::One(cause) => return *sums.entry(*cause).or_default() += time,
            Self::Host(during) => during,
        };
        let whole = during.total().get() as f64;
        let mut left = time;
        for cause in IdleCause::ALL {
            let part = share(during.of(cause).get() as f64, whole).map(|part| rounded(part * time.get() as f64));
            let part = part.unwrap_or_default().min(left);
            if part > Nanos::ZERO {
                *sums.entry(PathCause::Host(cause)).or_default() += part;
            }
            left = left - part;
        }
        if left > Nanos::ZERO {
            *sums.entry(PathCause::Host(IdleCause::Launching)).or_default() += left;
        }
    }
}

/// What a call is.
fn cause_of(node: &CallNode) -> IdleCause {
    node.kind.unwrap_or(IdleCause::Launching)
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
