//! What `llm-perf analyze --sweep` prints: the best points, how figures run along the first axis, and the table.

use std::fmt::Write;

use types::view::SweepView;
use types::{Sweep, SweepPoint};

use super::series::Series;
use super::table::{short, table};
use crate::render::table::printable;
use crate::words::number::{count, grouped, milliseconds, rate};

/// Lines of the table that are printed; the files have all.
const LINES: usize = 40;

/// Lines with a run of bars.
const RUNS: usize = 8;

/// Bars from low to high.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The sweep as plain text.
pub fn terminal(view: &SweepView<'_>) -> String {
    let sweep = view.sweep;
    let mut text = format!(
        "model     {}, {} parameters\nsweep     {} over {}\n",
        printable(&sweep.model.model_id),
        grouped(sweep.model.parameters.total),
        count(sweep.points.len() as u64, "point"),
        axes(sweep),
    );
    for (label, line) in best(view) {
        let _ = writeln!(text, "{label:<10}{line}");
    }
    let _ = write!(text, "\n{}", table(sweep, sweep.points.iter().take(LINES)));
    if sweep.points.len() > LINES {
        let _ = writeln!(text, "... and {} more", count((sweep.points.len() - LINES) as u64, "point"));
    }
    let runs = runs(sweep);
    if !runs.is_empty() {
        text.push('\n');
        text += &runs;
    }
    text += "\nModelled, nothing measured: times are roofline times at the devices' peak rates.\n";
    for basis in bases(sweep) {
        let _ = writeln!(text, "{basis}");
    }
    text
}

/// What the forecasts rest on, device by device.
pub(super) fn bases(sweep: &Sweep) -> Vec<String> {
    let of = |device: &types::SweepDevice| {
        let basis = device.forecast_basis.as_ref()?;
        Some(format!("Forecast on {} (eager, 90% interval): {}.", device.id, printable(basis)))
    };
    sweep.hardware.iter().filter_map(of).collect()
}

/// What varies, on one line.
pub(super) fn axes(sweep: &Sweep) -> String {
    let mut parts: Vec<String> =
        sweep.axes.iter().map(|axis| format!("{} {}", axis.values.len(), short(&axis.key))).collect();
    parts.push(count(sweep.hardware.len() as u64, "device"));
    parts.join(" x ")
}

/// The points one would choose among those that fit, each with a label.
pub(super) fn best(view: &SweepView<'_>) -> Vec<(&'static str, String)> {
    if !view.fits {
        return vec![("fits", "no point fits its device".to_owned())];
    }
    let throughput = view
        .highest_throughput
        .map(|(point, tokens)| ("highest", format!("{} tokens/s: {}", rate(tokens), describe(view.sweep, point))));
    let ttft = view.lowest_ttft.map(|(point, figures)| {
        let first = milliseconds(figures.ttft_ms);
        ("soonest", format!("{first} to the first token: {}", describe(view.sweep, point)))
    });
    throughput.into_iter().chain(ttft).collect()
}

/// A point by its settings.
fn describe(sweep: &Sweep, point: &SweepPoint) -> String {
    let mut parts: Vec<String> = sweep
        .axes
        .iter()
        .filter_map(|axis| Some(format!("{}={}", short(&axis.key), super::csv::value(point.settings.get(&axis.key)?))))
        .collect();
    parts.push(point.hardware.clone());
    printable(&parts.join(", ")).into_owned()
}

/// How many tokens a second along the first axis, a line of bars for each series.
fn runs(sweep: &Sweep) -> String {
    let Some(series) = Series::new(sweep, |figures| figures.decode_tokens_per_second) else { return String::new() };
    let highest = series.lines.iter().flat_map(|line| line.points.iter().map(|point| point.y)).fold(0.0, f64::max);
    if highest <= 0.0 || series.ticks.len() < 3 {
        return String::new();
    }
    let shown = &series.lines[..series.lines.len().min(RUNS)];
    let width = shown.iter().map(|line| line.label.chars().count()).max().unwrap_or_default();
    let first = series.ticks.first().map_or("", |tick| tick.1.as_str());
    let last = series.ticks.last().map_or("", |tick| tick.1.as_str());
    let mut text = format!("tokens/s along {} {first} to {last}\n", short(&series.axis));
    for line in shown {
        let bars: String = line
            .points
            .iter()
            .map(|point| BARS[((point.y / highest * BARS.len() as f64) as usize).min(BARS.len() - 1)])
            .collect();
        let (low, high) = (line.points.first(), line.points.last());
        let (low, high) = (low.map_or(0.0, |point| point.y), high.map_or(0.0, |point| point.y));
        let _ = writeln!(text, "{:width$}  {bars}  {} to {}", printable(&line.label), rate(low), rate(high));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::sample;

    fn printed(sweep: &Sweep) -> String {
        terminal(&analysis::view::sweep(sweep))
    }

    #[test]
    fn the_table_follows_the_best_points() {
        insta::assert_snapshot!(printed(&sample::sweep()));
    }

    #[test]
    fn a_long_sweep_is_cut_and_says_so() {
        let mut sweep = sample::sweep();
        let one = sweep.points[0].clone();
        sweep.points.extend(std::iter::repeat_n(one, 100));
        let text = printed(&sweep);
        assert!(text.contains(&format!("... and {} points more", sweep.points.len() - LINES)), "{text}");
    }

    #[test]
    fn where_nothing_fits_nothing_is_recommended() {
        let mut sweep = sample::sweep();
        for figures in sweep.points.iter_mut().filter_map(|point| point.figures.as_mut()) {
            figures.fits = false;
        }
        let best = best(&analysis::view::sweep(&sweep));
        assert_eq!(best, [("fits", "no point fits its device".to_owned())]);
    }
}
