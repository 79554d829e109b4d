//! What every node costs and how far it stands behind those before it: what changes edit before a replay.

use types::Nanos;

use super::graph::Graph;
use super::node::Behind;

/// How a piece of work takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// As recorded.
    Kept,
    /// It runs, one behind the other, and nothing waits for it.
    Beside,
    /// It is not done, and not launched.
    Gone,
}

/// Costs of one replay, one entry for each node of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    /// Per call: time of the host before it.
    pub(crate) gap: Vec<Nanos>,
    /// Per call: time in it where it waits for nothing.
    pub(crate) own: Vec<Nanos>,
    /// Per call: whether it still waits for what it waited for.
    pub(crate) waits: Vec<bool>,
    /// Per work: time on the device.
    pub(crate) run: Vec<Nanos>,
    /// Per work: shortest time after the start of its launch.
    pub(crate) launch: Vec<Nanos>,
    /// Per work: shortest time after the work before it in its queue.
    pub(crate) stream: Vec<Nanos>,
    /// Per work: shortest time after the work of another queue that it waited for.
    pub(crate) event: Vec<Nanos>,
    /// Per work: how it takes part.
    pub(crate) part: Vec<Part>,
}

impl Costs {
    /// As recorded.
    pub(crate) fn recorded(graph: &Graph) -> Self {
        let lag = |behind: Option<Behind>| behind.map_or(Nanos::ZERO, |behind| behind.lag);
        Self {
            gap: graph.calls.iter().map(|call| call.gap).collect(),
            own: graph.calls.iter().map(|call| call.own).collect(),
            waits: vec![true; graph.calls.len()],
            run: graph.work.iter().map(|work| work.span.length()).collect(),
            launch: graph.work.iter().map(|work| lag(work.launch)).collect(),
            stream: graph.work.iter().map(|work| lag(work.stream)).collect(),
            event: graph.work.iter().map(|work| lag(work.event)).collect(),
            part: vec![Part::Kept; graph.work.len()],
        }
    }

    /// Takes a piece of work out, with the call that launched it and nothing else.
    pub(super) fn remove(&mut self, graph: &Graph, row: usize) {
        self.run[row] = Nanos::ZERO;
        self.stream[row] = self.stream[row].min(Nanos::ZERO);
        self.event[row] = self.event[row].min(Nanos::ZERO);
        self.part[row] = Part::Gone;
        if let Some(launch) = graph.work[row].launch
            && graph.calls[launch.node.index()].launched == 1
        {
            self.own[launch.node.index()] = Nanos::ZERO;
            self.waits[launch.node.index()] = false;
        }
    }
}

/// A time, times a factor.
pub(super) fn scaled(time: Nanos, factor: f64) -> Nanos {
    Nanos::new((time.get() as f64 * factor).round() as i64)
}
