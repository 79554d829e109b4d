//! Tables that the overview and the page of a region share.

use types::{Flops, MetricRule, Region, RegionReport, RegionSection, RegionTotals, ReplayMode};

use super::value::{instances, plain, value};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, codes, prose};
use crate::words::number::{count, grouped, known, percent};

/// Totals of a region: what holds for all of it, or of its parts where nothing is added up.
pub(super) fn totals(region: &Region) -> Option<&RegionTotals> {
    region.aggregate.as_ref()
}

/// The configured metrics of one set of totals: those that were read as a table; of the others, those that other regions have.
pub(super) fn metrics(page: &mut Page, report: &RegionReport, totals: &RegionTotals) {
    let mut table = Table::new("metric | >inclusive | >exclusive | rule");
    let mut lacking = Vec::new();
    let all = || {
        report.regions.iter().flat_map(|region| region.parts.iter().map(|part| &part.totals).chain(&region.aggregate))
    };
    let is_read = |rule: &&MetricRule| {
        let mut found = all().filter_map(|totals| totals.metrics.get(&rule.name));
        found.any(|found| found.inclusive.or(found.exclusive).is_some())
    };
    for rule in report.metrics.iter().filter(is_read) {
        let unit = rule.unit.as_deref().unwrap_or_default();
        let found = totals.metrics.get(&rule.name);
        let [inclusive, exclusive] = [found.and_then(|found| found.inclusive), found.and_then(|found| found.exclusive)];
        if inclusive.or(exclusive).is_none() {
            lacking.push(&rule.name);
            continue;
        }
        table.row([code(&rule.name), value(inclusive, unit), value(exclusive, unit), rule.rule.words().to_owned()]);
    }
    if !table.is_empty() {
        page.table(&table);
    }
    if !lacking.is_empty() {
        page.paragraph(&format!("Not read here: {}.", codes(&lacking)));
    }
}

/// Numbers of one section.
pub(super) fn section(section: &RegionSection) -> Table {
    let mut table = Table::new("metric | >value | rule");
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
    let entered = if totals.instances_exact {
        format!("Entered {}", times(totals.instances))
    } else {
        format!("Entered at least {} (kernels do not show when a range was entered again)", times(totals.instances))
    };
    let spread = totals.instance_ns.filter(|_| totals.instances > 1).map_or(String::new(), |found| {
        format!(", each {} to {} and {} on average", found.min_ns, found.max_ns, found.mean_ns)
    });
    let kernels = match (totals.kernels_inclusive, totals.kernels_exclusive) {
        (Some(all), Some(own)) if all != own => {
            format!("{} inclusive, {} exclusive", count(all, "kernel"), grouped(own))
        }
        (Some(all), _) => count(all, "kernel"),
        (None, _) => "kernels were not counted one by one".to_owned(),
    };
    let own = match (totals.total_ns_exclusive, totals.total_ns_inclusive) {
        (Some(own), Some(all)) if own != all => format!(" ({own} exclusive)"),
        _ => String::new(),
    };
    let how = match report.replay_mode {
        ReplayMode::Range | ReplayMode::AppRange => "measured as a whole",
        ReplayMode::Kernel | ReplayMode::Application => "summed over its kernels",
    };
    format!("{entered}{spread}; {kernels}; {} on the device{own}, {how}.", known(totals.total_ns_inclusive))
}

fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        number => count(number, "time"),
    }
}

/// Regions by process, device and thread.
pub(super) fn by_part<'a>(regions: impl IntoIterator<Item = &'a Region>) -> Table {
    let mut table = Table::new("region | process | device | thread | >entered | >kernels | >inclusive | >exclusive");
    for region in regions {
        for part in &region.parts {
            table.row([
                code(&region.path),
                known(part.process),
                known(part.device.as_ref()),
                known(part.thread),
                instances(&part.totals),
                known(part.totals.kernels_inclusive.map(grouped)),
                known(part.totals.total_ns_inclusive),
                known(part.totals.total_ns_exclusive),
            ]);
        }
    }
    table
}

/// FLOPs counted on tensor cores and vector units.
fn counted_flops(region: &Region) -> Option<Flops> {
    let counted = region.roofline.as_ref()?;
    let units: Vec<Flops> = counted.flops_vector.into_iter().chain(counted.flops_matrix).collect();
    (!units.is_empty()).then(|| units.into_iter().sum())
}

/// Counted work of regions relative to the device's peaks.
pub(super) fn roofline<'a>(regions: impl IntoIterator<Item = &'a Region>) -> Table {
    let mut table =
        Table::new("region | >FLOPs | >bytes | >FLOP/byte | >FLOP/s | >of peak bandwidth | >of peak FLOP/s | bound");
    for (region, counted) in regions.into_iter().filter_map(|region| Some((region, region.roofline.as_ref()?))) {
        table.row([
            code(&region.path),
            known(counted_flops(region)),
            counted.dram_bytes.to_string(),
            known(counted.flops_per_byte.map(plain)),
            known(counted.flops_per_second),
            percent(counted.bandwidth_share),
            percent(counted.compute_share),
            known(counted.bound.as_ref()),
        ]);
    }
    table
}

/// The model's numbers next to the counted ones.
pub(super) fn modelled<'a>(page: &mut Page, regions: impl IntoIterator<Item = &'a Region>) {
    let mut table = Table::new(
        "region | module | >modelled FLOPs per pass | >modelled bytes per pass | >roofline time per pass | >counted FLOPs, total | \
         >counted bytes, total | >time, total",
    );
    for (region, model) in regions.into_iter().filter_map(|region| Some((region, region.modelled.as_ref()?))) {
        table.row([
            code(&region.path),
            format!("{} ({})", code(&model.module), prose(&model.class)),
            (model.flops_matrix + model.flops_vector).to_string(),
            model.bytes.to_string(),
            known(model.least_ns),
            known(counted_flops(region)),
            known(region.roofline.as_ref().map(|counted| counted.dram_bytes)),
            known(totals(region).and_then(|totals| totals.total_ns_inclusive)),
        ]);
    }
    if !table.is_empty() {
        page.heading("Modelled and counted");
        page.paragraph(
            "Modelled numbers are per forward pass; counted numbers and times are totals over all instances.",
        );
        page.table(&table);
    }
}
