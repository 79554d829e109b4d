//! One timeline, ready to be replayed with changes.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use types::timeline::{Timeline, WorkKind};
use types::{Hardware, IdleCause, Nanos};

use super::bound::Bound;
use super::change::Change;
use super::clock;
use super::costs::{Costs, Part};
use super::graph::Graph;
use super::node::WorkNode;
use super::path::{self, PathCause};
use super::refusal::Refusal;
use super::schedule::Schedule;
use super::setting::Setting;
use crate::attribution::graph::launches_graph;
use crate::device::{Mark, Partition};
use crate::evidence::PlacedTimeline;
use crate::kernel::{self, Family, KernelKind};
use crate::operators::recorded_work::reads_half;
use crate::operators::shapes::{self, WorkRoofline};
use crate::scope::Scope;
use crate::time::{Span, Spans};

/// Runs of a stage, or times of a device in none.
#[derive(Clone, Copy, Debug)]
struct Wall {
    scope: Scope,
    span: Span,
    /// Waiting behind work that the trace does not hold, which is no part of its time.
    behind: Nanos,
}

/// A timeline and its graph.
#[derive(Debug)]
pub struct TraceReplay<'a> {
    timeline: &'a Timeline,
    graph: Graph,
    walls: Vec<Wall>,
    scopes: Vec<Option<Scope>>,
    roofline: Vec<Option<WorkRoofline>>,
    reads_half: Vec<bool>,
    steps: Vec<Nanos>,
    marks: &'a [Option<Mark>],
    kinds: Vec<KernelKind>,
    /// Host time of each part of the run as a share of what was recorded: that of the plain run.
    pace: BTreeMap<Scope, f64>,
    /// Unchanged replays of the traced pass and of the plain run.
    unchanged: [OnceCell<Outcome>; 2],
}

/// Whose host time is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// That of the traced pass.
    Traced,
    /// That of the plain run, where it is known.
    Plain,
}

/// What a replay came to.
#[derive(Debug)]
pub struct Outcome {
    costs: Costs,
    schedule: Schedule,
}

impl<'a> TraceReplay<'a> {
    /// Builds the graph, or says why there is none. The device tells the roofline time of work whose shapes are recorded.
    pub(crate) fn new(
        placed: &PlacedTimeline<'a>,
        hardware: Option<&Hardware>,
        marks: &'a [Option<Mark>],
    ) -> Result<Self, Refusal> {
        let (timeline, attribution) = (placed.timeline, placed.attribution);
        let partition = Partition::new(timeline, attribution);
        let walls: Vec<Wall> = partition
            .stages
            .iter()
            .map(|stage| Wall { scope: stage.stage, span: stage.wall, behind: stage.behind })
            .collect();
        let graph = Graph::new(timeline, attribution, &in_order(&walls))?;
        let mut steps: Vec<Nanos> = attribution.steps.iter().map(|step| step.host.start).collect();
        steps.extend(attribution.stages.iter().map(|stage| stage.host.start));
        steps.sort_unstable();
        Ok(Self {
            timeline,
            graph,
            walls,
            scopes: partition.scopes,
            roofline: shapes::roofline_of_work(placed, hardware),
            reads_half: reads_half(timeline, attribution),
            steps,
            marks,
            kinds: timeline.names.iter().map(|(_, name)| kernel::classify(name)).collect(),
            pace: BTreeMap::new(),
            unchanged: Default::default(),
        })
    }

    /// Makes the plain run the basis, given what one instance of each part takes in it: host time is scaled, part by part,
    /// until the replay takes as long. A part that took longer without the profiler stays as it is.
    pub(crate) fn set_plain(&mut self, plain: &BTreeMap<Scope, Nanos>) {
        /// Halvings of the interval in which the factor lies.
        const HALVINGS: usize = 14;
        let recorded = self.unchanged(Basis::Traced);
        let of_all =
            plain.iter().map(|(scope, each)| (*scope, Nanos::new(each.get() * self.of(Some(*scope)).count() as i64)));
        let faster: BTreeMap<Scope, Nanos> =
            of_all.filter(|(scope, time)| *time < self.time(recorded, Some(*scope))).collect();
        let mut ends: BTreeMap<Scope, [f64; 2]> = faster.keys().map(|scope| (*scope, [0.0, 1.0])).collect();
        for _ in 0..HALVINGS * usize::from(!ends.is_empty()) {
            self.pace = ends.iter().map(|(scope, [low, high])| (*scope, (low + high) / 2.0)).collect();
            let outcome = self.replay(&[], Bound::Low, Basis::Plain);
            for (scope, ends) in &mut ends {
                let is_longer = self.time(&outcome, Some(*scope)) > faster[scope];
                ends[usize::from(is_longer)] = self.pace[scope];
            }
        }
    }

