//! Named rows with bars on one scale.

use std::fmt::Write;

use types::Nanos;

use super::chart::{Words, clipped, room, round_values, start};
use super::lettering::WIDTH;
use super::lettering::width;
use crate::render::escape::escape;

const ROW: f64 = 30.0;
const BAR: f64 = 16.0;
/// Room on the right for half a label of the axis, below for the axis, and for each line of the key.
const RIGHT: f64 = 30.0;
const AXIS: f64 = 22.0;
const KEY: f64 = 20.0;
const LETTERS: f64 = 12.0;

/// A row: its name, its bars, and the figure behind them.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) bars: Vec<Bar>,
    pub(super) figure: String,
}

/// A bar from one value to another. The bars of a row share its height, unless each starts where the one
/// before it ends: those make one bar.
#[derive(Default)]
pub(super) struct Bar {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) class: String,
    pub(super) hint: String,
    /// From where to where the true value may lie.
    pub(super) interval: Option<(f64, f64)>,
}

/// Rows on a common scale, which holds zero and every bar.
#[derive(Default)]
pub(super) struct Rows<'a> {
    pub(super) title: &'a str,
    pub(super) rows: &'a [Row],
    /// What is on the scale, and how its values are written.
    pub(super) axis: Option<(&'a str, Words)>,
    /// The least that the scale reaches to, so that two charts have one.
    pub(super) reach: f64,
    /// Room for figures, at least: of charts that share a scale.
    pub(super) room: f64,
    /// Classes with their names.
    pub(super) key: &'a [(String, String)],
}

/// Rows on an axis: what is on it, and how its values are written.
pub(super) fn rows(title: &str, rows: &[Row], axis: (&str, Words)) -> String {
    Rows { title, rows, axis: Some(axis), ..Rows::default() }.draw()
}

/// A time in nanoseconds, for an axis.
pub(super) fn nanoseconds(time: f64) -> String {
    Nanos::new(time as i64).to_string()
}

/// Where things are on the drawing.
struct Scale {
    low: f64,
    high: f64,
    /// Where names end. Figures follow, so that both are seen where a picture is wider than its screen.
    names: f64,
    left: f64,
    right: f64,
}

impl Scale {
    fn x(&self, value: f64) -> f64 {
        let per = (self.right - self.left) / (self.high - self.low).max(f64::MIN_POSITIVE);
        self.left + (value.clamp(self.low, self.high) - self.low) * per
    }
}

impl Rows<'_> {
    pub(super) fn draw(&self) -> String {
        let ends = self.rows.iter().flat_map(|row| &row.bars).flat_map(|bar| {
            let (low, high) = bar.interval.unwrap_or((bar.from, bar.to));
            [bar.from, bar.to, low, high]
        });
        let ends: Vec<f64> = ends.filter(|end| end.is_finite()).collect();
        let figures = self.rows.iter().map(|row| width(&row.figure, LETTERS) + 14.0).fold(self.room, f64::max);
        let names = room(self.rows.iter().map(|row| row.name.as_str()));
        let scale = Scale {
            low: ends.iter().copied().fold(0.0, f64::min),
            high: ends.iter().copied().fold(self.reach, f64::max),
            names,
            left: names + figures.min(WIDTH / 3.0),
            right: WIDTH - RIGHT,
        };
        let height = ROW * self.rows.len() as f64;
        let axis = if self.axis.is_some() { AXIS + 14.0 } else { 0.0 };
        let key = key(self.key, scale.left, height + axis);
        let mut svg = start(self.title, height + axis + KEY * key_lines(self.key, scale.left));
        svg += &self.grid(&scale, height);
        for (index, row) in self.rows.iter().enumerate() {
            svg += &drawn(row, &scale, ROW * index as f64 + (ROW - BAR) / 2.0);
        }
        svg + &key + "</svg>\n"
    }

    /// Lines of round values with their words, or the zero alone.
    fn grid(&self, scale: &Scale, height: f64) -> String {
        let mut svg = String::new();
        let line = |at: f64| format!("<line x1=\"{at:.1}\" y1=\"0\" x2=\"{at:.1}\" y2=\"{height:.0}\" class=\"g\"/>");
        if let Some((what, words)) = self.axis {
            for value in round_values(scale.low, scale.high, false) {
                let at = scale.x(value);
                let text = escape(&words(value));
                // Writing to a string cannot fail.
                let _ = writeln!(
                    svg,
                    "{}<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"m\">{text}</text>",
                    line(at),
                    height + 14.0
                );
            }
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"t\">{}</text>",
                f64::midpoint(scale.left, scale.right),
                height + 30.0,
                escape(what)
            );
        } else if scale.low < 0.0 {
            svg += &line(scale.x(0.0));
        }
        svg
    }
}

