//! `ncu/regions/report.md`: every region, what was asked for, and what is outside.

use types::{Region, RegionReport, RegionSelection};

use super::parts::{by_part, metrics, modelled, roofline, section, section_title, sentence, totals};
use super::value::{instances, known, time};
use crate::markdown::{code, link, prose};
use crate::number::{UNKNOWN, count, percent, share};
use crate::profile::page::Page;
use crate::table::{Column, Table};

/// The report as Markdown.
pub fn overview_markdown(report: &RegionReport) -> String {
    let device = report.device.as_deref().unwrap_or("an unnamed device");
    let mut page = Page::new(&format!("Regions of {} on {}", code(&report.target), prose(device)));
    page.paragraph(&introduction(report));
    for note in &report.notes {
        page.paragraph(&prose(note));
    }
    if !report.regions.is_empty() {
        page.heading("All regions");
        page.table(&all(report));
        for region in &report.regions {
            one(&mut page, report, region);
        }
        apart(&mut page, report);
    }
    asked(&mut page, report);
    quality(&mut page, report);
    page.finish()
}

fn introduction(report: &RegionReport) -> String {
    let found = count(report.regions.len() as u64, "region");
    let mode = report.replay_mode.name();
    let outside = match &report.outside {
        None => "Kernels outside of regions were not profiled, so their share is not known.".to_owned(),
        Some(outside) if outside.kernels == 0 => "Every kernel that was seen lies in a region.".to_owned(),
        Some(outside) => format!(
            "{} outside of every region are not counted anywhere here: {} of all kernels seen and {} of their time.",
            count(outside.kernels, "kernel"),
            percent(Some(outside.kernels_share)),
            percent(outside.time_share)
        ),
    };
    format!(
        "{found}, counted by {} in `{mode}` replay. Times and counters were read while work was replayed, so that times \
         are not those of a plain run. {outside}",
        prose(&report.tool)
    )
}

/// One row per region: nested ones follow what they are in.
pub(super) fn all(report: &RegionReport) -> Table<7> {
    let mut table = Table::new([
        Column::text("region"),
        Column::number("entered"),
        Column::number("kernels"),
        Column::number("its own"),
        Column::number("inclusive"),
        Column::number("exclusive"),
        Column::number("of top level"),
    ]);
    let whole = top_level(report);
    for region in &report.regions {
        let found = totals(region);
        let part = found.and_then(|found| found.total_ns_inclusive);
        table.row([
            code(&region.path),
            found.map_or(UNKNOWN.to_owned(), instances),
            known(found.and_then(|found| found.kernels_inclusive)),
            known(found.and_then(|found| found.kernels_exclusive)),
            time(part),
            time(found.and_then(|found| found.total_ns_exclusive)),
            percent(part.zip(whole).and_then(|(part, whole)| share(part.get() as f64, whole.get() as f64))),
        ]);
    }
    table
}

/// Time of regions that are in no other region of the report; absent where several domains or kinds would be added.
fn top_level(report: &RegionReport) -> Option<types::Nanos> {
    let is_top = |region: &&Region| {
        report.regions.iter().all(|other| Some(&other.path) != region.parent.as_ref() || other.domain != region.domain)
    };
    let first = report.regions.first()?;
    let is_one = report.regions.iter().all(|region| (&region.domain, region.style) == (&first.domain, first.style));
    let mut times = report.regions.iter().filter(is_top).map(|region| totals(region)?.total_ns_inclusive);
    is_one.then(|| times.by_ref().sum::<Option<types::Nanos>>())?
}

/// One region: its totals, metrics and sections.
fn one(page: &mut Page, report: &RegionReport, region: &Region) {
    page.heading(&link(&region.path, &format!("{}/report.md", url(&region.folder))));
    let Some(found) = totals(region) else {
        page.paragraph("Totals over processes and devices are switched off; see the parts below.");
        return;
    };
    page.paragraph(&sentence(report, found));
    if !report.metrics.is_empty() {
        page.table(&metrics(&report.metrics, found));
    }
    for one in &found.sections {
        page.paragraph(&format!("**{}**", section_title(one)));
        page.table(&section(one));
    }
}

/// A folder's name in a link: a percent sign would begin an escape.
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
            "Operations as the device executed them, a fused multiply-add counted as two, and bytes to and from device memory. \
             Shares are of the rates the catalogue lists for this device; without a catalogue entry they are dashes.",
        );
        page.table(&counted);
        let is_partial = |region: &Region| {
            region.roofline.as_ref().is_some_and(|found| found.flops_vector.is_some() && found.flops_matrix.is_none())
        };
        if report.regions.iter().any(is_partial) {
            page.paragraph(
                "Operations of the matrix units were not among the counters; the section \
                 `SpeedOfLight_HierarchicalTensorRooflineChart` or the metrics `sm__ops_path_tensor_src_*.sum` add them.",
            );
        }
    }
    modelled(page, &report.regions.iter().collect::<Vec<_>>());
}

fn asked(page: &mut Page, report: &RegionReport) {
    page.heading("What was asked for");
    let RegionSelection { kernel_name, kernel_exclude, kernels_left_out, set, sections, metrics, .. } =
        &report.selection;
    let list = |texts: &[String]| texts.iter().map(|text| code(text)).collect::<Vec<_>>().join(", ");
    let or = |text: String, none: &str| if text.is_empty() { none.to_owned() } else { text };
    let mut items = Vec::new();
    if report.selection.include.is_empty() {
        items.push("regions: all".to_owned());
    }
    for include in &report.selection.include {
        let told = or(list(&include.profiler), "everything");
        let matched = or(list(&include.matched), "nothing");
        items.push(format!("regions {}: the profiler was told {told}; matched {matched}", code(&include.expression)));
    }
    let base = &report.selection.kernel_name_base;
    items.push(match kernel_name {
        Some(name) => format!("kernels: {} (held against the {base} name)", code(name)),
        None => "kernels: all".to_owned(),
    });
    if !kernel_exclude.is_empty() {
        items.push(format!(
            "kernels left out: {} ({} of those captured)",
            list(kernel_exclude),
            known(Some(*kernels_left_out))
        ));
    }
    items.extend(set.as_ref().map(|set| format!("set: {}", code(set))));
    items.push(format!("sections: {}", or(list(sections), "none")));
    items.push(format!("metrics: {}", or(list(metrics), "none")));
    items.push(format!("configuration: SHA-256 {}", code(&report.config_sha256)));
    for capture in &report.captures {
        let what = format!("{} run, {}", capture.purpose, count(capture.results, "result"));
        items.push(format!("{what}: {}", code(&capture.command.join(" "))));
        items.extend(capture.messages.iter().map(|message| format!("the profiler said: {}", prose(message))));
    }
    page.list(items);
}

fn quality(page: &mut Page, report: &RegionReport) {
    if report.quality.is_empty() {
        return;
    }
    page.heading("What to be careful with");
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
        insta::assert_snapshot!(overview_markdown(&sample::report()));
    }

    #[test]
    fn a_report_without_regions_says_why_and_invents_nothing() {
        insta::assert_snapshot!(overview_markdown(&sample::empty()));
    }
}
