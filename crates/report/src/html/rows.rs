//! Named rows with bars on one scale.

use std::fmt::Write;

use types::Nanos;

use super::lettering::{WIDTH, width};
use super::palette::ink;
use super::plot::{Axis, Plot, Scale, Words, clipped, drawing, room};
use crate::render::escape::escape;
use crate::words::number::{percent, time_share};

const ROW: f64 = 30.0;
const BAR: f64 = 16.0;
/// Room on the right for half a label of the axis.
const RIGHT: f64 = 30.0;
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
    from: f64,
    to: f64,
    class: String,
    hint: String,
    /// Written into the bar where it fits.
    label: String,
    /// From where to where the true value may lie.
    interval: Option<(f64, f64)>,
}

impl Bar {
    /// A bar from zero.
    pub(super) fn new(to: f64, class: impl Into<String>, hint: String) -> Self {
        Self { to, class: class.into(), hint, ..Self::default() }
    }

    pub(super) fn of_time(time: Nanos, class: impl Into<String>, what: &str) -> Self {
        Self::new(time.get() as f64, class, format!("{what}: {time}"))
    }

    /// The same from another value on.
    pub(super) fn starting(self, from: f64) -> Self {
        Self { from, ..self }
    }

    pub(super) fn within(self, interval: Option<(f64, f64)>) -> Self {
        Self { interval, ..self }
    }
}

/// A part of a time, with its colour.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) time: Nanos,
}

impl Part {
    pub(super) fn new(name: impl Into<String>, class: impl Into<String>, time: Nanos) -> Self {
        Self { name: name.into(), class: class.into(), time }
    }

    /// Its name with its time and its share of a whole.
    pub(super) fn of(&self, whole: Nanos) -> String {
        format!("{} {} ({})", self.name, self.time, percent(time_share(self.time, whole)))
    }
}

/// Parts as one bar, each beginning where the one before it ends.
pub(super) fn stacked(parts: &[Part], start: Nanos, whole: Nanos) -> Vec<Bar> {
    let mut at = start.get() as f64;
    let bar = |part: &Part| {
        let from = at;
        at += part.time.get() as f64;
        Bar { label: part.name.clone(), ..Bar::new(at, &*part.class, part.of(whole)).starting(from) }
    };
    parts.iter().filter(|part| part.time > Nanos::ZERO).map(bar).collect()
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
    /// Ends of bars are dots on a logarithmic scale, which has no zero to draw bars from.
    pub(super) are_dots: bool,
}

/// Rows on an axis: what is on it, and how its values are written. Absent without rows.
pub(super) fn rows(title: &str, rows: &[Row], axis: (&str, Words)) -> Option<String> {
    with_key(title, rows, axis, &[])
}

/// The same with classes and their names below.
pub(super) fn with_key(title: &str, rows: &[Row], axis: (&str, Words), key: &[(String, String)]) -> Option<String> {
    (!rows.is_empty()).then(|| Rows { title, rows, axis: Some(axis), key, ..Rows::default() }.draw())
}

/// Classes with their names, for a key.
pub(super) fn named<const N: usize>(entries: [(&str, &str); N]) -> [(String, String); N] {
    entries.map(|(class, name)| (class.to_owned(), name.to_owned()))
}

/// A time in nanoseconds, for an axis.
pub(super) fn nanoseconds(time: f64) -> String {
    Nanos::new(time as i64).to_string()
}

impl Rows<'_> {
    pub(super) fn draw(&self) -> String {
        let bars = || self.rows.iter().flat_map(|row| &row.bars);
        let ends = bars().flat_map(|bar| {
            let (low, high) = bar.interval.unwrap_or((bar.from, bar.to));
            [bar.from, bar.to, low, high]
        });
        let ends: Vec<f64> = ends.filter(|end| end.is_finite()).collect();
        let (low, high) = (ends.iter().copied().fold(0.0, f64::min), ends.iter().copied().fold(self.reach, f64::max));
        let figures = self.rows.iter().map(|row| width(&row.figure, LETTERS) + 14.0).fold(self.room, f64::max);
        // Figures follow names, so that both are seen where a picture is wider than its screen.
        let names = room(self.rows.iter().map(|row| row.name.as_str()));
        let left = names + figures.min(WIDTH / 3.0);
        let (what, words) = self.axis.unwrap_or(("", |value| value.to_string()));
        let across = if self.are_dots {
            Scale::decades(bars().flat_map(|bar| bar.interval.map_or([bar.to; 2], |(low, high)| [low, high])))
        } else {
            Scale::between(low, high.max(low + f64::MIN_POSITIVE))
        };
        let plot = Plot {
            left,
            top: 0.0,
            width: WIDTH - RIGHT - left,
            height: ROW * self.rows.len() as f64,
            across: Axis::new(what, across, words),
            up: None,
        };
        let mut body = plot.grid();
        for (index, row) in self.rows.iter().enumerate() {
            body += &drawn(row, &plot, names, ROW * index as f64 + (ROW - BAR) / 2.0, self.are_dots);
        }
        drawing(self.title, plot.bottom(), &body, self.key, left)
    }
}

