//! `ncu/regions/<folder>/report.md`: one region.

use types::{Region, RegionReport};

use super::parts::{by_part, metrics, modelled, roofline, section, section_title, sentence, totals};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::code;
use crate::words::number::{count, grouped, known};

/// Kernels shown; `kernels.csv` has every launch.
const ROWS: usize = 30;

/// The page of a region.
pub fn region_page(report: &RegionReport, region: &Region) -> Page {
    let mut page = Page::new(&format!("Region {}", code(&region.path)));
    if let Some(parent) = &region.parent {
        page.paragraph(&format!("Inside {}.", code(parent)));
    }
    match totals(region) {
        Some(found) => {
            page.paragraph(&sentence(report, found));
            if !report.metrics.is_empty() {
                page.heading("Metrics");
                metrics(&mut page, report, found);
            }
            for one in &found.sections {
                page.heading(&section_title(one));
                page.table(&section(one));
            }
            kernels(&mut page, region);
        }
        None => {
            page.paragraph("Totals over processes and devices are switched off.");
            for part in &region.parts {
                let process =
                    part.process.map_or("an unnamed process".to_owned(), |process| format!("process {process}"));
                let device = part.device.as_ref().map_or("an unnamed device".to_owned(), ToString::to_string);
                page.heading(&format!("{process} on {device}"));
                page.paragraph(&sentence(report, &part.totals));
                metrics(&mut page, report, &part.totals);
                for one in &part.totals.sections {
                    page.paragraph(&format!("**{}**", section_title(one)));
                    page.table(&section(one));
                }
            }
        }
    }
    page.heading("By process, device and thread");
    page.table(&by_part([region]));
    let counted = roofline([region]);
    if !counted.is_empty() {
        page.heading("Roofline");
        page.table(&counted);
    }
    modelled(&mut page, [region]);
    page
}

fn kernels(page: &mut Page, region: &Region) {
    let Some(found) = totals(region).filter(|found| !found.kernels.is_empty()) else { return };
    page.heading("Kernels");
    let cut = match found.kernels.len() {
        all if all > ROWS => format!("The first {ROWS} of {}. ", count(all as u64, "kernel")),
        _ => String::new(),
    };
    page.paragraph(&format!("{cut}`kernels.csv` has every launch with its full name."));
    let mut table = Table::new("kernel | device | >calls | >total | >mean");
    for kernel in found.kernels.iter().take(ROWS) {
        table.row([
            code(&kernel.short_name),
            known(kernel.device.as_ref()),
            grouped(kernel.calls),
            known(kernel.total_ns),
            known(kernel.mean_ns),
        ]);
    }
    page.table(&table);
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_page_of_a_region_goes_from_totals_to_kernels() {
        let report = sample::report();
        insta::assert_snapshot!(region_page(&report, &report.regions[0]).markdown());
    }

    #[test]
    fn without_totals_every_part_has_its_own() {
        let mut report = sample::report();
        report.regions[0].aggregate = None;
        let page = region_page(&report, &report.regions[0]).markdown();
        assert!(page.contains("## process 467 on cuda:0") && page.contains("switched off"), "{page}");
    }
}
