//! One figure of a chart: axes, ticks and lines.

use std::fmt::Write;

use super::scale::Scale;
use super::series::Series;
use super::table::short;
use crate::render::escape::escape;

/// Width and height of the part that is drawn into.
pub(super) const SIZE: (f64, f64) = (300.0, 240.0);
/// Room for the ticks on the left.
pub(super) const LEFT: f64 = 56.0;
/// Room for the title above.
pub(super) const TOP: f64 = 34.0;

/// Ticks beneath a panel that are legible.
const MOST_TICKS: usize = 8;

/// Colours that people who see fewer of them still tell apart (Okabe and Ito 2008), black and yellow left out.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// How lines beyond the colours are drawn.
const DASHES: [&str; 3] = ["", "6 3", "2 3"];

/// Lines that can still be told apart.
pub(super) const MOST_LINES: usize = COLOURS.len() * DASHES.len();

/// Stroke and dashes of line `index`.
pub(super) fn stroke(index: usize) -> String {
    let (colour, dash) = (COLOURS[index % COLOURS.len()], DASHES[index / COLOURS.len() % DASHES.len()]);
    let dashes = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    format!("stroke=\"{colour}\"{dashes}")
}

pub(super) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Draws `series` with its upper left corner at `(left, top)`.
pub(super) fn draw(svg: &mut String, title: &str, series: &Series, (left, top): (f64, f64)) {
    let (width, height) = SIZE;
    let lines = &series.lines[..series.lines.len().min(MOST_LINES)];
    let ys = lines.iter().flat_map(|line| line.points.iter().map(|point| point.y));
    let (across, up) =
        (Scale::of_settings(series.ticks.iter().map(|tick| tick.0), series.numeric), Scale::of_figures(ys));
    let (left, top) = (left + LEFT, top + TOP);
    let x = |value: f64| left + 10.0 + (width - 20.0) * across.place(value);
    let y = |value: f64| top + height * (1.0 - up.place(value));
    // Writing to a string cannot fail.
    let _ =
        writeln!(svg, "<text x=\"{left:.1}\" y=\"{:.1}\" font-weight=\"bold\">{}</text>", top - 12.0, escape(title));
    for tick in up.ticks() {
        let at = y(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{left:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
            left + width,
            left - 6.0,
            at + 4.0,
            number(tick)
        );
    }
    let every = series.ticks.len().div_ceil(MOST_TICKS).max(1);
    for (value, text) in series.ticks.iter().step_by(every) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            x(*value),
            top + height + 17.0,
            escape(text)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        left + width / 2.0,
        top + height + 36.0,
        escape(short(&series.axis))
    );
    let _ = writeln!(
        svg,
        "<path d=\"M{left:.1} {top:.1} V{:.1} H{:.1}\" fill=\"none\" stroke=\"#888\"/>",
        top + height,
        left + width
    );
    for (index, line) in lines.iter().enumerate() {
        let places: Vec<String> =
            line.points.iter().map(|point| format!("{:.1},{:.1}", x(point.x), y(point.y))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke-width=\"2\" {}/>",
            places.join(" "),
            stroke(index)
        );
        for point in &line.points {
            let fill = if point.fits { colour(index) } else { "white" };
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1.5\"/>",
                x(point.x),
                y(point.y),
                colour(index)
            );
        }
    }
}

/// A tick with as few digits as it needs.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{}G", value / 1e9),
        size if size >= 1e6 => format!("{}M", value / 1e6),
        size if size >= 1e4 => format!("{}k", value / 1e3),
        _ => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let numbers = [0.0, 0.05, 2.5, 100.0, 20_000.0, 3e6, 1e10].map(number);
        assert_eq!(numbers, ["0", "0.05", "2.5", "100", "20k", "3M", "10G"]);
    }
}