fn drawn(row: &Row, plot: &Plot, names: f64, top: f64, are_dots: bool) -> String {
    let mut svg = String::new();
    let (right, left, y) = (names - 8.0, names + 4.0, top + 12.5);
    let (name, whole, figure) = (escape(&clipped(&row.name)), escape(&row.name), escape(&row.figure));
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{right:.1}\" y=\"{y:.1}\" text-anchor=\"end\" class=\"t\">{name}<title>{whole}</title></text>\
         <text x=\"{left:.1}\" y=\"{y:.1}\" class=\"m\">{figure}</text>",
    );
    let follows = |pair: &[Bar]| pair[0].to == pair[1].from && pair[0].to >= pair[0].from;
    let is_one = row.bars.len() > 1 && row.bars.windows(2).all(follows) && row.bars.iter().any(|bar| bar.from > 0.0);
    let share_height = !is_one && !are_dots;
    let tall = if share_height { BAR / row.bars.len().max(1) as f64 } else { BAR };
    for (place, bar) in row.bars.iter().enumerate().filter(|(_, bar)| bar.from != bar.to) {
        let (left, right) = (plot.x(bar.from.min(bar.to)), plot.x(bar.from.max(bar.to)));
        let y = if share_height { top + tall * place as f64 } else { top };
        let (hint, class, middle) = (escape(&bar.hint), &bar.class, y + tall / 2.0);
        let interval = bar.interval.map(|(from, to)| whisker(plot.x(from), plot.x(to), middle)).unwrap_or_default();
        if are_dots {
            // The interval would cross the dot.
            let dot = format!("<circle cx=\"{right:.1}\" cy=\"{middle:.1}\" r=\"5\" class=\"{class}\">");
            svg += &format!("{interval}{dot}<title>{hint}</title></circle>\n");
            continue;
        }
        let (wide, high) = ((right - left).max(0.5), tall - 0.5);
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.2}\" y=\"{y:.1}\" width=\"{wide:.2}\" height=\"{high:.1}\" class=\"{class}\"><title>{hint}</title></rect>\
             {interval}",
        );
        if !bar.label.is_empty() && width(&bar.label, LETTERS) + 8.0 < wide {
            let (x, y, ink) = (left + 4.0, y + 12.0, ink(class));
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{ink}\">{}</text>", escape(&bar.label));
        }
    }
    svg
}

/// From where to where a true value may lie.
fn whisker(from: f64, to: f64, y: f64) -> String {
    let top = y - 3.0;
    format!("<path d=\"M{from:.1} {y:.1}H{to:.1}M{from:.1} {top:.1}v6M{to:.1} {top:.1}v6\" class=\"whisker\"/>")
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;

    fn row(to: f64) -> Row {
        let bar = Bar::new(to, "f-gemm", String::new()).within(Some((to - 0.1, to + 0.1)));
        Row { name: "<b>".to_owned(), bars: vec![bar], figure: String::new() }
    }

    #[test]
    fn rows_keep_to_their_scale() {
        let svg = rows("t", &[row(-0.5), row(1.0)], ("share", |value| value.to_string())).unwrap();
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("NaN") && !svg.contains("width=\"-"), "{svg}");
        assert_eq!(rows("t", &[], ("share", |value| value.to_string())), None);
    }

    #[test]
    fn two_charts_that_reach_as_far_have_one_scale_and_say_its_unit() {
        let draw = |to: f64| {
            let axis = Some(("device time", nanoseconds as Words));
            Rows { title: "t", rows: &[row(to)], axis, reach: 4e6, ..Rows::default() }.draw()
        };
        let ticks = |svg: &str| svg.matches(" ms</text>").count();
        let (one, other) = (draw(4e6), draw(1e6));
        assert!(ticks(&one) > 2 && ticks(&one) == ticks(&other), "{one}{other}");
        assert!(one.contains(">device time</text>"), "{one}");
    }

    #[test]
    fn parts_follow_each_other_and_say_their_share() {
        let parts = [3, 0, 1].map(|time| Part::new("p", "f-gemm", Nanos::new(time)));
        let bars = stacked(&parts, Nanos::new(10), Nanos::new(4));
        let places: Vec<_> = bars.iter().map(|bar| (bar.from, bar.to, bar.hint.as_str())).collect();
        assert_eq!(places, [(10.0, 13.0, "p 3.00 ns (75.0%)"), (13.0, 14.0, "p 1.00 ns (25.0%)")]);
    }
}
