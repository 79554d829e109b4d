//! Ranges summed up by where they are nested: how often each was entered, and the kernels launched inside.

use std::cmp::Reverse;

use types::timeline::{NameId, RangeStyle, Timeline, WorkKind};
use types::{DeviceId, Nanos, QualityCounter, RegionSummary, Severity};

use super::PlacedTimeline;
use crate::attribution::RangeIndex;
use crate::statistics::share;

/// Regions kept. A program may number its ranges, and then each is a region of its own.
const MOST: usize = 10_000;

/// Stands for "no region" among the places below.
const NONE: u32 = u32::MAX;

/// A region: ranges of one name, nested alike, in one process.
struct Node {
    parent: u32,
    name: NameId,
    domain: Option<NameId>,
    process: Option<u32>,
    instances: u64,
    /// Kernels by device: launched here, and here or further inside.
    kernels: Vec<(u32, Amount, Amount)>,
}

#[derive(Clone, Copy, Default)]
struct Amount {
    count: u64,
    time: Nanos,
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.time += other.time;
    }
}

/// Every region by kernel time, and a counter where there are more than are kept.
pub(super) fn summaries(timelines: &[PlacedTimeline<'_>]) -> (Vec<RegionSummary>, Option<QualityCounter>) {
    let (mut regions, mut left_out) = (Vec::new(), 0);
    for placed in timelines {
        let (rows, more) = of_timeline(placed);
        regions.extend(rows);
        left_out += more as u64;
    }
    regions.sort_by_key(|region| Reverse((region.total_ns_inclusive, Reverse(region.segments.len()))));
    let all = regions.len() as u64 + left_out;
    let counter = (left_out > 0).then(|| QualityCounter {
        counter: "regions_left_out".to_owned(),
        value: left_out,
        share: share(left_out as f64, all as f64),
        severity: Severity::Info,
        remedy: "the regions with the most kernel time are kept; ranges whose names do not count up are fewer"
            .to_owned(),
    });
    (regions, counter)
}

/// The regions of a timeline with the most kernel time, and how many more there are.
fn of_timeline(placed: &PlacedTimeline<'_>) -> (Vec<RegionSummary>, usize) {
    let PlacedTimeline { timeline, attribution, .. } = placed;
    let mut nodes: Vec<Node> = Vec::new();
    let of_range = assign(placed, &mut nodes);
    for (work, range) in timeline.work.iter().zip(&attribution.range) {
        let Some(range) = range.filter(|_| matches!(work.kind, WorkKind::Kernel | WorkKind::Graph)) else { continue };
        let device = timeline.queues[work.queue.0 as usize].device;
        let one = Amount { count: 1, time: work.duration };
        of_device(&mut nodes[of_range[range.0 as usize] as usize], device).0.add(one);
    }
    // Regions come after the one they are nested in, so that what is inside is complete when it is handed on.
    for place in (0..nodes.len()).rev() {
        let parent = nodes[place].parent;
        for index in 0..nodes[place].kernels.len() {
            let (device, own, inside) = nodes[place].kernels[index];
            let mut all = own;
            all.add(inside);
            nodes[place].kernels[index].2 = all;
            if parent != NONE {
                of_device(&mut nodes[parent as usize], device).1.add(all);
            }
        }
    }
    let time = |id: &u32| -> Nanos { nodes[*id as usize].kernels.iter().map(|(_, _, all)| all.time).sum() };
    let mut ids: Vec<u32> = (0..nodes.len() as u32).collect();
    ids.sort_by_cached_key(|id| Reverse(time(id)));
    let left_out = ids.len().saturating_sub(MOST);
    ids.truncate(MOST);
    (ids.into_iter().flat_map(|id| rows(placed, &nodes, id)).collect(), left_out)
}

/// The region of every pushed range, by its place in the timeline; new ones are added to `nodes`.
fn assign(placed: &PlacedTimeline<'_>, nodes: &mut Vec<Node>) -> Vec<u32> {
    let timeline = placed.timeline;
    let mut of_range = vec![NONE; timeline.ranges.len()];
    // Regions of each name. The one looked for is most often the last that was found.
    let mut of_name: Vec<Vec<u32>> = vec![Vec::new(); timeline.names.len()];
    let mut path = Vec::new();
    for (place, range) in timeline.ranges.iter().enumerate() {
        if range.style != RangeStyle::PushPop {
            continue;
        }
        // Ranges around this one may come later in the file.
        let mut around = Some(RangeIndex(place as u32));
        while let Some(index) = around.filter(|index| of_range[index.0 as usize] == NONE) {
            path.push(index);
            around = placed.attribution.projections.parent(index);
        }
        let mut parent = around.map_or(NONE, |index| of_range[index.0 as usize]);
        while let Some(index) = path.pop() {
            let range = &timeline.ranges[index.0 as usize];
            let process = timeline.threads[range.thread.0 as usize].process;
            let same = |id: &&u32| {
                let node = &nodes[**id as usize];
                (node.parent, node.domain, node.process) == (parent, range.domain, process)
            };
            let known = of_name[range.name.index()].iter().rev().find(same).copied();
            let id = known.unwrap_or(nodes.len() as u32);
            if known.is_none() {
                of_name[range.name.index()].push(id);
                let (name, domain, kernels) = (range.name, range.domain, Vec::new());
                nodes.push(Node { parent, name, domain, process, instances: 0, kernels });
            }
            nodes[id as usize].instances += 1;
            of_range[index.0 as usize] = id;
            parent = id;
        }
    }
    of_range
}

/// Kernels of a region on a device: its own, and those inside.
fn of_device(node: &mut Node, device: u32) -> (&mut Amount, &mut Amount) {
    let place = node.kernels.iter().position(|(other, ..)| *other == device).unwrap_or_else(|| {
        node.kernels.push((device, Amount::default(), Amount::default()));
        node.kernels.len() - 1
    });
    let (_, own, inside) = &mut node.kernels[place];
    (own, inside)
}

/// One row for each device, or one without where nothing was launched.
fn rows(placed: &PlacedTimeline<'_>, nodes: &[Node], id: u32) -> Vec<RegionSummary> {
    let timeline = placed.timeline;
    let node = &nodes[id as usize];
    let segments = segments(timeline, nodes, id);
    let row = |device: Option<DeviceId>, own: Amount, all: Amount| RegionSummary {
        path: path(timeline, node, &segments),
        domain: node.domain.map(|domain| timeline.name(domain).to_owned()),
        process: node.process,
        device,
        parent: nodes.get(node.parent as usize).map(|parent| path(timeline, parent, &segments[..segments.len() - 1])),
        segments: segments.clone(),
        instances: node.instances,
        instances_exact: true,
        kernels_inclusive: Some(all.count),
        kernels_exclusive: Some(own.count),
        total_ns_inclusive: Some(all.time),
        total_ns_exclusive: Some(own.time),
        metrics: Default::default(),
    };
    if node.kernels.is_empty() {
        return vec![row(None, Amount::default(), Amount::default())];
    }
    node.kernels.iter().map(|(device, own, all)| row(Some(placed.device(*device)), *own, *all)).collect()
}

fn segments(timeline: &Timeline, nodes: &[Node], id: u32) -> Vec<String> {
    let mut names = Vec::new();
    let mut around = nodes.get(id as usize);
    while let Some(node) = around {
        names.push(timeline.name(node.name).to_owned());
        around = nodes.get(node.parent as usize);
    }
    names.reverse();
    names
}

fn path(timeline: &Timeline, node: &Node, segments: &[String]) -> String {
    let domain = node.domain.map(|domain| format!("{}@", timeline.name(domain))).unwrap_or_default();
    domain + &segments.join("::")
}
