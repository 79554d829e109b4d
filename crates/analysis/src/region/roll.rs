//! Pages of a profiler rolled up per region.

use std::collections::HashMap;
use std::rc::Rc;

use types::counter::{CounterTable, DetailedWork, ProfiledKind};
use types::{
    DeviceId, Hardware, MetricRule, Nanos, OutsideRegions, QualityCounter, Region, RegionPart, RegionTotals, Severity,
};

use super::columns::{TIME, chosen, subtracts};
use super::folder::folder_names;
use super::gather::{Gathered, Part, Rows};
use super::include::Include;
use super::instances;
use super::kernels::KernelSelection;
use super::key::RegionKey;
use super::roofline::CountedWork;
use super::survey::{Survey, unfiltered};
use super::totals::{Pages, Row};
use super::tree::{Membership, Memberships, Node, Tree};
use crate::statistics::share;

/// What one run of the profiler gave.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The raw page.
    pub table: &'a CounterTable,
    /// The details page of the same run; empty where no section was asked for.
    pub details: &'a [DetailedWork],
    /// What the profiler was told to include; empty for everything.
    pub include: &'a [String],
}

/// Everything that was captured.
#[derive(Clone, Debug)]
pub struct RegionInputs<'a> {
    /// Runs with the counters that were asked for.
    pub captures: Vec<Captured<'a>>,
    /// A run that saw every kernel of the program; absent where there was none.
    pub survey: Option<&'a CounterTable>,
}

/// What is asked of it.
#[derive(Clone, Copy, Debug)]
pub struct RegionSettings<'a> {
    /// Regions, with those inside; empty for all.
    pub include: &'a [Include],
    /// Regions left out, with those inside; wins over `include`.
    pub exclude: &'a [Include],
    /// Kernels of a region that count.
    pub kernels: &'a KernelSelection,
    /// Metrics.
    pub metrics: &'a [String],
    /// Sections; empty for all that were collected.
    pub sections: &'a [String],
    /// Whether regions have totals over all processes, devices and threads.
    pub aggregate: bool,
    /// The device, for its roofs.
    pub hardware: Option<&'a Hardware>,
}

/// A kernel or a range of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which of the captures.
    pub capture: usize,
    /// Its row there.
    pub row: usize,
    /// The innermost region it is in, of those nested in this one.
    pub innermost: String,
}

/// A region and what it is made of.
#[derive(Clone, Debug)]
pub struct RolledRegion {
    /// The region.
    pub region: Region,
    /// Its kernels or instances, nested regions included, in the order of their launch.
    pub members: Vec<Member>,
}

/// Regions, and what is not in them.
#[derive(Clone, Debug)]
pub struct RolledRegions {
    /// Metrics and their rules.
    pub metrics: Vec<MetricRule>,
    /// Regions, each before those nested in it.
    pub regions: Vec<RolledRegion>,
    /// Kernels of no region; absent where only regions were profiled.
    pub outside: Option<OutsideRegions>,
    /// Kernels of regions that the selection leaves out.
    pub kernels_left_out: u64,
    /// For each include expression, the regions it names.
    pub matched: Vec<Vec<String>>,
    /// Every region that was seen, of whatever name.
    pub seen: Vec<RegionKey>,
    /// What was lost or is uncertain.
    pub quality: Vec<QualityCounter>,
}

/// Regions of a page, each before those nested in it.
pub fn regions_of(table: &CounterTable) -> Vec<RegionKey> {
    let (mut tree, mut memberships) = (Tree::default(), Memberships::default());
    for work in &table.work {
        memberships.of(work, &mut tree);
    }
    tree.ordered().into_iter().map(|node| tree.keys[node].clone()).collect()
}

/// Kernels of a page, and their time where it was measured.
pub fn seen_kernels(table: &CounterTable) -> (u64, Option<Nanos>) {
    let times = (0..table.work.len()).map(|row| table.number(row, TIME)).sum::<Option<f64>>();
    (table.work.len() as u64, times.map(|time| Nanos::new(time.round() as i64)))
}

