//! `sweep.md`: the best points, the chart and the table.

use types::Sweep;

use super::table::Columns;
use super::terminal::{axes, best};
use crate::markdown::{link, prose};
use crate::number::{count, grouped};

/// Lines of the table on the page; the CSV has all.
const LINES: usize = 500;

/// The page; `csv` and `chart` are the files beside it.
pub fn markdown(sweep: &Sweep, csv: &str, chart: &str) -> String {
    let mut text = format!(
        "# {}: {} over {}\n\n",
        prose(&sweep.model.model_id),
        count(sweep.points.len() as u64, "point"),
        prose(&axes(sweep))
    );
    if sweep.stopped {
        let (done, all) = (grouped(sweep.points.len() as u128), grouped(sweep.points_planned));
        text += &format!("**Stopped after {done} of {all} points.**\n\n");
    }
    text += "Every number here is modelled from the configuration. Times are the least the peak rates of a device allow, \
             operation by operation; a real run takes longer.\n\n";
    for line in best(sweep).lines() {
        text += &format!("- {}\n", prose(line.split_once(char::is_whitespace).map_or(line, |(_, rest)| rest.trim())));
    }
    text += &format!("\n![Times and rates along the first axis]({chart})\n\n");
    text += &Columns::new(sweep, sweep.points.iter().take(LINES)).markdown();
    if sweep.points.len() > LINES {
        text += &format!("\n{} more are in {}.\n", count((sweep.points.len() - LINES) as u64, "point"), link(csv, csv));
    } else {
        text += &format!("\nExact numbers: {}.\n", link(csv, csv));
    }
    let mut failures: Vec<&str> = sweep.failures().filter_map(|point| point.error.as_deref()).collect();
    failures.sort_unstable();
    failures.dedup();
    if !failures.is_empty() {
        text += "\n## Not modelled\n\n";
        text.extend(failures.iter().map(|failure| format!("- {}\n", prose(failure))));
    }
    text += "\n## Assumptions\n\n";
    text.extend(sweep.assumptions.iter().map(|one| format!("- {}: {}\n", one.origin, prose(&one.text))));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::sample;

    #[test]
    fn the_page_has_chart_table_failures_and_assumptions() {
        insta::assert_snapshot!(markdown(&sample::sweep(), "sweep.csv", "sweep.svg"));
    }

    #[test]
    fn a_stopped_sweep_says_so_first() {
        let stopped = Sweep { stopped: true, points_planned: 10_000, ..sample::sweep() };
        assert!(markdown(&stopped, "a", "b").contains("**Stopped after 12 of 10,000 points.**"));
    }
}
