//! What `llm-perf regions` ends with.

use types::RegionReport;

use super::overview::{all, caveats, outside};
use crate::render::Page;
use crate::render::text::prose;
use crate::words::caveat::READ_FIRST;
use crate::words::number::count;

/// Regions shown on a screen; the report has them all.
const ROWS: usize = 25;

/// The regions as plain text.
pub fn regions_terminal(report: &RegionReport) -> String {
    let mut page = Page::new("");
    page.callout(READ_FIRST, caveats(report));
    let device = report.device.as_deref().unwrap_or("an unnamed device");
    let found = count(report.regions.len() as u64, "region");
    page.paragraph(&format!("{found} on {}, {} replay", prose(device), report.replay_mode.name()));
    if !report.regions.is_empty() {
        page.table(&all(report, ROWS));
    }
    if report.regions.len() > ROWS {
        page.paragraph(&format!("... and {} more", count((report.regions.len() - ROWS) as u64, "region")));
    }
    if report.outside.is_some_and(|outside| outside.kernels > 0) {
        page.paragraph(&outside(report));
    }
    page.terminal()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_regions_fit_on_a_screen() {
        insta::assert_snapshot!(regions_terminal(&sample::report()));
    }
}
