//! What `llm-perf regions` ends with.

use types::RegionReport;

use super::parts::totals;
use super::value::instances;
use crate::render::table::{Table, printable};
use crate::words::number::{count, grouped, known, percent};

/// Regions shown on a screen; the report has them all.
const ROWS: usize = 25;

/// The regions as plain text.
pub fn regions_terminal(report: &RegionReport) -> String {
    let device = report.device.as_deref().unwrap_or("an unnamed device");
    let found = count(report.regions.len() as u64, "region");
    let mut text = format!("{found} on {}, {} replay\n", printable(device), report.replay_mode.name());
    if !report.regions.is_empty() {
        text.push('\n');
        text += &table(report).to_string();
    }
    if report.regions.len() > ROWS {
        text += &format!("and {} more\n", report.regions.len() - ROWS);
    }
    if let Some(outside) = report.outside.filter(|outside| outside.kernels > 0) {
        text += &format!(
            "\noutside of every region: {}, {} of all kernels and {} of their time\n",
            count(outside.kernels, "kernel"),
            percent(Some(outside.kernels_share)),
            percent(outside.time_share)
        );
    }
    text
}

fn table(report: &RegionReport) -> Table {
    let mut table =
        Table::new("region | >entered | >kernels | >inclusive | >exclusive | >device memory | >of peak bandwidth");
    for region in report.regions.iter().take(ROWS) {
        let found = totals(region);
        let counted = region.roofline.as_ref();
        table.row([
            region.path.clone(),
            known(found.map(instances)),
            known(found.and_then(|found| found.kernels_inclusive).map(grouped)),
            known(found.and_then(|found| found.total_ns_inclusive)),
            known(found.and_then(|found| found.total_ns_exclusive)),
            known(counted.map(|counted| counted.dram_bytes)),
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