/// Rolls everything up.
pub fn roll_up(inputs: &RegionInputs<'_>, settings: &RegionSettings<'_>) -> RolledRegions {
    let (mut tree, mut memberships) = (Tree::default(), Memberships::default());
    let mut of_rows: Vec<Vec<Rc<Membership>>> = Vec::new();
    for captured in &inputs.captures {
        of_rows.push(captured.table.work.iter().map(|work| memberships.of(work, &mut tree)).collect());
    }
    let surveyed: Option<Vec<Rc<Membership>>> =
        inputs.survey.map(|survey| survey.work.iter().map(|work| memberships.of(work, &mut tree)).collect());
    let found: Vec<Vec<Node>> = settings.include.iter().map(|include| include.matching(&tree.keys)).collect();
    let roots: Vec<Node> = found.iter().flatten().copied().collect();
    let left_out: Vec<Node> = settings.exclude.iter().flat_map(|exclude| exclude.matching(&tree.keys)).collect();
    let within = |node: Node, roots: &[Node]| roots.iter().any(|root| tree.keys[node].is_within(&tree.keys[*root]));
    let is_selected = |node: Node| (settings.include.is_empty() || within(node, &roots)) && !within(node, &left_out);
    let selected: Vec<bool> = (0..tree.keys.len()).map(is_selected).collect();
    let pages: Vec<&CounterTable> = inputs.captures.iter().map(|captured| captured.table).collect();
    let pages = Pages::new(&inputs.captures, chosen(settings.metrics, &pages), settings.sections);
    let mut gathered = Gathered::default();
    for (page, captured) in inputs.captures.iter().enumerate() {
        for (row, membership) in of_rows[page].iter().enumerate() {
            gathered.add((page, row), captured, membership, &tree, &selected, settings.kernels);
        }
        let kernels = captured.table.work.iter().zip(of_rows[page].iter().cloned());
        let is_kernel = |work: &types::counter::ProfiledWork| work.kind != ProfiledKind::Range;
        for (place, count) in instances::least(kernels.filter(|(work, _)| is_kernel(work))) {
            *gathered.instances.entry(place).or_default() += count;
        }
    }
    let survey = inputs.survey.zip(surveyed.as_deref());
    let survey = survey.map(|(table, rows)| Survey::new(table, rows, settings.kernels));
    let mut rolled = assemble(&tree, &pages, &gathered, survey.as_ref(), settings);
    rolled.matched = found.iter().map(|nodes| nodes.iter().map(|node| tree.keys[*node].path()).collect()).collect();
    rolled.seen = tree.ordered().into_iter().map(|node| tree.keys[node].clone()).collect();
    rolled.outside = match survey.as_ref() {
        Some(survey) => Some(survey.outside(&selected)),
        None => unfiltered(inputs, &of_rows, &selected),
    };
    rolled
}

fn assemble(
    tree: &Tree,
    pages: &Pages<'_>,
    gathered: &Gathered,
    survey: Option<&Survey<'_>>,
    settings: &RegionSettings<'_>,
) -> RolledRegions {
    let nodes: Vec<Node> = tree.ordered().into_iter().filter(|node| gathered.all.contains_key(node)).collect();
    let folders = folder_names(nodes.iter().map(|node| &tree.keys[*node]));
    let mut totals: HashMap<Node, RegionTotals> =
        nodes.iter().map(|node| (*node, aggregate(*node, pages, gathered, survey))).collect();
    let negative = take_apart(tree, pages, &mut totals, survey.is_some());
    let mut regions = Vec::new();
    for (node, folder) in nodes.iter().zip(folders) {
        let key = &tree.keys[*node];
        let rows = &gathered.all[node].inclusive;
        let mut work = CountedWork::default();
        for row in rows {
            work.add(pages.table(*row), row.1);
        }
        let innermost = |row: &Row| tree.keys[gathered.innermost[&(*node, *row)]].path();
        let region = Region {
            path: key.path(),
            domain: key.domain.as_deref().map(str::to_owned),
            segments: key.segments.iter().map(|name| name.to_string()).collect(),
            style: key.style,
            parent: tree.parent(*node).map(|parent| tree.keys[parent].path()),
            folder,
            aggregate: totals.remove(node).filter(|_| settings.aggregate),
            parts: parts(*node, pages, gathered),
            roofline: work.finish(settings.hardware),
            modelled: None,
        };
        let member = |row: &Row| Member { capture: row.0, row: row.1, innermost: innermost(row) };
        regions.push(RolledRegion { region, members: rows.iter().map(member).collect() });
    }
    let mut quality: Vec<QualityCounter> = uncounted(pages, gathered, &nodes).into_iter().collect();
    quality.extend(negative);
    RolledRegions {
        metrics: pages.metrics.clone(),
        regions,
        outside: None,
        kernels_left_out: gathered.left_out,
        matched: Vec::new(),
        seen: Vec::new(),
        quality,
    }
}

fn aggregate(node: Node, pages: &Pages<'_>, gathered: &Gathered, survey: Option<&Survey<'_>>) -> RegionTotals {
    let Rows { inclusive: all, exclusive: apart } = &gathered.all[&node];
    let is_kernels = all.first().is_none_or(|row| pages.is_kernel(*row));
    if is_kernels {
        let entered = gathered.instances.iter().filter(|((other, ..), _)| *other == node);
        return RegionTotals { instances: entered.map(|(_, count)| count).sum(), ..pages.of_kernels(all, apart) };
    }
    let mut totals = pages.of_ranges(all);
    if let Some(survey) = survey {
        let (all, apart, kernels) = survey.kernels(node);
        (totals.kernels_inclusive, totals.kernels_exclusive, totals.kernels) = (Some(all), Some(apart), kernels);
    }
    totals
}

