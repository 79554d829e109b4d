//! Ranges inside the capture of a CUDA graph.
//!
//! Kernels of a graph are launched together, so the ranges around the launch cannot tell them apart. What can are the ranges
//! that were open when each node was made. Instantiating a graph copies its nodes, so a node that runs is followed back to
//! the one that was captured. Only ranges inside the capture count for it: what is around it, such as a warm-up, was open by
//! chance. Sources do not say when a capture started, but what lies around it encloses every node of the graph and is still
//! open when the graph is instantiated, while ranges inside have closed by then. Where nothing shows the instantiation, a
//! range around all nodes is taken to be around the capture, because it tells no two of them apart.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZeroU64;

use types::Nanos;
use types::timeline::{CapturedRange, CapturedRangeId, GraphNode, Range, RangeStyle, ThreadId, Timeline};

/// A node may be the copy of a copy, when a graph is cloned or becomes part of another. No program goes this far.
const MOST_COPIES: usize = 16;
/// Ranges kept around a node, the innermost ones. More is a damaged file.
const DEEPEST: usize = 64;

/// A node of a graph was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeCreation {
    /// Its number, unique within the process. The upper half is the number of its graph.
    pub(crate) node: NonZeroU64,
    /// The one it is a copy of.
    pub(crate) original: Option<NonZeroU64>,
    /// Who made it.
    pub(crate) thread: ThreadId,
    /// When.
    pub(crate) time: Nanos,
}

/// The nodes of one graph that are no copies.
#[derive(Clone, Copy, Debug)]
struct Graph {
    first: Nanos,
    last: Nanos,
    /// When one of them was first copied.
    instantiated: Option<Nanos>,
}

impl Graph {
    /// Whether a range that was open around one of the nodes lies inside the capture.
    fn holds(&self, range: &Range) -> bool {
        let encloses = range.start <= self.first && range.end.is_none_or(|end| self.last < end);
        !encloses || range.end.zip(self.instantiated).is_some_and(|(end, instantiated)| end <= instantiated)
    }
}

/// Adds to a timeline the captured ranges of a process, and its nodes inside of them. `ranges` are all that the process
/// opened.
pub(crate) fn add(timeline: &mut Timeline, process: Option<u32>, made: &[NodeCreation], ranges: &[Range]) {
    let nodes = distinct(made);
    let mut graphs: HashMap<u64, Graph> = HashMap::new();
    for node in nodes.values().filter(|node| node.original.is_none()) {
        let time = node.time;
        let graph = graphs.entry(graph(node)).or_insert(Graph { first: time, last: time, instantiated: None });
        (graph.first, graph.last) = (graph.first.min(time), graph.last.max(time));
    }
    for copy in nodes.values() {
        let Some(graph) = copy.original.and_then(|original| graphs.get_mut(&(original.get() >> 32))) else { continue };
        graph.instantiated = Some(graph.instantiated.map_or(copy.time, |earlier| earlier.min(copy.time)));
    }
    let mut captured: Vec<&NodeCreation> = nodes.values().filter(|node| node.original.is_none()).collect();
    captured.sort_unstable_by_key(|node| (node.thread, node.time, node.node));
    let nesting = Nesting::new(ranges, &captured);
    let mut known: HashMap<(u64, u32), CapturedRangeId> = HashMap::new();
    let mut of_node: HashMap<NonZeroU64, CapturedRangeId> = HashMap::new();
    for (node, innermost) in captured.iter().zip(&nesting.innermost) {
        let number = graph(node);
        let mut around = *innermost;
        let mut parent = None;
        let mut path = Vec::new();
        while let Some(place) = around.filter(|_| path.len() < DEEPEST) {
            parent = known.get(&(number, place)).copied();
            if parent.is_some() || !graphs[&number].holds(&ranges[place as usize]) {
                break;
            }
            path.push(place);
            around = nesting.parent[place as usize];
        }
        for place in path.into_iter().rev() {
            let Range { name, domain, .. } = ranges[place as usize];
            let id = CapturedRangeId(timeline.captured_ranges.len() as u32);
            timeline.captured_ranges.push(CapturedRange { name, domain, parent });
            known.insert((number, place), id);
            parent = Some(id);
        }
        of_node.extend(parent.map(|range| (node.node, range)));
    }
    let range = |node: &NodeCreation| of_node.get(&original(&nodes, node)?).copied();
    let rows = nodes.values().filter_map(|node| Some(GraphNode { process, node: node.node, range: range(node)? }));
    let first = timeline.graph_nodes.len();
    timeline.graph_nodes.extend(rows);
    timeline.graph_nodes[first..].sort_unstable_by_key(|row| row.node);
}

