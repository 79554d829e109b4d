//! What `llm-perf regions` ends with.

use types::RegionReport;

use super::parts::totals;
use super::value::{instances, known, time, value};
use crate::number::{UNKNOWN, count, percent};
use crate::table::{Column, Table, printable};

/// Regions shown on a screen; the report has them all.
const ROWS: usize = 25;

/// The regions as plain text.
pub fn regions_terminal(report: &RegionReport) -> String {
    let device = report.device.as_deref().unwrap_or("an unnamed device");
    let found = count(report.regions.len() as u64, "region");
    let mut text = format!("{found} on {}, {} replay\n", printable(device), report.replay_mode.name());
    if !report.regions.is_empty() {
        text.push('\n');
        text += &table(report).plain();
    }
    if report.regions.len() > ROWS {
        text += &format!("and {} more\n", report.regions.len() - ROWS);
    }
    if let Some(outside) = report.outside.filter(|outside| outside.kernels > 0) {
        text += &format!(
            "\noutside of every region: {}, {} of all and {} of the time\n",
            count(outside.kernels, "kernel"),
            percent(Some(outside.kernels_share)),
            percent(outside.time_share)
        );
    }
    text
}

fn table(report: &RegionReport) -> Table<7> {
    let mut table = Table::new([
        Column::text("region"),
        Column::number("entered"),
        Column::number("kernels"),
        Column::number("inclusive"),
        Column::number("exclusive"),
        Column::number("device memory"),
        Column::number("of bandwidth"),
    ]);
    for region in report.regions.iter().take(ROWS) {
        let found = totals(region);
        let counted = region.roofline.as_ref();
        table.row([
            region.path.clone(),
            found.map_or(UNKNOWN.to_owned(), instances),
            known(found.and_then(|found| found.kernels_inclusive)),
            time(found.and_then(|found| found.total_ns_inclusive)),
            time(found.and_then(|found| found.total_ns_exclusive)),
            value(counted.map(|counted| counted.dram_bytes.as_f64()), "byte"),
            percent(counted.and_then(|counted| counted.bandwidth_share)),
        ]);
    }
    table
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
