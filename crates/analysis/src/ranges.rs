//! Ranges summed up by where they are nested: how often each was entered, and the kernels launched inside.
//!
//! Ranges inside the capture of a CUDA graph count as if every launch of the graph opened them again.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use types::timeline::{CapturedRangeId, NameId, RangeStyle, Timeline, WorkKind};
use types::{DeviceId, Nanos, QualityCounter, RegionSummary, Severity};

use crate::attribution::{RangeIndex, graph};
use crate::evidence::PlacedTimeline;

/// Regions kept. A program may number its ranges, and then each is a region of its own.
const MOST: usize = 10_000;

/// Bytes that the paths of the regions kept have together. Every region states its whole path, so ranges that are pushed and
/// never popped would cost the square of their number; ten thousand paths of ordinary programs take a tenth of this.
const MOST_TEXT: usize = 8 << 20;

/// Stands for "no region" among the places below.
const NONE: u32 = u32::MAX;

/// A region: ranges of one name, nested alike, in one process.
struct Node {
    parent: u32,
    name: NameId,
    domain: Option<NameId>,
    process: Option<u32>,
    instances: u64,
    kernels: Vec<Kernels>,
}

/// Kernels of a region on one device.
#[derive(Clone, Copy, Default)]
struct Kernels {
    device: u32,
    /// Launched here.
    own: Amount,
    /// Launched here or further inside.
    inclusive: Amount,
    /// Of the inclusive ones, those that are here by a captured range.
    captured: u64,
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

impl Node {
    fn on(&mut self, device: u32) -> &mut Kernels {
        let place = self.kernels.iter().position(|kernels| kernels.device == device).unwrap_or_else(|| {
            self.kernels.push(Kernels { device, ..Kernels::default() });
            self.kernels.len() - 1
        });
        &mut self.kernels[place]
    }
}

/// Regions while they are found. Each stands behind the one it is nested in.
#[derive(Default)]
struct Regions {
    nodes: Vec<Node>,
    known: HashMap<Place, u32>,
}

/// What makes a region: the one around it, its name, domain and process.
type Place = (u32, NameId, Option<NameId>, Option<u32>);

impl Regions {
    /// The region of a name inside another, which is added where it is new.
    fn inside(&mut self, parent: u32, name: NameId, domain: Option<NameId>, process: Option<u32>) -> u32 {
        *self.known.entry((parent, name, domain, process)).or_insert_with(|| {
            self.nodes.push(Node { parent, name, domain, process, instances: 0, kernels: Vec::new() });
            (self.nodes.len() - 1) as u32
        })
    }
}

/// Every region by kernel time, and a counter where there are more than are kept.
pub(crate) fn summaries(timelines: &[PlacedTimeline<'_>]) -> (Vec<RegionSummary>, Option<QualityCounter>) {
    let (mut regions, mut left_out) = (Vec::new(), 0);
    for placed in timelines {
        let (rows, more) = of_timeline(placed);
        regions.extend(rows);
        left_out += more as u64;
    }
    regions.sort_by_key(|region| Reverse((region.total_ns_inclusive, Reverse(region.segments.len()))));
    let all = regions.len() as u64 + left_out;
    let counter = QualityCounter::some("regions_left_out", Severity::Info, left_out);
    (regions, counter.map(|counter| counter.of(all)))
}

/// The regions of a timeline with the most kernel time, and how many more there are.
fn of_timeline(placed: &PlacedTimeline<'_>) -> (Vec<RegionSummary>, usize) {
    let PlacedTimeline { timeline, attribution, .. } = placed;
    let mut regions = Regions::default();
    let of_range = assign(placed, &mut regions);
    let mut captured = Captured::default();
    for (place, work) in timeline.work.iter().enumerate() {
        if !matches!(work.kind, WorkKind::Kernel | WorkKind::Graph) {
            continue;
        }
        let around = attribution.range[place].map_or(NONE, |range| of_range[range.0 as usize]);
        let region = captured.region(placed, &mut regions, place, around);
        let device = timeline.queues[work.queue.0 as usize].device;
        if let Some(node) = regions.nodes.get_mut(region as usize) {
            node.on(device).own.add(Amount { count: 1, time: work.duration });
        }
        let mut inside = region;
        while inside != around {
            let node = &mut regions.nodes[inside as usize];
            node.on(device).captured += 1;
            inside = node.parent;
        }
    }
    let mut nodes = regions.nodes;
    // Regions come after the one they are nested in, so that what is inside is complete when it is handed on.
    for place in (0..nodes.len()).rev() {
        let parent = nodes[place].parent;
        for index in 0..nodes[place].kernels.len() {
            let kernels = &mut nodes[place].kernels[index];
            kernels.inclusive.add(kernels.own);
            let (device, all) = (kernels.device, kernels.inclusive);
            if parent != NONE {
                nodes[parent as usize].on(device).inclusive.add(all);
            }
        }
    }
    let time = |id: &u32| -> Nanos { nodes[*id as usize].kernels.iter().map(|kernels| kernels.inclusive.time).sum() };
    let mut ids: Vec<u32> = (0..nodes.len() as u32).collect();
    ids.sort_by_cached_key(|id| Reverse(time(id)));
    let lengths = path_lengths(timeline, &nodes);
    let mut text = 0;
    let fits = |id: &&u32| {
        text += lengths[**id as usize];
        text <= MOST_TEXT
    };
    let kept = ids.iter().take(MOST).take_while(fits).count();
    let left_out = ids.len() - kept;
    ids.truncate(kept);
    (ids.into_iter().flat_map(|id| rows(placed, &nodes, id)).collect(), left_out)
}

/// Bytes of every region's path.
fn path_lengths(timeline: &Timeline, nodes: &[Node]) -> Vec<usize> {
    let mut lengths: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let around = lengths.get(node.parent as usize).map_or(0, |around| around + "::".len());
        lengths.push(around + timeline.name(node.name).len());
    }
    lengths
}

/// The region of every pushed range, by its place in the timeline.
fn assign(placed: &PlacedTimeline<'_>, regions: &mut Regions) -> Vec<u32> {
    let timeline = placed.timeline;
    let mut of_range = vec![NONE; timeline.ranges.len()];
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
            parent = regions.inside(parent, range.name, range.domain, process);
            regions.nodes[parent as usize].instances += 1;
            of_range[index.0 as usize] = parent;
        }
    }
    of_range
}

