//! `ncu/regions/report.md`: every region, what was asked for, and what is outside.

use types::{Nanos, QualityCounter, Region, RegionReport, RegionSelection, Severity};

use super::parts::{by_part, metrics, modelled, roofline, section, section_title, sentence, totals};
use super::value::instances;
use crate::pages::run::findings::finished;
use crate::render::text::{capital, code, codes, link, prose};
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::counter_rows::title;
use crate::words::number::{count, grouped, known, percent, time_share};

/// The report as a page.
pub fn overview_page(report: &RegionReport) -> Page {
    let device = report.device.as_deref().unwrap_or("an unnamed device");
    let mut page = Page::new(&format!("Regions of {} on {}", code(&report.target), prose(device)));
    page.callout(READ_FIRST, caveats(report));
    page.paragraph(&introduction(report));
    if !report.regions.is_empty() {
        page.heading("All regions");
        page.table(&all(report, usize::MAX));
        for region in &report.regions {
            one(&mut page, report, region);
        }
        apart(&mut page, report);
    }
    selection(&mut page, report);
    if grave(report).next().is_some() {
        page.heading("Data quality");
        page.list(grave(report).map(|one| format!("{}. {}", counted(one), finished(&one.remedy))));
    }
    page
}

/// What a reader must know before the first number.
pub(crate) fn caveats(report: &RegionReport) -> Vec<String> {
    let replayed = "Counters were read while kernels were replayed, so times are not those of a plain run.".to_owned();
    let mut lines: Vec<String> = (!report.regions.is_empty()).then_some(replayed).into_iter().collect();
    lines.extend(report.notes.iter().map(|note| finished(note)));
    lines.extend(grave(report).map(|one| format!("{} (see \"Data quality\").", counted(one))));
    lines
}

fn grave(report: &RegionReport) -> impl Iterator<Item = &QualityCounter> {
    report.quality.iter().filter(|one| one.severity > Severity::Info)
}

fn counted(counter: &QualityCounter) -> String {
    format!("{}: {}", capital(&title(&counter.counter)), grouped(counter.value))
}

fn introduction(report: &RegionReport) -> String {
    let found = count(report.regions.len() as u64, "region");
    let mode = report.replay_mode.name();
    let whole = report.totals.as_ref().map_or(String::new(), |totals| {
        let kernels =
            totals.kernels_inclusive.map(|kernels| format!("{} and ", count(kernels, "kernel"))).unwrap_or_default();
        let time = known(totals.total_ns_inclusive);
        format!(" Together they hold {kernels}{time} on the device; each kernel counts once.")
    });
    format!("{found}, counted by {} in `{mode}` replay.{whole} {}", prose(&report.tool), outside(report))
}

/// What lies outside of every region.
pub(super) fn outside(report: &RegionReport) -> String {
    match &report.outside {
        None => "Kernels outside regions were not profiled, so their share is unknown.".to_owned(),
        Some(outside) if outside.kernels == 0 => "Every profiled kernel lies in a region.".to_owned(),
        Some(outside) => format!(
            "Outside every region: {}, {} of all kernels and {} of all kernel time. They are not counted here.",
            count(outside.kernels, "kernel"),
            percent(Some(outside.kernels_share)),
            percent(outside.time_share)
        ),
    }
}

/// One row per region, for the first of them: nested ones follow what they are in. Times are of all instances.
pub(super) fn all(report: &RegionReport, most: usize) -> Table {
    let mut table = Table::new(
        "region | >entered | >kernels | >exclusive kernels | >inclusive | >exclusive | >of top-level time | >device memory | \
         >of peak bandwidth",
    );
    let whole = top_level(report);
    for region in report.regions.iter().take(most) {
        let (found, counted) = (totals(region), region.roofline.as_ref());
        let time = found.and_then(|found| found.total_ns_inclusive);
        table.row([
            code(&region.path),
            known(found.map(instances)),
            known(found.and_then(|found| found.kernels_inclusive).map(grouped)),
            known(found.and_then(|found| found.kernels_exclusive).map(grouped)),
            known(time),
            known(found.and_then(|found| found.total_ns_exclusive)),
            percent(time.zip(whole).and_then(|(part, whole)| time_share(part, whole))),
            known(counted.map(|counted| counted.dram_bytes)),
            percent(counted.and_then(|counted| counted.bandwidth_share)),
        ]);
    }
    table
}

