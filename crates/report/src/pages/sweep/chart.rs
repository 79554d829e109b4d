//! `sweep.svg`: first token, time per token and tokens per second along the first axis, side by side.

use std::fmt::Write;

use types::{Sweep, SweepFigures};

use super::panel::{LEFT, MOST_LINES, SIZE, TOP, colour, draw, stroke};
use super::series::Series;
use crate::render::escape::escape;
use crate::words::number::count;

/// A title, and the figure a panel of that title shows.
type Panel = (&'static str, fn(&SweepFigures) -> Option<f64>);

/// The panels, from left to right.
const PANELS: [Panel; 3] = [
    ("time to first token, ms", |figures| Some(figures.ttft_ms)),
    ("time per output token, ms", |figures| figures.time_per_output_token_ms),
    ("decode, tokens/s", |figures| figures.decode_tokens_per_second),
];

const MARGIN: f64 = 16.0;
const HEADING: f64 = 46.0;
/// Beneath a panel: its ticks and the name of the axis.
const BOTTOM: f64 = 48.0;
const LEGEND_LINE: f64 = 18.0;
/// Width of a column of the legend.
const LEGEND_COLUMN: f64 = 370.0;

/// The sweep as an image of its own; its texts name the model and what a hollow mark means.
pub fn chart(sweep: &Sweep) -> String {
    let panels: Vec<(&str, Series)> =
        PANELS.iter().filter_map(|(title, figure)| Some((*title, Series::new(sweep, figure)?))).collect();
    let lines = panels.first().map_or(0, |(_, series)| series.lines.len());
    let shown = lines.min(MOST_LINES);
    let columns = panels.len().max(1);
    let width = MARGIN * 2.0 + columns as f64 * (LEFT + SIZE.0 + MARGIN);
    let across = ((width - 2.0 * MARGIN) / LEGEND_COLUMN).floor().max(1.0) as usize;
    let legend_top = HEADING + TOP + SIZE.1 + BOTTOM;
    let height = legend_top + LEGEND_LINE * (shown.div_ceil(across) as f64 + 1.5) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"42\" fill=\"#555\">{}, modelled: roofline times at peak rates</text>",
        escape(&sweep.model.model_id),
        count(sweep.points.len() as u64, "point")
    );
    for (index, (title, series)) in panels.iter().enumerate() {
        draw(&mut svg, title, series, (MARGIN + index as f64 * (LEFT + SIZE.0 + MARGIN), HEADING));
    }
    if let Some((_, series)) = panels.first() {
        for (index, line) in series.lines.iter().take(shown).enumerate() {
            let x = MARGIN + (index % across) as f64 * LEGEND_COLUMN;
            let y = legend_top + LEGEND_LINE * ((index / across) as f64 + 1.0);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke-width=\"2\" {}/>\
                 <circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 24.0,
                stroke(index),
                x + 12.0,
                colour(index),
                x + 32.0,
                y + 4.0,
                escape(&line.label)
            );
        }
    }
    let mut notes = Vec::new();
    if panels.is_empty() {
        notes.push("nothing varies, so there is nothing to draw".to_owned());
    }
    if sweep.points.iter().filter_map(|point| point.figures.as_ref()).any(|figures| !figures.fits) {
        notes.push("hollow: does not fit the device's memory".to_owned());
    }
    if lines > shown {
        notes.push(format!("{shown} of {lines} lines are drawn; the CSV has all"));
    }
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"{:.1}\" fill=\"#555\">{}</text>\n</svg>",
        height - MARGIN,
        escape(&notes.join("; "))
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::sample;

    #[test]
    fn three_panels_with_a_line_for_each_combination() {
        let svg = chart(&sample::sweep());
        assert_eq!(svg.matches("<polyline").count(), 3 * 3);
        assert!(svg.contains("hollow: does not fit"), "{svg}");
        // Nothing but numbers in coordinates.
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        insta::assert_snapshot!(svg);
    }

    #[test]
    fn a_single_point_has_nothing_to_draw_and_says_so() {
        let mut sweep = sample::sweep();
        sweep.axes.clear();
        sweep.hardware.truncate(1);
        sweep.points.truncate(1);
        assert!(chart(&sweep).contains("nothing varies"));
    }

    #[test]
    fn more_lines_than_can_be_told_apart_are_counted() {
        let mut sweep = sample::sweep();
        let first = sweep.points[0].clone();
        sweep.axes[0].values = (0..40).map(|index| serde_json::json!(format!("kind {index}"))).collect();
        sweep.points = sweep.axes[0]
            .values
            .clone()
            .into_iter()
            .map(|kind| {
                let mut point = first.clone();
                point.settings.insert("workload.attention".to_owned(), kind);
                point
            })
            .collect();
        assert!(chart(&sweep).contains("18 of 40 lines are drawn"));
    }
}