/// Captured ranges as regions inside those of the launch.
#[derive(Default)]
struct Captured {
    /// The region of a captured range, inside that of a launch.
    known: HashMap<(u32, CapturedRangeId), u32>,
    /// Captured ranges that a launch was seen to enter.
    entered: HashSet<(u32, CapturedRangeId)>,
}

impl Captured {
    /// The region of a kernel, copy or memset, whose launch is in the region `around`.
    fn region(&mut self, placed: &PlacedTimeline<'_>, regions: &mut Regions, work: usize, around: u32) -> u32 {
        let PlacedTimeline { timeline, attribution, .. } = placed;
        let (Some(innermost), Some(launch)) = (attribution.captured[work], attribution.launch[work]) else {
            return around;
        };
        if let Some(region) =
            self.known.get(&(around, innermost)).filter(|_| self.entered.contains(&(launch, innermost)))
        {
            return *region;
        }
        let process = timeline.threads[timeline.calls[launch as usize].thread.0 as usize].process;
        let mut region = around;
        let mut path: Vec<_> = graph::with_parents(timeline, innermost).collect();
        while let Some((id, range)) = path.pop() {
            region = regions.inside(region, range.name, range.domain, process);
            regions.nodes[region as usize].instances += u64::from(self.entered.insert((launch, id)));
            self.known.insert((around, id), region);
        }
        region
    }
}

/// One row for each device, or one without where nothing was launched.
fn rows(placed: &PlacedTimeline<'_>, nodes: &[Node], id: u32) -> Vec<RegionSummary> {
    let timeline = placed.timeline;
    let node = &nodes[id as usize];
    let segments = segments(timeline, nodes, id);
    let row = |device: Option<DeviceId>, kernels: Kernels| RegionSummary {
        path: path(timeline, node, &segments),
        domain: node.domain.map(|domain| timeline.name(domain).to_owned()),
        process: node.process,
        device,
        parent: nodes.get(node.parent as usize).map(|parent| path(timeline, parent, &segments[..segments.len() - 1])),
        segments: segments.clone(),
        instances: node.instances,
        instances_exact: true,
        kernels_inclusive: Some(kernels.inclusive.count),
        kernels_exclusive: Some(kernels.own.count),
        kernels_captured: kernels.captured,
        total_ns_inclusive: Some(kernels.inclusive.time),
        total_ns_exclusive: Some(kernels.own.time),
        metrics: Default::default(),
    };
    if node.kernels.is_empty() {
        return vec![row(None, Kernels::default())];
    }
    node.kernels.iter().map(|kernels| row(Some(placed.device(kernels.device)), *kernels)).collect()
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
