//! Columns whose number is known only when the sweep is: settings, then figures.

use types::{Sweep, SweepPoint};

use super::csv::value;
use crate::number::{UNKNOWN, grouped, milliseconds};
use crate::table::printable;

/// Heads and rows of text; `right` says which columns hold numbers.
pub(super) struct Columns {
    heads: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

/// A key without the part that all keys have.
pub(super) fn short(key: &str) -> &str {
    key.strip_prefix("workload.").unwrap_or(key)
}

impl Columns {
    /// The points as people read them.
    pub(super) fn new<'a>(sweep: &Sweep, points: impl Iterator<Item = &'a SweepPoint>) -> Self {
        let mut columns = Self { heads: Vec::new(), right: Vec::new(), rows: Vec::new() };
        let spread = sweep.points.iter().filter_map(|point| point.figures.as_ref()).any(|figures| figures.devices > 1);
        for axis in &sweep.axes {
            columns.head(short(&axis.key), axis.values.iter().all(serde_json::Value::is_number));
        }
        columns.head("device", false);
        for (head, right) in [
            ("first token", true),
            ("per token", true),
            ("tokens/s", true),
            ("memory", true),
            ("fits", false),
            ("sequences", true),
            ("bound", false),
        ] {
            columns.head(head, right);
        }
        if spread {
            columns.head("sent per step", true);
        }
        for point in points {
            columns.rows.push(row(sweep, point, spread));
        }
        columns
    }

    fn head(&mut self, head: &str, right: bool) {
        self.heads.push(head.to_owned());
        self.right.push(right);
    }

    pub(super) fn plain(&self) -> String {
        let widths = self.widths();
        let lines = std::iter::once(&self.heads).chain(&self.rows);
        lines.map(|row| self.padded(row, &widths).join("  ").trim_end().to_owned() + "\n").collect()
    }

    pub(super) fn markdown(&self) -> String {
        let widths: Vec<usize> = self.widths().into_iter().map(|width| width.max(3)).collect();
        let rule: Vec<String> = widths
            .iter()
            .zip(&self.right)
            .map(|(width, right)| if *right { "-".repeat(width - 1) + ":" } else { "-".repeat(*width) })
            .collect();
        let lines = [&self.heads, &rule].into_iter().chain(&self.rows);
        lines.map(|row| format!("| {} |\n", self.padded(row, &widths).join(" | "))).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = std::iter::once(&self.heads).chain(&self.rows).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        (0..self.heads.len()).map(width).collect()
    }

    fn padded(&self, row: &[String], widths: &[usize]) -> Vec<String> {
        let pad = |(column, cell): (usize, &String)| {
            let space = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            if self.right[column] { space + cell } else { cell.clone() + &space }
        };
        row.iter().enumerate().map(pad).collect()
    }
}

fn row(sweep: &Sweep, point: &SweepPoint, spread: bool) -> Vec<String> {
    let settings = sweep.axes.iter().map(|axis| point.settings.get(&axis.key).map(value).unwrap_or_default());
    let mut cells: Vec<String> = settings.map(|cell| printable(&cell).into_owned()).collect();
    let count = point.figures.as_ref().map_or(1, |figures| figures.devices);
    cells.push(if count > 1 { format!("{count} x {}", point.hardware) } else { point.hardware.clone() });
    let unknown = || UNKNOWN.to_owned();
    let Some(figures) = &point.figures else {
        cells.extend((0..6).map(|_| unknown()));
        cells.push("not modelled".to_owned());
        cells.extend(spread.then(unknown));
        return cells;
    };
    let bound = match &figures.decode_bound {
        Some(decode) if *decode != figures.prefill_bound => format!("{}, then {decode}", figures.prefill_bound),
        _ => figures.prefill_bound.clone(),
    };
    cells.extend([
        milliseconds(figures.ttft_ms),
        figures.time_per_output_token_ms.map_or_else(unknown, milliseconds),
        figures.decode_tokens_per_second.map_or_else(unknown, rate),
        figures.total_bytes.to_string(),
        if figures.fits { "yes" } else { "NO" }.to_owned(),
        figures.sequences_that_fit.map_or_else(unknown, grouped),
        bound,
    ]);
    cells.extend(spread.then(|| figures.step_sent_bytes.map_or_else(unknown, |bytes| bytes.to_string())));
    cells
}

/// A number of tokens per second without its unit, which the head says.
pub(super) fn rate(rate: f64) -> String {
    if rate >= 100.0 { grouped(rate.round() as u128) } else { format!("{rate:.1}") }
}
