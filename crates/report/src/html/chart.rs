//! Two kinds of drawing that several pictures share: named rows with bars, and lines over an axis.

use std::fmt::Write;

use super::bars::WIDTH;
use super::lettering::width;
use crate::render::escape::escape;

const ROW: f64 = 30.0;
const BAR: f64 = 16.0;
/// Room for figures on the right.
const RIGHT: f64 = 190.0;
/// Size of the letters, and the least room for names.
const LETTERS: f64 = 12.0;
const LEAST_ROOM: f64 = 70.0;
/// Names longer than this are cut; the whole is in the hint.
const NAME: usize = 58;
const HEIGHT: f64 = 240.0;
const AXIS: f64 = 76.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 12.0;
/// Points of a line; more cannot be told apart.
const POINTS: usize = 1_500;

/// A row: its name, its bars, and the figure behind them.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) bars: Vec<Bar>,
    pub(super) figure: String,
}

/// A bar from one value to another. The bars of a row share its height, unless each starts where the one
/// before it ends: those make one bar.
pub(super) struct Bar {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) class: &'static str,
    pub(super) hint: String,
    /// From where to where the true value may lie.
    pub(super) interval: Option<(f64, f64)>,
}

/// Rows on a common scale, which holds zero and every bar.
pub(super) fn rows(title: &str, rows: &[Row]) -> String {
    let ends = rows.iter().flat_map(|row| &row.bars).flat_map(|bar| {
        let (low, high) = bar.interval.unwrap_or((bar.from, bar.to));
        [bar.from, bar.to, low, high]
    });
    let ends: Vec<f64> = ends.filter(|end| end.is_finite()).collect();
    let low = ends.iter().copied().fold(0.0, f64::min);
    let high = ends.iter().copied().fold(0.0, f64::max);
    let left = room(rows.iter().map(|row| row.name.as_str()));
    let scale = (WIDTH - left - RIGHT) / (high - low).max(f64::MIN_POSITIVE);
    let x = |value: f64| left + (value.clamp(low, high) - low) * scale;
    let height = ROW * rows.len() as f64;
    let mut svg = start(title, height);
    // Writing to a string cannot fail.
    if low < 0.0 {
        let zero = x(0.0);
        let _ = writeln!(svg, "<line x1=\"{zero:.1}\" y1=\"0\" x2=\"{zero:.1}\" y2=\"{height:.0}\" class=\"g\"/>");
    }
    for (index, row) in rows.iter().enumerate() {
        let top = ROW * index as f64 + (ROW - BAR) / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" class=\"t\">{}<title>{}</title></text>",
            left - 8.0,
            top + 12.5,
            escape(&clipped(&row.name)),
            escape(&row.name)
        );
        let follows = |pair: &[Bar]| pair[0].to == pair[1].from && pair[0].to >= pair[0].from;
        let is_one =
            row.bars.len() > 1 && row.bars.windows(2).all(follows) && row.bars.iter().any(|bar| bar.from > 0.0);
        let tall = if is_one { BAR } else { BAR / row.bars.len().max(1) as f64 };
        for (place, bar) in row.bars.iter().enumerate().filter(|(_, bar)| bar.from != bar.to) {
            let (left, right) = (x(bar.from.min(bar.to)), x(bar.from.max(bar.to)));
            let y = if is_one { top } else { top + tall * place as f64 };
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" class=\"{}\"><title>{}</title></rect>",
                (right - left).max(1.0),
                tall - 0.5,
                bar.class,
                escape(&bar.hint)
            );
            if let Some((from, to)) = bar.interval {
                let (from, to, y) = (x(from), x(to), y + tall / 2.0);
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
            WIDTH - RIGHT + 10.0,
            top + 12.5,
            escape(&row.figure)
        );
    }
    svg + "</svg>\n"
}

/// A line: its name, its class, and its points from left to right.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, f64)>,
    /// A value holds until the next point, rather than changing on the way to it.
    pub(super) stepped: bool,
}

/// How the values of an axis are written.
pub(super) type Words = fn(f64) -> String;

/// An axis from left to right.
pub(super) struct Across {
    pub(super) words: Words,
    /// Only whole numbers are marked.
    pub(super) whole: bool,
}