    /// Whether host time is that of the plain run.
    pub(crate) fn is_plain(&self) -> bool {
        !self.pace.is_empty()
    }

    /// Replays with changes, each in one part of the run or in all of it.
    pub(crate) fn replay(&self, changes: &[(&Change, Option<Scope>)], bound: Bound, basis: Basis) -> Outcome {
        let setting = Setting {
            timeline: self.timeline,
            graph: &self.graph,
            scopes: &self.scopes,
            roofline: &self.roofline,
            reads_half: &self.reads_half,
            steps: &self.steps,
            marks: self.marks,
            kinds: &self.kinds,
        };
        let mut costs = Costs::recorded(&self.graph);
        for (scope, share) in self.pace.iter().filter(|_| basis == Basis::Plain) {
            Change::Host(1.0 / share).apply(&setting, &mut costs, Some(*scope), bound);
        }
        for (change, scope) in changes {
            change.apply(&setting, &mut costs, *scope, bound);
        }
        let schedule = Schedule::new(&self.graph, &costs);
        Outcome { costs, schedule }
    }

    /// The replay without changes.
    pub(crate) fn unchanged(&self, basis: Basis) -> &Outcome {
        self.unchanged[usize::from(basis == Basis::Plain)].get_or_init(|| self.replay(&[], Bound::Low, basis))
    }

    /// Recorded time of a part of the run, or of all that is meant.
    pub(crate) fn recorded(&self, scope: Option<Scope>) -> Nanos {
        self.of(scope).map(|wall| wall.span.length() - wall.behind).sum()
    }

    /// The same in a replay.
    pub(crate) fn time(&self, outcome: &Outcome, scope: Option<Scope>) -> Nanos {
        let spans: Vec<Span> = self.of(scope).map(|wall| wall.span).collect();
        let behind: Nanos = self.of(scope).map(|wall| wall.behind).sum();
        let least = clock::busy(&self.graph, &outcome.schedule, &spans);
        (clock::total(&self.graph, &outcome.schedule, &spans) - behind).max(least)
    }

    /// The critical path of a replay, longest first.
    pub(crate) fn critical_path(&self, outcome: &Outcome) -> BTreeMap<PathCause, Nanos> {
        let ends: Vec<Nanos> = self.walls.iter().flat_map(|wall| [wall.span.start, wall.span.end]).collect();
        let ends = clock::moments(&self.graph, &outcome.schedule, &ends);
        let within = Spans::union(ends.chunks_exact(2).map(|pair| Span::new(pair[0], pair[1])));
        let mut causes = path::causes(self.timeline, &self.graph, &outcome.costs, &outcome.schedule, &within);
        // Waiting behind work that the trace does not hold is no part of the time: it is delay of what waited, or the host's.
        let mut behind: Nanos = self.walls.iter().map(|wall| wall.behind).sum();
        let hosts = IdleCause::ALL.into_iter().filter(|cause| *cause != IdleCause::Queued);
        for cause in [IdleCause::Queued].into_iter().chain(hosts) {
            let Some(time) = causes.get_mut(&PathCause::Host(cause)) else { continue };
            let taken = behind.min(*time);
            (*time, behind) = (*time - taken, behind - taken);
        }
        causes.retain(|_, time| *time > Nanos::ZERO);
        causes
    }