/// Time of regions that are in no other region of the report; absent where several domains or styles would be added.
fn top_level(report: &RegionReport) -> Option<Nanos> {
    let is_top = |region: &&Region| {
        report.regions.iter().all(|other| Some(&other.path) != region.parent.as_ref() || other.domain != region.domain)
    };
    let first = report.regions.first()?;
    let is_one = report.regions.iter().all(|region| (&region.domain, region.style) == (&first.domain, first.style));
    let top = report.regions.iter().filter(is_top);
    is_one.then(|| top.map(|region| totals(region)?.total_ns_inclusive).sum::<Option<Nanos>>())?
}

/// One region: its totals, metrics and sections.
fn one(page: &mut Page, report: &RegionReport, region: &Region) {
    page.heading(&link(&region.path, &format!("{}/report.md", url(&region.folder))));
    let Some(found) = totals(region) else {
        return page.paragraph("Totals over processes and devices are switched off; see the parts below.");
    };
    page.paragraph(&sentence(report, found));
    metrics(page, report, found);
    for one in &found.sections {
        page.paragraph(&format!("**{}**", section_title(one)));
        page.table(&section(one));
    }
}

/// A folder's name in a link: a percent sign would start an escape.
fn url(folder: &str) -> String {
    folder.replace('%', "%25")
}

fn apart(page: &mut Page, report: &RegionReport) {
    page.heading("By process, device and thread");
    page.table(&by_part(&report.regions));
    let counted = roofline(&report.regions);
    if !counted.is_empty() {
        page.heading("Roofline");
        page.paragraph(
            "FLOPs as executed by the device, a fused multiply-add counted as two, and bytes to and from device memory, over all \
             instances. Shares are relative to the catalogue's peak rates for this device; without a catalogue entry they are \
             dashes.",
        );
        page.table(&counted);
        let lacks = |region: &Region| {
            region.roofline.as_ref().is_some_and(|found| found.flops_vector.is_some() && found.flops_matrix.is_none())
        };
        if report.regions.iter().any(lacks) {
            page.paragraph(
                "Tensor-core FLOPs were not among the counters; the section \
                 `SpeedOfLight_HierarchicalTensorRooflineChart` or the metrics `sm__ops_path_tensor_src_*.sum` add them.",
            );
        }
    }
    modelled(page, &report.regions);
}

fn selection(page: &mut Page, report: &RegionReport) {
    page.heading("Selection");
    let RegionSelection { kernel_name, kernel_exclude, kernels_left_out, set, sections, metrics, .. } =
        &report.selection;
    let or = |text: String, none: &str| if text.is_empty() { none.to_owned() } else { text };
    let mut items = Vec::new();
    if report.selection.include.is_empty() {
        items.push("regions: all".to_owned());
    }
    for include in &report.selection.include {
        let filter = or(codes(&include.profiler), "none");
        let matched = or(codes(&include.matched), "nothing");
        items.push(format!("regions {}: profiler filter {filter}; matched {matched}", code(&include.expression)));
    }
    let base = &report.selection.kernel_name_base;
    items.push(match kernel_name {
        Some(name) => format!("kernels: {} (matched with the {base} name)", code(name)),
        None => "kernels: all".to_owned(),
    });
    if !kernel_exclude.is_empty() {
        items.push(format!(
            "kernels excluded: {} ({} of those captured)",
            codes(kernel_exclude),
            grouped(*kernels_left_out)
        ));
    }
    items.extend(set.as_ref().map(|set| format!("set: {}", code(set))));
    items.push(format!("sections: {}", or(codes(sections), "none")));
    items.push(format!("metrics: {}", or(codes(metrics), "none")));
    items.push(format!("scope of totals: {}", code(&report.scope)));
    items.push(format!("generated at: {}", or(report.generated_at.clone(), "not recorded")));
    items.push(format!("configuration: SHA-256 {}", code(&report.config_fingerprint)));
    for capture in &report.captures {
        let what = format!("{} run, {}", capture.purpose, count(capture.results, "result"));
        items.push(format!("{what}: {}", code(&capture.command.join(" "))));
        items.extend(capture.messages.iter().map(|message| format!("profiler message: {}", prose(message))));
    }
    page.list(items);
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_overview_has_a_section_for_every_region() {
        insta::assert_snapshot!(overview_page(&sample::report()).markdown());
    }

    #[test]
    fn a_report_without_regions_says_why_and_invents_nothing() {
        insta::assert_snapshot!(overview_page(&sample::empty()).markdown());
    }
}
