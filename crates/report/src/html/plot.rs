//! Plots: axes with round values, lines and dots between them, and what every drawing has in common.

use std::fmt::Write;

use super::lettering::WIDTH;
use super::lettering::width;
use crate::render::escape::escape;

/// Size of the letters, and the least room for names.
const LETTERS: f64 = 12.0;
const LEAST_ROOM: f64 = 70.0;
/// Names longer than this are cut; the whole is in the hint.
const NAME: usize = 58;
/// Room on the left for the values of an axis, above for its title, below for the axis across, and for a line of the key.
pub(super) const LEFT: f64 = 76.0;
pub(super) const TOP: f64 = 26.0;
const BELOW: f64 = 40.0;
const KEY: f64 = 20.0;
/// Points of a line; more cannot be told apart.
const POINTS: usize = 1_500;
/// Largest over smallest value from which an axis is logarithmic.
const LOGARITHMIC: f64 = 20.0;

/// How the values of an axis are written.
pub(super) type Words = fn(f64) -> String;

/// From values to places between zero and one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    logarithmic: bool,
}

impl Scale {
    pub(super) fn between(low: f64, high: f64) -> Self {
        // A single value stands in the middle.
        let (low, high) = if low < high { (low, high) } else { (low - 1.0, low + 1.0) };
        Self { low, high, logarithmic: false }
    }

    /// From the first value to the last; logarithmic where they are numbers that spread far.
    pub(super) fn over(values: impl Iterator<Item = f64> + Clone, numeric: bool) -> Self {
        let (low, high) = range(values);
        if numeric && low > 0.0 && high / low >= LOGARITHMIC / 2.5 {
            return Self { low, high, logarithmic: true };
        }
        Self::between(low, high)
    }

    /// From zero, or in whole powers of ten where values spread far.
    pub(super) fn of_figures(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (low, high) = range(values.clone());
        if low > 0.0 && high / low >= LOGARITHMIC {
            return Self::decades(values);
        }
        Self::between(0.0, if high > 0.0 { high * 1.05 } else { 1.0 })
    }

    /// Whole powers of ten around the values.
    pub(super) fn decades(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (low, high) = range(values.filter(|value| *value > 0.0));
        let low = if low > 0.0 { low.log10().floor() } else { 0.0 };
        Self { low: 10f64.powf(low), high: 10f64.powf(high.log10().ceil().max(low + 1.0)), logarithmic: true }
    }

    fn place(&self, value: f64) -> f64 {
        let of = |value: f64| if self.logarithmic { value.ln() } else { value };
        (of(value.clamp(self.low, self.high)) - of(self.low)) / (of(self.high) - of(self.low))
    }

    /// Some five round values, or powers of ten.
    pub(super) fn marks(&self) -> Vec<f64> {
        if self.logarithmic {
            let (first, last) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
            let step = (last - first).div_euclid(9) + 1;
            return (first..=last)
                .step_by(step.max(1).unsigned_abs() as usize)
                .map(|power| 10f64.powi(power))
                .collect();
        }
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough).max(f64::MIN_POSITIVE);
        let first = (self.low / step).ceil();
        let count = ((self.high - first * step) / step + 1e-9).floor();
        (0..=count.clamp(0.0, 20.0) as u32).map(|part| (first + f64::from(part)) * step).collect()
    }
}

fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) }
}

/// An axis: what is on it, and the values that are marked.
pub(super) struct Axis {
    pub(super) title: String,
    pub(super) scale: Scale,
    pub(super) marks: Vec<(f64, String)>,
}

impl Axis {
    pub(super) fn new(title: &str, scale: Scale, words: Words) -> Self {
        let marks = scale.marks().into_iter().map(|value| (value, words(value))).collect();
        Self { title: title.to_owned(), scale, marks }
    }

    /// Of things that are counted from one: the first, the last and some between are marked.
    pub(super) fn counted(title: &str, last: f64) -> Self {
        let scale = Scale::between(1.0, last);
        let far = (last - 1.0) / 12.0;
        let mut marks = scale.marks();
        marks.retain(|mark| mark.fract() == 0.0 && mark - 1.0 > far && last - mark > far);
        marks.insert(0, 1.0);
        marks.push(last);
        Self {
            title: title.to_owned(),
            scale,
            marks: marks.into_iter().map(|mark| (mark, format!("{mark:.0}"))).collect(),
        }
    }
}