fn graph(node: &NodeCreation) -> u64 {
    node.node.get() >> 32
}

/// Nodes by their numbers. A copy is told of twice, as made and as copied: it is a copy, since the first of the two.
fn distinct(made: &[NodeCreation]) -> HashMap<NonZeroU64, NodeCreation> {
    let mut nodes: HashMap<NonZeroU64, NodeCreation> = HashMap::new();
    for node in made {
        let known = nodes.entry(node.node).or_insert(*node);
        known.original = known.original.or(node.original);
    }
    nodes
}

/// The node that was captured; `None` where its making is not known.
fn original(nodes: &HashMap<NonZeroU64, NodeCreation>, node: &NodeCreation) -> Option<NonZeroU64> {
    let mut node = node;
    for _ in 0..MOST_COPIES {
        match node.original {
            Some(original) => node = nodes.get(&original)?,
            None => return Some(node.node),
        }
    }
    None
}

/// How pushed ranges lie in one another, and nodes in them.
struct Nesting {
    /// Per range: the one around it.
    parent: Vec<Option<u32>>,
    /// Per node: the innermost range.
    innermost: Vec<Option<u32>>,
}

impl Nesting {
    /// `nodes` are in order of thread and time.
    fn new(ranges: &[Range], nodes: &[&NodeCreation]) -> Self {
        let end = |place: u32| ranges[place as usize].end.unwrap_or(Nanos::new(Timeline::LARGEST_TIME));
        let begin = |place: u32| (ranges[place as usize].thread, ranges[place as usize].start);
        let pushed = (0..ranges.len() as u32).filter(|place| ranges[*place as usize].style == RangeStyle::PushPop);
        let mut order: Vec<u32> = pushed.collect();
        order.sort_by_key(|place| (begin(*place), Reverse(end(*place))));
        let mut order = order.into_iter().peekable();
        let mut nesting = Self { parent: vec![None; ranges.len()], innermost: Vec::with_capacity(nodes.len()) };
        let mut open: Vec<u32> = Vec::new();
        for node in nodes {
            let moment = (node.thread, node.time);
            while let Some(place) = order.next_if(|place| begin(*place) <= moment) {
                let (thread, start) = begin(place);
                // Of two that cross, the one opened last covers all that is left of the other.
                let is_past = |other: u32| begin(other).0 != thread || end(other) <= start || end(other) < end(place);
                while open.pop_if(|other| is_past(*other)).is_some() {}
                nesting.parent[place as usize] = open.last().copied();
                open.push(place);
            }
            while open.pop_if(|other| begin(*other).0 != node.thread || end(*other) <= node.time).is_some() {}
            nesting.innermost.push(open.last().copied());
        }
        nesting
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::timeline::TraceFormat;
    use types::{Clock, ClockId, ClockKind};

    use super::*;

    const GRAPH: u64 = 1 << 32;
    const INSTANCE: u64 = 2 << 32;

    fn made(node: u64, original: u64, time: i64) -> NodeCreation {
        let node = NonZeroU64::new(node).unwrap();
        NodeCreation { node, original: NonZeroU64::new(original), thread: ThreadId(0), time: Nanos::new(time) }
    }

    /// Path of captured ranges by node, of nodes that have any.
    fn paths(nodes: &[NodeCreation], opened: &[(&str, i64, Option<i64>)]) -> Vec<(u64, String)> {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::Wire, clock);
        let range = |(name, start, end): &(&str, i64, Option<i64>)| Range {
            style: RangeStyle::PushPop,
            name: timeline.names.place(*name),
            domain: None,
            thread: ThreadId(0),
            start: Nanos::new(*start),
            end: end.map(Nanos::new),
        };
        let ranges: Vec<_> = opened.iter().map(range).collect();
        add(&mut timeline, Some(7), nodes, &ranges);
        let path = |row: &GraphNode| {
            let mut names = Vec::new();
            let mut around = Some(row.range);
            while let Some(id) = around {
                let range = &timeline.captured_ranges[id.0 as usize];
                names.insert(0, timeline.name(range.name));
                around = range.parent;
            }
            (row.node.get(), names.join("/"))
        };
        timeline.graph_nodes.iter().map(path).collect()
    }

