//! The roofline: what the device's peaks allow at each arithmetic intensity, and where stages and operators lie beneath it.

use std::fmt::Write;

use types::view::RunView;

use super::bars::WIDTH;
use crate::escape::escape;
use crate::number::percent;

const HEIGHT: f64 = 400.0;
const LEFT: f64 = 96.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 26.0;
const RIGHT: f64 = 20.0;
/// Operators drawn, those with most time first.
const OPERATORS: usize = 60;

/// Operators below this share of the time only stretch the axes.
const LEAST_SHARE: f64 = 0.0005;
/// Width of a character and height of a line of a label.
const CHARACTER: f64 = 6.4;
const LINE: f64 = 13.0;

/// A point beneath the roof.
struct Point {
    name: String,
    /// FLOPs per byte.
    intensity: f64,
    /// FLOP/s.
    rate: f64,
    /// Its share of the time, which is its size.
    weight: f64,
    is_stage: bool,
}

/// The chart. Absent where the peaks are unknown or nothing has both FLOPs and bytes.
pub(super) fn roofline(run: &RunView<'_>) -> Option<String> {
    let peak = run.metrics.utilisation.peak.as_ref()?;
    let (flops, bandwidth) = (peak.flops.get(), peak.bytes_per_second.get());
    // Stages are drawn last, so that no operator hides one.
    let mut points = operators(run);
    points.extend(stages(run, flops));
    // What lies above the roof cannot be true; a finding says so.
    points.retain(|point| {
        let roof = flops.min(point.intensity * bandwidth);
        point.intensity.is_finite() && point.intensity > 0.0 && point.rate > 0.0 && point.rate <= roof * 1.001
    });
    if points.is_empty() || flops <= 0.0 || bandwidth <= 0.0 {
        return None;
    }
    let ridge = flops / bandwidth;
    let across = decades(points.iter().map(|point| point.intensity).chain([ridge / 10.0, ridge * 10.0]));
    let up = decades(points.iter().map(|point| point.rate).chain([flops, flops / 1e3]));
    let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * (value.log10() - across.0) / (across.1 - across.0);
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (value.log10() - up.0) / (up.1 - up.0));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"roofline\" \
         font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    // Writing to a string cannot fail.
    for power in (across.0 as i32)..=(across.1 as i32) {
        let at = x(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{:.1}\" class=\"g\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"m\">{}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 16.0,
            tick(power)
        );
    }
    for power in (up.0 as i32)..=(up.1 as i32) {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" class=\"g\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" class=\"m\">{}FLOP/s</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            tick(power)
        );
    }
    let start = 10f64.powf(across.0).max(10f64.powf(up.0) / bandwidth);
    let _ = writeln!(
        svg,
        "<polyline points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\" class=\"roof\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" class=\"t\">{} in {}, {}</text>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"t\">FLOPs per byte</text>",
        x(start),
        y(start * bandwidth),
        x(ridge),
        y(flops),
        x(10f64.powf(across.1)),
        y(flops),
        WIDTH - RIGHT - 4.0,
        y(flops) - 6.0,
        peak.flops,
        escape(peak.dtype.name()),
        peak.bytes_per_second,
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 8.0
    );
    for point in &points {
        let roof = flops.min(point.intensity * bandwidth);
        let hint = format!(
            "{}: {} of the roof at {:.3} FLOPs per byte, {} of the time",
            point.name,
            percent(Some(point.rate / roof)),
            point.intensity,
            percent(Some(point.weight))
        );
        let class = if point.is_stage { "p-stage" } else { "p-operator" };
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\" class=\"{class}\"><title>{}</title></circle>",
            x(point.intensity),
            y(point.rate),
            radius(point),
            escape(&hint)
        );
    }
    let named: Vec<(&str, [f64; 3])> = points
        .iter()
        .filter(|point| point.is_stage)
        .map(|point| (point.name.as_str(), [x(point.intensity), y(point.rate), radius(point)]))
        .collect();
    Some(svg + &labels(&named) + "</svg>\n")
}

fn radius(point: &Point) -> f64 {
    3.0 + 9.0 * point.weight.clamp(0.0, 1.0).sqrt()
}

