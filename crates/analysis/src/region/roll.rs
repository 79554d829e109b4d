//! Pages of a profiler rolled up per region.

use std::collections::HashMap;
use std::rc::Rc;

use types::counter::{CounterTable, ProfiledKind};
use types::{Count, DeviceId, Facts, QualityCounter, Region, RegionPart, RegionTotals, Severity};

use super::capture::RegionInputs;
use super::columns::chosen;
use super::exclusive::take_apart;
use super::folder::folder_names;
use super::instances;
use super::key::RegionKey;
use super::region_rows::{Part, RegionRows, Rows};
use super::rolled_region::{Member, RolledRegion, RolledRegions};
use super::roofline::CountedWork;
use super::settings::RegionSettings;
use super::survey::{Survey, unfiltered};
use super::totals::{Pages, Row};
use super::tree::{Membership, Memberships, Node, Tree};

/// Regions of a page, each before those nested in it.
pub fn regions_of(table: &CounterTable) -> Vec<RegionKey> {
    let (mut tree, mut memberships) = (Tree::default(), Memberships::default());
    for work in &table.work {
        memberships.of(work, &mut tree);
    }
    keys_in_order(&tree)
}

/// Rolls everything up.
pub fn roll_up(inputs: &RegionInputs<'_>, settings: &RegionSettings<'_>) -> RolledRegions {
    let (mut tree, mut memberships) = (Tree::default(), Memberships::default());
    let mut of_rows: Vec<Vec<Rc<Membership>>> = Vec::new();
    for capture in &inputs.captures {
        of_rows.push(capture.table.work.iter().map(|work| memberships.of(work, &mut tree)).collect());
    }
    let surveyed: Option<Vec<Rc<Membership>>> =
        inputs.survey.map(|survey| survey.work.iter().map(|work| memberships.of(work, &mut tree)).collect());
    let found: Vec<Vec<Node>> = settings.include.iter().map(|include| include.matching(&tree.keys)).collect();
    let roots: Vec<Node> = found.iter().flatten().copied().collect();
    let left_out: Vec<Node> = settings.exclude.iter().flat_map(|exclude| exclude.matching(&tree.keys)).collect();
    let within = |node: Node, roots: &[Node]| roots.iter().any(|root| tree.keys[node].is_within(&tree.keys[*root]));
    let is_selected = |node: Node| (settings.include.is_empty() || within(node, &roots)) && !within(node, &left_out);
    let selected: Vec<bool> = (0..tree.keys.len()).map(is_selected).collect();
    let pages: Vec<&CounterTable> = inputs.captures.iter().map(|capture| capture.table).collect();
    let pages = Pages::new(&inputs.captures, chosen(settings.metrics, &pages), settings.sections);
    let mut by_region = RegionRows::default();
    for (page, capture) in inputs.captures.iter().enumerate() {
        for (row, membership) in of_rows[page].iter().enumerate() {
            by_region.add((page, row), capture, membership, &tree, &selected, settings.kernels);
        }
        let kernels = capture.table.work.iter().zip(of_rows[page].iter().cloned());
        let is_kernel = |work: &types::counter::ProfiledWork| work.kind != ProfiledKind::Range;
        for (place, count) in instances::fewest(kernels.filter(|(work, _)| is_kernel(work))) {
            *by_region.instances.entry(place).or_default() += count;
        }
    }
    let survey = inputs.survey.zip(surveyed.as_deref());
    let survey = survey.map(|(table, rows)| Survey::new(table, rows, settings.kernels));
    let (regions, quality) = assemble(&tree, &pages, &by_region, survey.as_ref(), settings);
    let totals = whole(&tree, &pages, &by_region);
    let paths = |nodes: &Vec<Node>| nodes.iter().map(|node| tree.keys[*node].path()).collect();
    RolledRegions {
        regions,
        totals,
        outside: match survey.as_ref() {
            Some(survey) => Some(survey.outside(&selected)),
            None => unfiltered(inputs, &of_rows, &selected),
        },
        kernels_left_out: by_region.left_out,
        matched: found.iter().map(paths).collect(),
        seen: keys_in_order(&tree),
        quality,
        metrics: pages.metrics,
    }
}

fn keys_in_order(tree: &Tree) -> Vec<RegionKey> {
    tree.ordered().into_iter().map(|node| tree.keys[node].clone()).collect()
}