/// Lines above zero. Absent where no line has two points.
pub(super) fn lines(title: &str, lines: &[Line], across: &Across, up: Words) -> Option<String> {
    let all = || lines.iter().filter(|line| line.points.len() > 1).flat_map(|line| &line.points);
    let first = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let last = all().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let most = all().map(|point| point.1).fold(0.0, f64::max);
    if first.partial_cmp(&last) != Some(std::cmp::Ordering::Less) || most <= 0.0 {
        return None;
    }
    let x = |value: f64| AXIS + (WIDTH - AXIS - 12.0) * (value - first) / (last - first);
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / most);
    let mut svg = start(title, HEIGHT + 20.0);
    // Writing to a string cannot fail.
    for value in round_values(0.0, most, false) {
        let _ = writeln!(
            svg,
            "<line x1=\"{AXIS}\" y1=\"{0:.1}\" x2=\"{1:.1}\" y2=\"{0:.1}\" class=\"g\"/>\
             <text x=\"{2:.1}\" y=\"{3:.1}\" text-anchor=\"end\" class=\"m\">{4}</text>",
            y(value),
            WIDTH - 12.0,
            AXIS - 6.0,
            y(value) + 4.0,
            escape(&up(value))
        );
    }
    // The first and the last step are what a reader looks for.
    let mut marks = round_values(first, last, across.whole);
    if across.whole {
        let far = (last - first) / 12.0;
        marks.retain(|mark| mark - first > far && last - mark > far);
        marks.insert(0, first);
        marks.push(last);
    }
    for mark in marks {
        let anchor = if mark <= first {
            "start"
        } else if mark >= last {
            "end"
        } else {
            "middle"
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" class=\"m\">{}</text>",
            x(mark),
            HEIGHT - BOTTOM + 16.0,
            escape(&(across.words)(mark))
        );
    }
    let mut key = AXIS;
    for line in lines.iter().filter(|line| line.points.len() > 1) {
        let mut path = String::new();
        for (index, point) in thinned(&line.points).iter().enumerate() {
            let (at, value) = (x(point.0), y(point.1));
            let _ = match (index, line.stepped) {
                (0, _) => write!(path, "M{at:.1} {value:.1}"),
                (_, true) => write!(path, "H{at:.1}V{value:.1}"),
                (_, false) => write!(path, "L{at:.1} {value:.1}"),
            };
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" class=\"line {0}\"><title>{1}</title></path>\
             <path d=\"M{key:.0} {2:.0}h16\" class=\"line {0}\"/><text x=\"{3:.0}\" y=\"{4:.0}\" class=\"t\">{1}</text>",
            line.class,
            escape(&line.name),
            HEIGHT + 8.0,
            key + 22.0,
            HEIGHT + 12.0
        );
        key += 46.0 + width(&line.name, LETTERS);
    }
    Some(svg + "</svg>\n")
}

pub(super) fn start(title: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n",
        escape(title)
    )
}

/// Some five round values from one to another.
pub(super) fn round_values(first: f64, last: f64, whole: bool) -> Vec<f64> {
    let rough = (last - first) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough).max(if whole { 1.0 } else { f64::MIN_POSITIVE });
    let count = ((last - (first / step).ceil() * step) / step + 1e-9).floor();
    (0..=count.clamp(0.0, 20.0) as u32).map(|part| ((first / step).ceil() + f64::from(part)) * step).collect()
}

/// The highest point of each stretch where there are more than can be drawn: a peak must not be lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let highest = |stretch: &[(f64, f64)]| stretch.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    points.chunks(points.len().div_ceil(POINTS)).filter_map(highest).collect()
}

/// The room on the left that these names need.
pub(super) fn room<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    names.map(|name| width(&clipped(name), LETTERS) + 14.0).fold(LEAST_ROOM, f64::max)
}

/// A name that fits the room on the left.
pub(super) fn clipped(name: &str) -> String {
    if name.chars().count() <= NAME { name.to_owned() } else { name.chars().take(NAME - 1).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_drawn_however_many_points_there_are() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), 1.0)).collect();
        points[54_321].1 = 9.0;
        let kept = thinned(&points);
        assert!(kept.len() <= POINTS && kept.iter().any(|point| point.1 > 8.0), "{}", kept.len());
    }

    #[test]
    fn an_axis_has_round_values() {
        assert_eq!(round_values(0.0, 64.8, false), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(round_values(0.0, 7.02, false), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(round_values(1.0, 20.0, true), [5.0, 10.0, 15.0, 20.0]);
        assert_eq!(round_values(1.0, 3.0, true), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn rows_keep_to_their_scale_and_a_single_point_is_no_line() {
        let bar = |to| Bar { from: 0.0, to, class: "c-0", hint: String::new(), interval: Some((to - 0.1, to + 0.1)) };
        let row = |to| Row { name: "<b>".to_owned(), bars: vec![bar(to)], figure: String::new() };
        let svg = rows("t", &[row(-0.5), row(1.0)]);
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("NaN") && !svg.contains("width=\"-"), "{svg}");
        let line = Line { name: String::new(), class: "l-0", points: vec![(1.0, 1.0)], stepped: false };
        let across = Across { words: |at| at.to_string(), whole: true };
        assert_eq!(lines("t", &[line], &across, |at| at.to_string()), None);
        let line = Line { name: String::new(), class: "l-0", points: vec![(1.0, 1.0), (3.0, 2.0)], stepped: false };
        let svg = lines("t", &[line], &across, |at| format!("{at} s")).unwrap();
        let marks = [">1</text>", ">2</text>", ">3</text>", ">2 s</text>"];
        assert!(marks.iter().all(|mark| svg.matches(mark).count() == 1), "{svg}");
    }
}
