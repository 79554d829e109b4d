//! Lines over an axis, and what drawings with axes share.

use std::fmt::Write;

use super::lettering::WIDTH;
use super::lettering::width;
use crate::render::escape::escape;

/// Size of the letters, and the least room for names.
const LETTERS: f64 = 12.0;
const LEAST_ROOM: f64 = 70.0;
/// Names longer than this are cut; the whole is in the hint.
const NAME: usize = 58;
const HEIGHT: f64 = 240.0;
const AXIS: f64 = 76.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 26.0;
/// Points of a line; more cannot be told apart.
const POINTS: usize = 1_500;

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
    /// What is on it.
    pub(super) title: &'static str,
    pub(super) words: Words,
    /// Only whole numbers are marked.
    pub(super) whole: bool,
}

/// Lines above zero. Absent where no line has two points.
pub(super) fn lines(title: &str, lines: &[Line], across: &Across, up: (&str, Words)) -> Option<String> {
    let all = || lines.iter().filter(|line| line.points.len() > 1).flat_map(|line| &line.points);
    let first = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let last = all().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let most = all().map(|point| point.1).fold(0.0, f64::max);
    if first.partial_cmp(&last) != Some(std::cmp::Ordering::Less) || most <= 0.0 {
        return None;
    }
    let x = |value: f64| AXIS + (WIDTH - AXIS - 12.0) * (value - first) / (last - first);
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / most);
    let mut svg = start(title, HEIGHT + 40.0);
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"0\" y=\"{:.1}\" class=\"t\">{}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"t\">{}</text>",
        TOP - 12.0,
        escape(up.0),
        f64::midpoint(AXIS, WIDTH),
        HEIGHT + 4.0,
        escape(across.title)
    );
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
            escape(&(up.1)(value))
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
            HEIGHT + 24.0,
            key + 22.0,
            HEIGHT + 28.0
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
    fn a_single_point_is_no_line_and_axes_say_what_is_on_them() {
        let line = Line { name: String::new(), class: "l-0", points: vec![(1.0, 1.0)], stepped: false };
        let across = Across { title: "step", words: |at| at.to_string(), whole: true };
        assert_eq!(lines("t", &[line], &across, ("time", |at| at.to_string())), None);
        let line = Line { name: String::new(), class: "l-0", points: vec![(1.0, 1.0), (3.0, 2.0)], stepped: false };
        let svg = lines("t", &[line], &across, ("time", |at| format!("{at} s"))).unwrap();
        let marks = [">1</text>", ">2</text>", ">3</text>", ">2 s</text>"];
        assert!(marks.iter().all(|mark| svg.matches(mark).count() == 1), "{svg}");
    }
}