fn parts(node: Node, pages: &Pages<'_>, gathered: &Gathered) -> Vec<RegionPart> {
    let of_node = gathered.parts.iter().filter(|(part, _)| part.node == node);
    let part = |(Part { process, device, thread, .. }, rows): (&Part, &Rows)| {
        let Rows { inclusive: all, exclusive: apart } = rows;
        let is_kernels = all.first().is_none_or(|row| pages.is_kernel(*row));
        let totals = match is_kernels {
            true => RegionTotals {
                instances: gathered.instances.get(&(node, *process, *thread)).copied().unwrap_or_default(),
                ..pages.of_kernels(all, apart)
            },
            false => pages.of_ranges(all),
        };
        RegionPart { process: *process, device: device.map(DeviceId::cuda), thread: *thread, totals }
    };
    of_node.map(part).collect()
}

/// What ranges have for themselves: what was measured, less what was measured inside. Only where all that is inside was
/// measured, which only a survey tells.
fn take_apart(
    tree: &Tree,
    pages: &Pages<'_>,
    totals: &mut HashMap<Node, RegionTotals>,
    is_surveyed: bool,
) -> Option<QualityCounter> {
    let mut negative = 0;
    let nodes: Vec<Node> = totals.keys().copied().collect();
    for node in nodes {
        let children: Vec<Node> = tree.children(node).collect();
        let inside: Option<Vec<&RegionTotals>> = children.iter().map(|child| totals.get(child)).collect();
        let Some(inside) = inside.filter(|_| is_surveyed) else { continue };
        if !totals[&node].instances_exact {
            continue;
        }
        if inside.is_empty() {
            // With nothing inside, all of it is its own, whatever the rule.
            let Some(totals) = totals.get_mut(&node) else { continue };
            totals.total_ns_exclusive = totals.total_ns_inclusive;
            totals.metrics.values_mut().for_each(|value| value.exclusive = value.inclusive);
            continue;
        }
        let less = |whole: Option<f64>, parts: Option<f64>| Some(whole? - parts?);
        let time = |totals: &RegionTotals| totals.total_ns_inclusive.map(|time| time.get() as f64);
        let own_time = less(time(&totals[&node]), inside.iter().map(|child| time(child)).sum());
        let own: Vec<(String, Option<f64>)> = pages
            .metrics
            .iter()
            .filter(|metric| subtracts(metric.rule))
            .map(|metric| {
                let value = |totals: &RegionTotals| totals.metrics.get(&metric.name)?.inclusive;
                (metric.name.clone(), less(value(&totals[&node]), inside.iter().map(|child| value(child)).sum()))
            })
            .collect();
        let Some(totals) = totals.get_mut(&node) else { continue };
        let positive = |value: f64| value >= 0.0;
        negative += own.iter().filter(|(_, value)| value.is_some_and(|value| !positive(value))).count() as u64;
        totals.total_ns_exclusive = own_time.filter(|time| positive(*time)).map(|time| Nanos::new(time.round() as i64));
        for (name, value) in own {
            if let Some(rolled) = totals.metrics.get_mut(&name) {
                rolled.exclusive = value.filter(|value| positive(*value));
            }
        }
    }
    (negative > 0).then(|| QualityCounter {
        counter: "region_values_below_nested_ones".to_owned(),
        value: negative,
        share: None,
        severity: Severity::Warning,
        remedy: "regions were measured in different runs, and what is nested came out larger than what is around it: \
                 their exclusive values are left out; use --replay-mode kernel for values of one run"
            .to_owned(),
    })
}

/// Metrics that no kernel has a value of.
fn uncounted(pages: &Pages<'_>, gathered: &Gathered, nodes: &[Node]) -> Option<QualityCounter> {
    let rows: Vec<Row> = nodes.iter().flat_map(|node| gathered.all[node].inclusive.iter().copied()).collect();
    if rows.is_empty() {
        return None;
    }
    let values = pages.values(&rows);
    let missing: Vec<&str> = (pages.metrics.iter().zip(&values))
        .filter(|(_, (value, _))| value.is_none())
        .map(|(metric, _)| metric.name.as_str())
        .collect();
    (!missing.is_empty()).then(|| QualityCounter {
        counter: "region_metrics_not_counted".to_owned(),
        value: missing.len() as u64,
        share: share(missing.len() as f64, pages.metrics.len() as f64),
        severity: Severity::Warning,
        remedy: format!(
            "this device or this mode does not count {}; `ncu --query-metrics` lists what it does",
            missing.join(", ")
        ),
    })
}
