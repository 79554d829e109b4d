//! Tables that the overview and the page of a region share.

use types::{MetricRule, Region, RegionReport, RegionRoofline, RegionSection, RegionTotals, ReplayMode};

use super::value::{instances, known, plain, time, value};
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, percent};
use crate::profile::page::Page;
use crate::table::{Column, Table};

/// Totals of a region: what holds for all of it, or of its parts where nothing is added up.
pub(super) fn totals(region: &Region) -> Option<&RegionTotals> {
    region.aggregate.as_ref()
}

/// The configured metrics of one set of totals.
pub(super) fn metrics(rules: &[MetricRule], totals: &RegionTotals) -> Table<4> {
    let mut table = Table::new([
        Column::text("metric"),
        Column::number("inclusive"),
        Column::number("exclusive"),
        Column::text("rule"),
    ]);
    for rule in rules {
        let unit = rule.unit.as_deref().unwrap_or_default();
        let found = totals.metrics.get(&rule.name);
        table.row([
            code(&rule.name),
            value(found.and_then(|found| found.inclusive), unit),
            value(found.and_then(|found| found.exclusive), unit),
            rule.rule.words().to_owned(),
        ]);
    }
    table
}

/// Numbers of one section.
pub(super) fn section(section: &RegionSection) -> Table<3> {
    let mut table = Table::new([Column::text("metric"), Column::number("value"), Column::text("rule")]);
    for metric in &section.metrics {
        table.row([prose(&metric.name), value(metric.value, &metric.unit), metric.rule.words().to_owned()]);
    }
    table
}

/// The title of a section, with its identifier where that is known.
pub(super) fn section_title(section: &RegionSection) -> String {
    match &section.id {
        Some(id) => format!("{} (`{id}`)", prose(&section.title)),
        None => prose(&section.title),
    }
}

/// Totals of one region in a sentence.
pub(super) fn sentence(report: &RegionReport, totals: &RegionTotals) -> String {
    let entered = match totals.instances_exact {
        true => format!("Entered {}", times(totals.instances)),
        false => {
            format!("Entered at least {} (kernels do not show when a range was opened again)", times(totals.instances))
        }
    };
    let spread = totals.instance_ns.filter(|_| totals.instances > 1).map_or(String::new(), |found| {
        format!(", each {} to {} and {} on average", found.min_ns, found.max_ns, found.mean_ns)
    });
    let kernels = match (totals.kernels_inclusive, totals.kernels_exclusive) {
        (Some(all), Some(own)) if all != own => {
            format!("{} kernels, {} of them its own", known(Some(all)), known(Some(own)))
        }
        (Some(1), _) => "one kernel".to_owned(),
        (Some(all), _) => format!("{} kernels", known(Some(all))),
        (None, _) => "kernels were not counted one by one".to_owned(),
    };
    let own = match (totals.total_ns_exclusive, totals.total_ns_inclusive) {
        (Some(own), Some(all)) if own != all => format!(", {own} of it outside nested regions"),
        _ => String::new(),
    };
    let how = match report.replay_mode {
        ReplayMode::Range | ReplayMode::AppRange => "measured as a whole",
        ReplayMode::Kernel | ReplayMode::Application => "summed over its kernels",
    };
    format!("{entered}{spread}; {kernels}; {} on the device{own}, {how}.", time(totals.total_ns_inclusive))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{} times", known(Some(count))),
    }
}

/// Regions by process, device and thread.
pub(super) fn by_part<'a>(regions: impl IntoIterator<Item = &'a Region>) -> Table<8> {
    let mut table = Table::new([
        Column::text("region"),
        Column::text("process"),
        Column::text("device"),
        Column::text("thread"),
        Column::number("entered"),
        Column::number("kernels"),
        Column::number("inclusive"),
        Column::number("exclusive"),
    ]);
    for region in regions {
        for part in &region.parts {
            table.row([
                code(&region.path),
                part.process.map_or(UNKNOWN.to_owned(), |process| process.to_string()),
                part.device.as_ref().map_or(UNKNOWN.to_owned(), ToString::to_string),
                part.thread.map_or(UNKNOWN.to_owned(), |thread| thread.to_string()),
                instances(&part.totals),
                known(part.totals.kernels_inclusive),
                time(part.totals.total_ns_inclusive),
                time(part.totals.total_ns_exclusive),
            ]);
        }
    }
    table
}

/// Counted work of regions against the device's roofs.
pub(super) fn roofline<'a>(regions: impl IntoIterator<Item = &'a Region>) -> Table<8> {
    let mut table = Table::new([
        Column::text("region"),
        Column::number("operations"),
        Column::number("bytes"),
        Column::number("operations/byte"),
        Column::number("operations/s"),
        Column::number("of bandwidth"),
        Column::number("of arithmetic"),
        Column::text("nearer roof"),
    ]);
    for (region, counted) in regions.into_iter().filter_map(|region| Some((region, region.roofline.as_ref()?))) {
        table.row([
            code(&region.path),
            operations(counted),
            counted.dram_bytes.to_string(),
            counted.flops_per_byte.map_or(UNKNOWN.to_owned(), plain),
            counted.flops_per_second.map_or(UNKNOWN.to_owned(), |rate| rate.to_string()),
            percent(counted.bandwidth_share),
            percent(counted.compute_share),
            counted.bound.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        ]);
    }
    table
}

fn operations(counted: &RegionRoofline) -> String {
    match (counted.flops_vector, counted.flops_matrix) {
        (None, None) => UNKNOWN.to_owned(),
        (one, two) => (one.into_iter().chain(two).sum::<types::Flops>()).to_string(),
    }
}

/// The model's numbers beside the counted ones.
pub(super) fn modelled(page: &mut Page, regions: &[&Region]) {
    let mut table = Table::new([
        Column::text("region"),
        Column::text("module"),
        Column::number("modelled operations"),
        Column::number("modelled bytes"),
        Column::number("least time"),
        Column::number("counted operations"),
        Column::number("counted bytes"),
        Column::number("time"),
    ]);
    for (region, model) in regions.iter().filter_map(|region| Some((region, region.modelled.as_ref()?))) {
        let counted = region.roofline.as_ref();
        table.row([
            code(&region.path),
            format!("{} ({})", code(&model.module), prose(&model.class)),
            (model.flops_matrix + model.flops_vector).to_string(),
            model.bytes.to_string(),
            time(model.least_ns),
            counted.map_or(UNKNOWN.to_owned(), operations),
            counted.map_or(UNKNOWN.to_owned(), |counted| counted.dram_bytes.to_string()),
            time(totals(region).and_then(|totals| totals.total_ns_inclusive)),
        ]);
    }
    if !table.is_empty() {
        page.heading("Beside the model");
        page.paragraph("Modelled numbers are of one forward pass; counted ones are of all instances together.");
        page.table(&table);
    }
}