/// Where a plot is on its drawing, and its axes. Without one from the bottom up, values across have lines.
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) across: Axis,
    pub(super) up: Option<Axis>,
}

impl Plot {
    /// One as wide as a drawing.
    pub(super) fn wide(height: f64, across: Axis, up: Axis) -> Self {
        Self { left: LEFT, top: TOP, width: WIDTH - LEFT - 12.0, height, across, up: Some(up) }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.width * self.across.scale.place(value)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - self.up.as_ref().map_or(0.0, |up| up.scale.place(value)))
    }

    /// Where it ends, axis and titles included.
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height + BELOW
    }

    /// Marks with their words, and what is on the axes.
    pub(super) fn grid(&self) -> String {
        let (mut svg, right, bottom) = (String::new(), self.left + self.width, self.top + self.height);
        let mut line = |x: [f64; 2], y: [f64; 2]| {
            svg += &format!(
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"g\"/>\n",
                x[0], y[0], x[1], y[1]
            );
        };
        let up = || self.up.iter().flat_map(|up| &up.marks);
        up().for_each(|(value, _)| line([self.left, right], [self.y(*value); 2]));
        if self.up.as_ref().is_none_or(|up| up.scale.logarithmic) {
            self.across.marks.iter().for_each(|(value, _)| line([self.x(*value); 2], [self.top, bottom]));
        }
        let mut text = |x: f64, y: f64, anchor: &str, class: &str, words: &str| {
            svg += &format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>\n",
                escape(words)
            );
        };
        for (value, words) in up() {
            text(self.left - 6.0, self.y(*value) + 4.0, "end", "m", words);
        }
        for (value, words) in &self.across.marks {
            let half = width(words, LETTERS) / 2.0;
            // The last of them stays on the drawing.
            text(self.x(*value).min(WIDTH - half), bottom + 16.0, "middle", "m", words);
        }
        text(self.left + self.width / 2.0, bottom + 33.0, "middle", "t", &self.across.title);
        if let Some(up) = &self.up {
            text(self.left - self.left.min(LEFT).min(38.0), self.top - 12.0, "start", "t", &up.title);
        }
        svg
    }

    /// A line through points; its value may hold until the next of them.
    pub(super) fn line(&self, points: &[(f64, f64)], class: &str, stepped: bool, name: &str) -> String {
        let mut path = String::new();
        for (index, point) in thinned(points).iter().enumerate() {
            let (x, y) = (self.x(point.0), self.y(point.1));
            // Writing to a string cannot fail.
            let _ = match (index, stepped) {
                (0, _) => write!(path, "M{x:.1} {y:.1}"),
                (_, true) => write!(path, "H{x:.1}V{y:.1}"),
                (_, false) => write!(path, "L{x:.1} {y:.1}"),
            };
        }
        format!("<path d=\"{path}\" class=\"line {class}\"><title>{}</title></path>\n", escape(name))
    }

    pub(super) fn dot(&self, (x, y): (f64, f64), radius: f64, class: &str, hint: &str) -> String {
        let (x, y) = (self.x(x), self.y(y));
        format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" class=\"{class}\"><title>{}</title></circle>\n",
            escape(hint)
        )
    }
}

/// A line over the whole width: its name, its class, and its points from left to right.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines above zero. Absent where no line has two points. `across` makes the axis of the first and the last place.
pub(super) fn lines(
    title: &str,
    lines: &[Line],
    across: impl Fn(f64, f64) -> Axis,
    (up, words): (&str, Words),
    stepped: bool,
) -> Option<String> {
    let drawn = || lines.iter().filter(|line| line.points.len() > 1);
    let (first, last) = range(drawn().flat_map(|line| &line.points).map(|point| point.0));
    let most = drawn().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
    if drawn().next().is_none() || first >= last || most <= 0.0 {
        return None;
    }
    let plot = Plot::wide(184.0, across(first, last), Axis::new(up, Scale::between(0.0, most), words));
    let body: String = drawn().map(|line| plot.line(&line.points, line.class, stepped, &line.name)).collect();
    let entries: Vec<_> = drawn().map(|line| (line.class.to_owned(), line.name.clone())).collect();
    Some(drawing(title, plot.bottom(), &(plot.grid() + &body), &entries, plot.left))
}