fn assemble(
    tree: &Tree,
    pages: &Pages<'_>,
    by_region: &RegionRows,
    survey: Option<&Survey<'_>>,
    settings: &RegionSettings<'_>,
) -> (Vec<RolledRegion>, Vec<QualityCounter>) {
    let nodes: Vec<Node> = tree.ordered().into_iter().filter(|node| by_region.all.contains_key(node)).collect();
    let folders = folder_names(nodes.iter().map(|node| &tree.keys[*node]));
    let mut totals: HashMap<Node, RegionTotals> =
        nodes.iter().map(|node| (*node, aggregate(*node, pages, by_region, survey))).collect();
    let negative = take_apart(tree, pages, &mut totals, survey.is_some());
    let mut regions = Vec::new();
    for (node, folder) in nodes.iter().zip(folders) {
        let key = &tree.keys[*node];
        let rows = &by_region.all[node].inclusive;
        let mut work = CountedWork::default();
        for row in rows {
            work.add(pages.table(*row), row.1);
        }
        let innermost = |row: &Row| tree.keys[by_region.innermost[&(*node, *row)]].path();
        let region = Region {
            path: key.path(),
            domain: key.domain.as_deref().map(str::to_owned),
            segments: key.segments.iter().map(|name| name.to_string()).collect(),
            style: key.style,
            parent: tree.parent(*node).map(|parent| tree.keys[parent].path()),
            folder,
            selection: settings.kernels.patterns(by_region.left_out_of.get(node).copied().unwrap_or_default()),
            aggregate: totals.remove(node).filter(|_| settings.aggregate),
            parts: parts(*node, pages, by_region),
            roofline: work.finish(settings.hardware),
            modelled: None,
        };
        let member = |row: &Row| Member { capture: row.0, row: row.1, innermost: innermost(row) };
        regions.push(RolledRegion { region, members: rows.iter().map(member).collect() });
    }
    let mut quality: Vec<QualityCounter> = uncounted(pages, by_region, &nodes).into_iter().collect();
    quality.extend(negative);
    (regions, quality)
}

/// Everything inside the regions. A kernel counts once, however many regions it is in; ranges that were measured as a whole can be
/// added only where none overlaps another: the outermost ones of one thread in one domain.
fn whole(tree: &Tree, pages: &Pages<'_>, by_region: &RegionRows) -> Option<RegionTotals> {
    let is_top = |node: &Node| {
        std::iter::successors(tree.parent(*node), |node| tree.parent(*node))
            .all(|node| !by_region.all.contains_key(&node))
    };
    let mut top: Vec<Node> = by_region.all.keys().copied().filter(is_top).collect();
    top.sort_unstable();
    let mut rows: Vec<Row> = top.iter().flat_map(|node| by_region.all[node].inclusive.iter().copied()).collect();
    rows.sort_unstable();
    rows.dedup();
    let first = rows.first()?;
    if pages.is_kernel(*first) {
        let entered = by_region.instances.iter().filter(|((node, ..), _)| top.contains(node));
        return Some(RegionTotals {
            instances: entered.map(|(_, count)| count).sum::<Count>().get(),
            ..pages.of_kernels(&rows, &rows)
        });
    }
    let place =
        |part: &&Part| (part.process, part.thread, tree.keys[part.node].domain.clone(), tree.keys[part.node].style);
    let mut places = by_region.parts.keys().filter(|part| top.contains(&part.node));
    let one = places.next()?;
    let is_one = one.thread.is_some() && places.all(|part| place(&part) == place(&one));
    is_one.then(|| pages.of_ranges(&rows))
}

fn aggregate(node: Node, pages: &Pages<'_>, by_region: &RegionRows, survey: Option<&Survey<'_>>) -> RegionTotals {
    let Rows { inclusive: all, exclusive: apart } = &by_region.all[&node];
    let is_kernels = all.first().is_none_or(|row| pages.is_kernel(*row));
    if is_kernels {
        let entered = by_region.instances.iter().filter(|((other, ..), _)| *other == node);
        return RegionTotals {
            instances: entered.map(|(_, count)| count).sum::<Count>().get(),
            ..pages.of_kernels(all, apart)
        };
    }
    let mut totals = pages.of_ranges(all);
    if let Some(survey) = survey {
        survey.add_to(&mut totals, node);
    }
    totals
}

fn parts(node: Node, pages: &Pages<'_>, by_region: &RegionRows) -> Vec<RegionPart> {
    let of_node = by_region.parts.iter().filter(|(part, _)| part.node == node);
    let part = |(Part { process, device, thread, .. }, rows): (&Part, &Rows)| {
        let Rows { inclusive: all, exclusive: apart } = rows;
        let is_kernels = all.first().is_none_or(|row| pages.is_kernel(*row));
        let totals = if is_kernels {
            RegionTotals {
                instances: by_region.instances.get(&(node, *process, *thread)).copied().unwrap_or_default(),
                ..pages.of_kernels(all, apart)
            }
        } else {
            pages.of_ranges(all)
        };
        RegionPart { process: *process, device: device.map(DeviceId::cuda), thread: *thread, totals }
    };
    of_node.map(part).collect()
}

/// Metrics that no kernel has a value of.
fn uncounted(pages: &Pages<'_>, by_region: &RegionRows, nodes: &[Node]) -> Option<QualityCounter> {
    let rows: Vec<Row> = nodes.iter().flat_map(|node| by_region.all[node].inclusive.iter().copied()).collect();
    if rows.is_empty() {
        return None;
    }
    let values = pages.values(&rows);
    let missing: Vec<Facts> = (pages.metrics.iter().zip(&values))
        .filter(|(_, (value, _))| value.is_none())
        .map(|(metric, _)| Facts::new().with("metric", &metric.name))
        .collect();
    let counter = QualityCounter::some("region_metrics_not_counted", Severity::Warning, missing.len() as u64);
    counter.map(|counter| counter.of(pages.metrics.len() as u64).facts(Facts::new().with("metrics", missing)))
}
