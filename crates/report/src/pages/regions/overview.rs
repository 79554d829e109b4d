//! `ncu/regions/report.md`: every region, what was asked for, and what is outside.

use types::view::{RegionView, RegionsView};
use types::{RegionReport, RegionSelection};

use super::parts::{by_part, metrics, modelled, roofline, section, section_title, sentence, totals};
use super::value::instances;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, codes, link, prose};
use crate::words::number::{count, grouped, known, percent};

/// The report as Markdown.
pub fn overview_page(view: &RegionsView<'_>) -> Page {
    let report = view.report;
    let device = report.device.as_deref().unwrap_or("an unnamed device");
    let mut page = Page::new(&format!("Regions of {} on {}", code(&report.target), prose(device)));
    page.paragraph(&introduction(report));
    for note in &report.notes {
        page.paragraph(&prose(note));
    }
    if !report.regions.is_empty() {
        page.heading("All regions");
        page.table(&all(view));
        for region in &view.regions {
            one(&mut page, report, region);
        }
        apart(&mut page, view);
    }
    selection(&mut page, report);
    quality(&mut page, report);
    page
}

fn introduction(report: &RegionReport) -> String {
    let found = count(report.regions.len() as u64, "region");
    let mode = report.replay_mode.name();
    let outside = match &report.outside {
        None => "Kernels outside of regions were not profiled, so their share is unknown.".to_owned(),
        Some(outside) if outside.kernels == 0 => "Every kernel that was seen lies in a region.".to_owned(),
        Some(outside) => format!(
            "{} outside of every region are not counted anywhere here: {} of all kernels seen and {} of their time.",
            count(outside.kernels, "kernel"),
            percent(Some(outside.kernels_share)),
            percent(outside.time_share)
        ),
    };
    let whole = report.totals.as_ref().map_or(String::new(), |totals| {
        let kernels =
            totals.kernels_inclusive.map(|kernels| format!("{} and ", count(kernels, "kernel"))).unwrap_or_default();
        format!(
            " Together they hold {kernels}{} on the device, each kernel counted once.",
            known(totals.total_ns_inclusive)
        )
    });
    format!(
        "{found}, counted by {} in `{mode}` replay. Times and counters were read while work was replayed, so times are not those of \
         a plain run.{whole} {outside}",
        prose(&report.tool)
    )
}

/// One row per region: nested ones follow what they are in.
fn all(view: &RegionsView<'_>) -> Table {
    let mut table =
        Table::new("region | >entered | >kernels | >exclusive kernels | >inclusive | >exclusive | >share of top level");
    for row in &view.regions {
        let found = totals(row.region);
        table.row([
            code(&row.region.path),
            known(found.map(instances)),
            known(found.and_then(|found| found.kernels_inclusive).map(grouped)),
            known(found.and_then(|found| found.kernels_exclusive).map(grouped)),
            known(found.and_then(|found| found.total_ns_inclusive)),
            known(found.and_then(|found| found.total_ns_exclusive)),
            percent(row.top_level_share),
        ]);
    }
    table
}

/// One region: its totals, metrics and sections.
fn one(page: &mut Page, report: &RegionReport, view: &RegionView<'_>) {
    let region = view.region;
    page.heading(&link(&region.path, &format!("{}/report.md", url(&region.folder))));
    let Some(found) = totals(region) else {
        page.paragraph("Totals over processes and devices are switched off; see the parts below.");
        return;
    };
    page.paragraph(&sentence(report, found));
    metrics(page, &report.metrics, found);
    for one in &found.sections {
        page.paragraph(&format!("**{}**", section_title(one)));
        page.table(&section(one));
    }
}

/// A folder's name in a link: a percent sign would start an escape.
fn url(folder: &str) -> String {
    folder.replace('%', "%25")
}

fn apart(page: &mut Page, view: &RegionsView<'_>) {
    page.heading("By process, device and thread");
    page.table(&by_part(&view.report.regions));
    let counted = roofline(&view.regions);
    if !counted.is_empty() {
        page.heading("Roofline");
        page.paragraph(
            "FLOPs as the device executed them, a fused multiply-add counted as two, and bytes to and from device memory. Shares \
             are relative to the peak rates that the catalogue lists for this device; without a catalogue entry they are dashes.",
        );
        page.table(&counted);
        if view.lacks_tensor_counters {
            page.paragraph(
                "FLOPs of the tensor cores were not among the counters; the section \
                 `SpeedOfLight_HierarchicalTensorRooflineChart` or the metrics `sm__ops_path_tensor_src_*.sum` add them.",
            );
        }
    }
    modelled(page, &view.regions);
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
    items.push(format!("made at: {}", or(report.generated_at.clone(), "not recorded")));
    items.push(format!("configuration: SHA-256 {}", code(&report.config_fingerprint)));
    for capture in &report.captures {
        let what = format!("{} run, {}", capture.purpose, count(capture.results, "result"));
        items.push(format!("{what}: {}", code(&capture.command.join(" "))));
        items.extend(capture.messages.iter().map(|message| format!("profiler message: {}", prose(message))));
    }
    page.list(items);
}

fn quality(page: &mut Page, report: &RegionReport) {
    if report.quality.is_empty() {
        return;
    }
    page.heading("Data-quality warnings");
    page.list(
        report.quality.iter().map(|one| format!("{}: {}. {}", code(&one.counter), one.value, prose(&one.remedy))),
    );
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_overview_has_a_section_for_every_region() {
        insta::assert_snapshot!(overview_page(&analysis::view::regions(&sample::report())).markdown());
    }

    #[test]
    fn a_report_without_regions_says_why_and_invents_nothing() {
        insta::assert_snapshot!(overview_page(&analysis::view::regions(&sample::empty())).markdown());
    }
}