    /// The timeline as the replay has it: work that is not done is gone.
    pub(crate) fn timeline(&self, outcome: &Outcome) -> Timeline {
        let mut timeline = self.timeline.clone();
        let Outcome { costs, schedule } = outcome;
        let mut moments: Vec<Nanos> = Vec::new();
        for range in &timeline.ranges {
            moments.extend([range.start, range.end.unwrap_or(range.start)]);
        }
        moments.extend(timeline.operators.iter().flat_map(|operator| [operator.start, operator.end()]));
        moments.extend(timeline.calls.iter().flat_map(|call| [call.start, call.end()]));
        let moments = clock::moments(&self.graph, schedule, &moments);
        let mut pairs = moments.chunks_exact(2).map(|pair| Span::new(pair[0], pair[1]));
        for (range, span) in timeline.ranges.iter_mut().zip(pairs.by_ref()) {
            range.start = span.start;
            range.end = range.end.map(|_| span.end);
        }
        for (operator, span) in timeline.operators.iter_mut().zip(pairs.by_ref()) {
            (operator.start, operator.duration) = (span.start, span.length());
        }
        for (call, span) in timeline.calls.iter_mut().zip(pairs) {
            (call.start, call.duration) = (span.start, span.length());
        }
        for (node, span) in self.graph.calls.iter().zip(&schedule.calls) {
            let call = &mut timeline.calls[node.row as usize];
            (call.start, call.duration) = (span.start, span.length());
        }
        for (work, span) in timeline.work.iter_mut().zip(&schedule.work) {
            (work.start, work.duration) = (span.start, span.length());
        }
        let mut parts = costs.part.iter();
        timeline.work.retain(|_| parts.next().is_none_or(|part| *part != Part::Gone));
        timeline
    }

    /// Share of the time of kernels whose roofline time is known.
    pub(crate) fn roofline_known(&self) -> Option<f64> {
        let sum = |known: bool| -> Nanos {
            let rows = self.graph.work.iter().zip(&self.roofline).filter(|(_, roofline)| !known || roofline.is_some());
            rows.map(|(work, _)| work.span.length()).sum()
        };
        crate::statistics::share(sum(true).get() as f64, sum(false).get() as f64)
    }

    /// Whether any call was recorded that waits for the device; older profilers leave them out.
    pub(crate) fn shows_waits(&self) -> bool {
        self.graph.calls.iter().any(|call| call.kind == Some(IdleCause::Synchronising))
    }

    /// Share of the device work that CUDA graphs launch already; absent where there is none.
    pub(crate) fn graph_share(&self) -> Option<f64> {
        let is_graph: Vec<bool> = self.timeline.names.iter().map(|(_, name)| launches_graph(name)).collect();
        let from_graph = |work: &&WorkNode| {
            let call = work.launch.map(|launch| self.graph.calls[launch.node.index()].row);
            call.is_some_and(|row| is_graph[self.timeline.calls[row as usize].name.index()])
        };
        let time = |work: &WorkNode| work.span.length();
        let all: Nanos = self.graph.work.iter().map(time).sum();
        let graphs: Nanos = self.graph.work.iter().filter(from_graph).map(time).sum();
        crate::statistics::share(graphs.get() as f64, all.get() as f64).filter(|share| *share > 0.0)
    }

    /// Whether it has communication.
    pub(crate) fn communicates(&self) -> bool {
        let is_collective = |work: &types::timeline::DeviceWork| {
            work.kind == WorkKind::Kernel && self.kinds[work.name.index()].family == Family::Communication
        };
        self.timeline.work.iter().any(is_collective)
    }

    fn of(&self, scope: Option<Scope>) -> impl Iterator<Item = &Wall> {
        self.walls.iter().filter(move |wall| scope.is_none_or(|scope| wall.scope == scope))
    }
}

/// Spans by their start, each cut where the next one starts.
fn in_order(walls: &[Wall]) -> Vec<(Span, Scope)> {
    let mut spans: Vec<(Span, Scope)> = walls.iter().map(|wall| (wall.span, wall.scope)).collect();
    spans.sort_by_key(|(span, _)| (span.start, span.end));
    for place in 1..spans.len() {
        let next = spans[place].0.start;
        spans[place - 1].0.end = spans[place - 1].0.end.min(next);
    }
    spans
}
