//! `sweep.md`: the best points, the chart and the table.

use types::view::SweepView;

use super::table::table;
use super::terminal::{axes, bases, best};
use crate::pages::analytic::assumption;
use crate::render::Page;
use crate::render::text::{link, prose};
use crate::words::number::{count, grouped};

/// Lines of the table on the page; the CSV has all.
const LINES: usize = 500;

/// The page; `csv` and `chart` are the files beside it.
pub fn page(view: &SweepView<'_>, csv: &str, chart: &str) -> Page {
    let sweep = view.sweep;
    let points = count(sweep.points.len() as u64, "point");
    let mut page = Page::new(&format!("{}: {points} over {}", prose(&sweep.model.model_id), prose(&axes(sweep))));
    if sweep.stopped {
        let (done, all) = (grouped(sweep.points.len() as u128), grouped(sweep.points_planned));
        page.paragraph(&format!("**Stopped after {done} of {all} points.**"));
    }
    page.paragraph(
        "Every number here is modelled from the configuration. Times are roofline times at the peak rates of a device, operation \
         by operation; a real run takes longer, and the forecast beside each says how much longer is likely.",
    );
    page.list(bases(view.sweep).iter().map(|basis| prose(basis)));
    page.list(best(view).iter().map(|(_, text)| prose(text)));
    page.paragraph(&format!("![Times and rates along the first axis]({chart})"));
    page.table(&table(sweep, sweep.points.iter().take(LINES)));
    page.paragraph(&match sweep.points.len().saturating_sub(LINES) {
        0 => format!("Exact numbers: {}.", link(csv, csv)),
        more => format!("{} more are in {}.", count(more as u64, "point"), link(csv, csv)),
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
    use analysis::view::sweep;
    use types::Sweep;

    use super::*;
    use crate::pages::sweep::sample;

    #[test]
    fn the_page_has_chart_table_failures_and_assumptions() {
        insta::assert_snapshot!(page(&sweep(&sample::sweep()), "sweep.csv", "sweep.svg").markdown());
    }

    #[test]
    fn a_stopped_sweep_says_so_first() {
        let stopped = Sweep { stopped: true, points_planned: 10_000, ..sample::sweep() };
        assert!(page(&sweep(&stopped), "a", "b").markdown().contains("**Stopped after 12 of 10,000 points.**"));
    }
}
