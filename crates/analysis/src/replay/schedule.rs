//! The walk: every node starts when the last of those it waits for lets it.

use types::Nanos;

use super::costs::{Costs, Part};
use super::graph::Graph;
use super::node::{Behind, CallNode, Node};
use crate::time::Span;

/// What let work start last.
pub(super) enum Binding {
    /// Its launch.
    Launch(usize),
    /// Other work.
    Work(usize),
}

/// Not known yet.
const UNKNOWN: Nanos = Nanos::new(i64::MIN);

/// When everything happens in a replay. Times are on the clock of the recording, which starts at the same moment.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Per call.
    pub(crate) calls: Vec<Span>,
    /// Per work.
    pub(crate) work: Vec<Span>,
    /// Per work: when those that wait for its end may go on.
    pub(crate) passed: Vec<Nanos>,
}

impl Schedule {
    /// Replays a graph.
    pub(crate) fn new(graph: &Graph, costs: &Costs) -> Self {
        let nothing = Span::new(UNKNOWN, UNKNOWN);
        let mut schedule = Self {
            calls: vec![nothing; graph.calls.len()],
            work: vec![nothing; graph.work.len()],
            passed: vec![UNKNOWN; graph.work.len()],
        };
        // Per queue: where work that runs beside everything else has got to, and when that ended in the recording.
        let mut beside = vec![(graph.span.start, graph.span.start); graph.queues];
        for node in &graph.order {
            match *node {
                Node::Call(place) => {
                    let call = &graph.calls[place as usize];
                    let before = [call.before, call.handed_over].into_iter().flatten();
                    let ready = before.map(|before| schedule.returned(graph, costs, before.index())).max();
                    let start = ready.unwrap_or(graph.span.start) + costs.gap[place as usize];
                    schedule.calls[place as usize].start = start;
                }
                Node::Work(row) => {
                    let row = row as usize;
                    let ready = schedule.ready(graph, costs, row);
                    let (node, before) = (&graph.work[row], beside[graph.work[row].queue as usize]);
                    let waits = costs.part[row] == Part::Beside && before.1 <= node.span.start;
                    let start = if waits { ready.max(before.0) } else { ready };
                    let span = Span::new(start, start + costs.run[row]);
                    schedule.work[row] = span;
                    schedule.passed[row] = match costs.part[row] {
                        Part::Beside => {
                            beside[node.queue as usize] = (span.end, node.span.end);
                            ready
                        }
                        _ => span.end,
                    };
                }
            }
        }
        for place in 0..graph.calls.len() {
            schedule.returned(graph, costs, place);
        }
        schedule
    }

    /// When work may start.
    fn ready(&self, graph: &Graph, costs: &Costs, row: usize) -> Nanos {
        let node = &graph.work[row];
        let is_gone = costs.part[row] == Part::Gone;
        let launch = node.launch.filter(|_| !is_gone).map(|launch| self.calls[launch.node.index()].start);
        let launch = launch.filter(|start| *start != UNKNOWN).map(|start| start + costs.launch[row]);
        let stream = node.stream.map(|stream| self.passed[stream.node.index()]);
        // Work that overlaps the one before it never comes before it.
        let stream = stream.filter(|passed| *passed != UNKNOWN).map(|passed| {
            let begun = node.stream.map_or(passed, |stream| self.work[stream.node.index()].start.min(passed));
            (passed + costs.stream[row]).max(begun)
        });
        let event = node.event.map(|event| self.passed[event.node.index()]);
        let event = event.filter(|passed| *passed != UNKNOWN).map(|passed| passed + costs.event[row]);
        // Work that is not done holds nobody back by itself.
        let first = if is_gone { graph.span.start } else { node.span.start };
        [launch, stream, event].into_iter().flatten().max().unwrap_or(first)
    }

    /// What let work start last.
    pub(super) fn bound(&self, graph: &Graph, costs: &Costs, row: usize) -> Option<Binding> {
        let (node, start) = (&graph.work[row], self.ready(graph, costs, row));
        let passed = |behind: Behind, lag: Nanos| self.passed[behind.node.index()] + lag >= start;
        let stream = node.stream.filter(|stream| passed(*stream, costs.stream[row]));
        let event = node.event.filter(|event| passed(*event, costs.event[row]));
        if let Some(work) = event.or(stream) {
            return Some(Binding::Work(work.node.index()));
        }
        let launch = node.launch.filter(|_| costs.part[row] != Part::Gone);
        let launch = launch.filter(|launch| self.calls[launch.node.index()].start + costs.launch[row] >= start);
        launch
            .map(|launch| Binding::Launch(launch.node.index()))
            .or(node.stream.map(|stream| Binding::Work(stream.node.index())))
    }

    /// When a call returns, which is known as soon as the next one of its thread starts.
    fn returned(&mut self, graph: &Graph, costs: &Costs, place: usize) -> Nanos {
        let Span { start, end } = self.calls[place];
        if end != UNKNOWN {
            return end;
        }
        let node: &CallNode = &graph.calls[place];
        let start = if start == UNKNOWN { node.span.start } else { start };
        let waited = node.wait.filter(|_| costs.waits[place]).and_then(|wait| {
            let work = wait.work.node.index();
            let moment = if wait.until_end { self.passed[work] } else { self.work[work].start };
            let others = graph.waits_for_all.get(&(place as u32)).into_iter().flatten();
            let others = others.map(|work| self.passed[*work as usize]).max().unwrap_or(UNKNOWN);
            let moment = moment.max(others);
            (moment != UNKNOWN).then(|| moment + wait.work.lag)
        });
        let end = (start + costs.own[place]).max(waited.unwrap_or(start));
        self.calls[place] = Span::new(start, end);
        end
    }
}