    /// Nodes 0 to 3 at 10, 20, 30 and 40, and at 60 their copies, each told of twice.
    fn captured_and_instantiated() -> Vec<NodeCreation> {
        let captured = (0..4).map(|place| made(GRAPH + place, 0, 10 + 10 * place as i64));
        let copies = (0..4).flat_map(|place| {
            let node = INSTANCE + place;
            [made(node, 0, 60 + place as i64), made(node, GRAPH + place, 60 + place as i64)]
        });
        captured.chain(copies).collect()
    }

    fn of_instance(rows: Vec<(u64, String)>) -> Vec<(u64, String)> {
        rows.into_iter().filter(|(node, _)| *node >= INSTANCE).map(|(node, path)| (node - INSTANCE, path)).collect()
    }

    fn expected(rows: &[(u64, &str)]) -> Vec<(u64, String)> {
        rows.iter().map(|(node, path)| (*node, (*path).to_owned())).collect()
    }

    #[test]
    fn a_copy_has_the_ranges_its_original_was_captured_in() {
        let ranges = [("capture", 0, Some(90)), ("layer_0", 15, Some(35)), ("mlp", 25, Some(35))];
        let found = of_instance(paths(&captured_and_instantiated(), &ranges));
        assert_eq!(found, expected(&[(1, "layer_0"), (2, "layer_0/mlp")]));
    }

    #[test]
    fn ranges_around_the_capture_are_left_out_and_one_around_the_whole_model_is_not() {
        let around = [("warmup", -9, None), ("decode_step", -5, Some(99)), ("model", 5, Some(50))];
        let found = of_instance(paths(&captured_and_instantiated(), &around));
        assert_eq!(found, expected(&[(0, "model"), (1, "model"), (2, "model"), (3, "model")]));
    }

    #[test]
    fn without_an_instantiation_a_range_around_all_nodes_is_around_the_capture() {
        let captured = &captured_and_instantiated()[..4];
        let found = paths(captured, &[("model", 5, Some(50)), ("layer_0", 5, Some(25))]);
        assert_eq!(found, expected(&[(GRAPH, "layer_0"), (GRAPH + 1, "layer_0")]));
    }

    #[test]
    fn a_node_whose_original_was_not_seen_has_no_ranges() {
        let copies = [made(INSTANCE, GRAPH, 60), made(INSTANCE + 1, GRAPH + 1, 61)];
        assert_eq!(paths(&copies, &[("replay", 60, Some(61))]), []);
    }

    #[test]
    fn copies_in_a_circle_have_no_ranges() {
        let circle = [made(GRAPH, INSTANCE, 10), made(INSTANCE, GRAPH, 20), made(3, 3, 30)];
        assert_eq!(paths(&circle, &[("a", 15, Some(25))]), []);
    }

    #[test]
    fn each_graph_is_held_against_its_own_nodes() {
        // `second` encloses all nodes of the second graph, and none of the first.
        let nodes = [made(GRAPH, 0, 10), made(GRAPH + 1, 0, 20), made(INSTANCE, 0, 30), made(INSTANCE + 1, 0, 40)];
        let found = paths(&nodes, &[("first", 5, Some(15)), ("second", 25, Some(45)), ("late", 35, Some(45))]);
        assert_eq!(found, expected(&[(GRAPH, "first"), (INSTANCE + 1, "late")]));
    }

    proptest! {
        #[test]
        fn whatever_a_file_says_paths_come_to_an_end(
            nodes in proptest::collection::vec((0..12u64, 0..12u64, 0..40i64), 0..30),
            ranges in proptest::collection::vec((0..40i64, proptest::option::of(0..20i64)), 0..20),
        ) {
            // Some numbers of two graphs, so that originals, copies of copies and circles all occur.
            let number = |number: u64| if number == 0 { 0 } else { ((number % 3) << 32) + number };
            let nodes: Vec<_> = nodes.iter().filter(|(node, ..)| *node > 0)
                .map(|(node, original, time)| made(number(*node), number(*original), *time)).collect();
            let ranges: Vec<_> = ranges.iter().map(|(start, length)| ("r", *start, length.map(|length| start + length))).collect();
            for (node, path) in paths(&nodes, &ranges) {
                prop_assert!(nodes.iter().any(|made| made.node.get() == node));
                prop_assert!(!path.is_empty() && path.split('/').count() <= ranges.len());
            }
        }
    }
}
