//! `sweep.md`: the best points, the chart and the table.

use types::Sweep;

use super::table::table;
use super::terminal::{axes, best, caveats, forecasts};
use crate::pages::analytic::assumption;
use crate::render::Page;
use crate::render::text::{link, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::count;

/// Lines of the table on the page; the CSV has all.
const LINES: usize = 500;

/// The page; `csv` and `chart` are the files beside it.
pub fn page(sweep: &Sweep, csv: &str, chart: &str) -> Page {
    let points = count(sweep.points.len() as u64, "point");
    let mut page = Page::new(&format!("{}: {points} over {}", prose(&sweep.model.model_id), prose(&axes(sweep))));
    page.callout(READ_FIRST, caveats(sweep));
    page.facts(best(sweep));
    page.paragraph(
        "Every number here is modelled from the configuration; nothing was measured. Times are roofline times at the peak rates \
         of a device, operation by operation. A real run takes longer; the forecast next to each time, for eager mode with \
         its 90% interval, says how much longer is likely.",
    );
    page.list(forecasts(sweep));
    page.chart("Times and rates along the first axis", chart);
    page.table(&table(sweep, sweep.points.iter().take(LINES)));
    page.paragraph(&match sweep.points.len().saturating_sub(LINES) {
        0 => format!("Exact numbers: {}.", link(csv, csv)),
        more => format!("{} has {} more.", link(csv, csv), count(more as u64, "point")),
    });
    let mut failures: Vec<&str> = sweep.failures().filter_map(|point| point.error.as_deref()).collect();
    failures.sort_unstable();
    failures.dedup();
    if !failures.is_empty() {
        page.heading("Not modelled");
        page.list(failures.iter().map(|failure| prose(failure)));
    }
    page.heading("Assumptions");
    page.list(sweep.assumptions.iter().map(assumption));
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::{sample, terminal};

    #[test]
    fn the_page_has_chart_table_failures_and_assumptions() {
        insta::assert_snapshot!(page(&sample::sweep(), "sweep.csv", "sweep.svg").markdown());
    }

    #[test]
    fn a_stopped_sweep_says_so_first() {
        let stopped = Sweep { stopped: true, points_planned: 10_000, ..sample::sweep() };
        let text = page(&stopped, "a", "b").markdown();
        assert!(text.find("The sweep stopped after 12 of 10,000 points.") < text.find("Every number"), "{text}");
        assert!(terminal(&stopped).starts_with("Read this first:\n  - The sweep stopped after 12"));
    }
}