/// The names of points, given with their centre and radius: beside each where that is free, else further out at the end of a line.
fn labels(points: &[(&str, [f64; 3])]) -> String {
    // Left, top, right and bottom of what must not be covered.
    let mut taken: Vec<[f64; 4]> = points.iter().map(|(_, [x, y, r])| [x - r, y - r, x + r, y + r]).collect();
    let mut text = String::new();
    for (name, [x, y, r]) in points {
        let wide = name.chars().count() as f64 * CHARACTER;
        let beside = |far: f64| {
            [
                (x + r + far, y - LINE / 2.0),
                (x - r - far - wide, y - LINE / 2.0),
                (x - wide / 2.0, y - r - far - LINE),
                (x - wide / 2.0, y + r + far),
                (x + r + far, y + r + far),
                (x - r - far - wide, y + r + far),
            ]
        };
        let free = |(left, top): &(f64, f64)| {
            let own = [*left, *top, left + wide, top + LINE];
            let inside = own[0] >= LEFT && own[1] >= TOP && own[2] <= WIDTH && own[3] <= HEIGHT - BOTTOM;
            inside
                && taken
                    .iter()
                    .all(|other| own[2] <= other[0] || other[2] <= own[0] || own[3] <= other[1] || other[3] <= own[1])
        };
        let places = [4.0, 16.0, 30.0, 46.0, 64.0].into_iter().flat_map(|far| beside(far).map(|place| (far, place)));
        let Some((far, (left, top))) = places.into_iter().find(|(_, place)| free(place)) else { continue };
        taken.push([left, top, left + wide, top + LINE]);
        if far > 4.0 {
            let end = (x.clamp(left, left + wide), y.clamp(top, top + LINE));
            let _ = write!(text, "<path d=\"M{x:.1} {y:.1}L{:.1} {:.1}\" class=\"whisker\"/>", end.0, end.1);
        }
        let _ = writeln!(text, "<text x=\"{left:.1}\" y=\"{:.1}\" class=\"t\">{}</text>", top + 10.0, escape(name));
    }
    text
}

fn stages(run: &RunView<'_>, peak: f64) -> Vec<Point> {
    let work = &run.metrics.utilisation.work_per_stage;
    let point = |view: &types::view::StageView<'_>| {
        let done = work.get(&view.stage.name)?;
        Some(Point {
            name: view.stage.name.to_string(),
            intensity: done.flops_matrix.get() as f64 / done.bytes.get() as f64,
            rate: view.stage.mfu? * peak,
            weight: view.run_share.unwrap_or_default(),
            is_stage: true,
        })
    };
    run.stages.iter().filter_map(point).collect()
}

fn operators(run: &RunView<'_>) -> Vec<Point> {
    let point = |view: &types::view::ShapeView<'_>| {
        let group = view.group;
        let bytes = group.bytes?.get() as f64;
        Some(Point {
            name: format!("{} {:?}", group.name, group.shapes),
            intensity: group.flops_matrix.get() as f64 / bytes,
            rate: group.flops_per_second?.get(),
            weight: view.share.unwrap_or_default(),
            is_stage: false,
        })
    };
    let worth = |point: &Point| point.weight >= LEAST_SHARE;
    run.operators.by_shape.iter().filter_map(point).filter(worth).take(OPERATORS).collect()
}

/// Whole powers of ten around the values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
    let high = values.fold(f64::NEG_INFINITY, f64::max).log10().ceil();
    (low, if high > low { high } else { low + 1.0 })
}

/// A power of ten with its prefix.
fn tick(power: i32) -> String {
    let prefixes = ["", "k", "M", "G", "T", "P", "E"];
    match usize::try_from(power.div_euclid(3)).ok().and_then(|index| prefixes.get(index)) {
        Some(prefix) => format!("{} {prefix}", 10i32.pow(power.rem_euclid(3).unsigned_abs())),
        None => format!("1e{power} "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_that_lie_close_together_do_not_cover_each_other() {
        let points = ["prefill", "vision", "sam", "clip"].map(|name| (name, [500.0, 200.0, 6.0]));
        let text = labels(&points);
        let at = |text: &str, name: &str| -> f64 {
            text.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let placed: Vec<(f64, f64)> = text
            .lines()
            .map(|line| line.split("<text ").nth(1).unwrap())
            .map(|one| (at(one, "x"), at(one, "y")))
            .collect();
        assert_eq!(placed.len(), 4, "{text}");
        for (index, one) in placed.iter().enumerate() {
            let apart =
                |other: &(f64, f64)| (one.0 - other.0).abs() >= 3.0 * CHARACTER || (one.1 - other.1).abs() >= LINE;
            assert!(placed[index + 1..].iter().all(apart), "{placed:?}");
        }
    }
}