fn drawn(row: &Row, scale: &Scale, top: f64) -> String {
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" class=\"t\">{}<title>{}</title></text>",
        scale.names - 8.0,
        top + 12.5,
        escape(&clipped(&row.name)),
        escape(&row.name)
    );
    let follows = |pair: &[Bar]| pair[0].to == pair[1].from && pair[0].to >= pair[0].from;
    let is_one = row.bars.len() > 1 && row.bars.windows(2).all(follows) && row.bars.iter().any(|bar| bar.from > 0.0);
    let tall = if is_one { BAR } else { BAR / row.bars.len().max(1) as f64 };
    for (place, bar) in row.bars.iter().enumerate().filter(|(_, bar)| bar.from != bar.to) {
        let (left, right) = (scale.x(bar.from.min(bar.to)), scale.x(bar.from.max(bar.to)));
        let y = if is_one { top } else { top + tall * place as f64 };
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" class=\"{}\"><title>{}</title></rect>",
            (right - left).max(0.5),
            tall - 0.5,
            bar.class,
            escape(&bar.hint)
        );
        if let Some((from, to)) = bar.interval {
            let (from, to, y) = (scale.x(from), scale.x(to), y + tall / 2.0);
            let _ = writeln!(
                svg,
                "<path d=\"M{from:.1} {y:.1}H{to:.1}M{from:.1} {:.1}v6M{to:.1} {:.1}v6\" class=\"whisker\"/>",
                y - 3.0,
                y - 3.0
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"m\">{}</text>",
        scale.names + 4.0,
        top + 12.5,
        escape(&row.figure)
    );
    svg
}

/// Places of the entries of a key: as many on a line as fit.
fn places(key: &[(String, String)], left: f64) -> Vec<(f64, f64)> {
    let (mut x, mut line) = (left, 0.0);
    let place = |(_, name): &(String, String)| {
        let wide = width(name, LETTERS) + 34.0;
        if x + wide > WIDTH && x > left {
            (x, line) = (left, line + 1.0);
        }
        x += wide;
        (x - wide, line)
    };
    key.iter().map(place).collect()
}

/// Lines that a key takes.
pub(super) fn key_lines(key: &[(String, String)], left: f64) -> f64 {
    places(key, left).last().map_or(0.0, |(_, line)| line + 1.0)
}

/// Swatches with their names, below a height.
pub(super) fn key(key: &[(String, String)], left: f64, top: f64) -> String {
    let mut svg = String::new();
    for ((class, name), (x, line)) in key.iter().zip(places(key, left)) {
        let y = top + KEY * line;
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" class=\"{class}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"m\">{}</text>",
            y + 4.0,
            x + 17.0,
            y + 14.5,
            escape(name)
        );
    }
    svg
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;

    fn row(to: f64) -> Row {
        let bar = Bar { to, class: "f-gemm".to_owned(), interval: Some((to - 0.1, to + 0.1)), ..Bar::default() };
        Row { name: "<b>".to_owned(), bars: vec![bar], figure: String::new() }
    }

    #[test]
    fn rows_keep_to_their_scale() {
        let svg = rows("t", &[row(-0.5), row(1.0)], ("share", |value| value.to_string()));
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("NaN") && !svg.contains("width=\"-"), "{svg}");
    }

    #[test]
    fn two_charts_that_reach_as_far_have_one_scale_and_say_its_unit() {
        let words: Words = |value| Nanos::new(value as i64).to_string();
        let draw = |to: f64| {
            Rows { title: "t", rows: &[row(to)], axis: Some(("device time", words)), reach: 4e6, ..Rows::default() }
                .draw()
        };
        let ticks = |svg: &str| svg.matches(" ms</text>").count();
        let (one, other) = (draw(4e6), draw(1e6));
        assert!(ticks(&one) > 2 && ticks(&one) == ticks(&other), "{one}{other}");
        assert!(one.contains(">device time</text>"), "{one}");
    }

    #[test]
    fn a_key_has_a_swatch_for_each_name() {
        let entries =
            [("f-gemm", "GEMM"), ("f-copy", "<copies>")].map(|(class, name)| (class.to_owned(), name.to_owned()));
        let svg = key(&entries, 0.0, 0.0);
        assert!(svg.contains("class=\"f-gemm\"") && svg.contains("&lt;copies&gt;"), "{svg}");
    }
}