/// A drawing of a height with its key below.
pub(super) fn drawing(title: &str, height: f64, body: &str, entries: &[(String, String)], left: f64) -> String {
    let all = height + KEY * key_lines(entries, left);
    format!("{}{body}{}</svg>\n", start(title, all), key(entries, left, height))
}

/// How a drawing starts.
pub(super) fn start(title: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"sans-serif\" font-size=\"{LETTERS}\">\n",
        escape(title)
    )
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

fn key_lines(key: &[(String, String)], left: f64) -> f64 {
    places(key, left).last().map_or(0.0, |(_, line)| line + 1.0)
}

/// Swatches of classes with their names, below a height. What is a line in the drawing is one in its key.
fn key(key: &[(String, String)], left: f64, top: f64) -> String {
    let mut svg = String::new();
    for ((class, name), (x, line)) in key.iter().zip(places(key, left)) {
        let y = top + KEY * line;
        let swatch = if class.starts_with("l-") {
            format!("<path d=\"M{:.1} {:.1}h16\" class=\"line {class}\"/>", x - 3.0, y + 10.0)
        } else {
            format!("<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" class=\"{class}\"/>", y + 4.0)
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "{swatch}<text x=\"{:.1}\" y=\"{:.1}\" class=\"m\">{}</text>",
            x + 17.0,
            y + 14.5,
            escape(name)
        );
    }
    svg
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
        assert_eq!(Scale::between(0.0, 64.8).marks(), [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(Scale::between(0.0, 7.02).marks(), [0.0, 2.0, 4.0, 6.0]);
        let counted = |last: f64| Axis::counted("step", last).marks.into_iter().map(|mark| mark.1).collect::<Vec<_>>();
        assert_eq!(counted(20.0), ["1", "5", "10", "15", "20"]);
        assert_eq!(counted(3.0), ["1", "2", "3"]);
    }

    #[test]
    fn values_that_spread_far_are_logarithmic() {
        let scale = Scale::of_figures([3.0, 700.0].into_iter());
        assert_eq!(scale.marks(), [1.0, 10.0, 100.0, 1000.0]);
        assert!((scale.place(10.0) - 1.0 / 3.0).abs() < 1e-12);
        let near = Scale::of_figures([3.0, 10.0].into_iter());
        assert_eq!((near.place(0.0), near.marks()[0], near.marks()[1]), (0.0, 0.0, 5.0));
    }

    #[test]
    fn one_value_and_none_still_have_a_place() {
        assert_eq!(Scale::over([4.0].into_iter(), true).place(4.0), 0.5);
        assert!(Scale::of_figures(std::iter::empty()).place(0.5).is_finite());
        assert!(!Scale::of_figures([0.0].into_iter()).marks().is_empty());
    }

    #[test]
    fn a_single_point_is_no_line_and_axes_say_what_is_on_them() {
        let draw = |points: Vec<(f64, f64)>| {
            let line = Line { name: "wall".to_owned(), class: "l-0", points };
            lines("t", &[line], |_, last| Axis::counted("step", last), ("time", |at| format!("{at} s")), false)
        };
        assert_eq!(draw(vec![(1.0, 1.0)]), None);
        let svg = draw(vec![(1.0, 1.0), (3.0, 2.0)]).unwrap();
        let marks = [">1</text>", ">2</text>", ">3</text>", ">2 s</text>", ">step</text>", ">time</text>"];
        assert!(marks.iter().all(|mark| svg.matches(mark).count() == 1), "{svg}");
    }

    #[test]
    fn a_key_has_a_swatch_for_each_name() {
        let entries =
            [("f-gemm", "GEMM"), ("l-1", "<copies>")].map(|(class, name)| (class.to_owned(), name.to_owned()));
        let svg = key(&entries, 0.0, 0.0);
        assert!(svg.contains("class=\"f-gemm\"") && svg.contains("class=\"line l-1\""), "{svg}");
        assert!(svg.contains("&lt;copies&gt;"), "{svg}");
    }
}
