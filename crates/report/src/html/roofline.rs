//! The roofline: what the device's peaks allow at each arithmetic intensity, a roof for every element type of the run, and where
//! stages, modules, operators, kernels and regions lie beneath it.

use std::fmt::Write;

use types::view::RunView;
use types::{FlopsPerByte, FlopsPerSecond, PeakUsed};

use super::documents::Documents;
use super::lettering::{WIDTH, width};
use super::plot::{Axis, Plot, Scale, TOP, Words, drawing};
use super::point::{self, Kind, Point};
use crate::render::escape::escape;
use crate::words::number::percent;

const LEFT: f64 = 96.0;
const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 356.0;
/// Size of the letters, and height of a line of a label.
const LETTERS: f64 = 12.0;
const LINE: f64 = 13.0;

/// The chart. Absent where the peaks are unknown or nothing has both FLOPs and bytes.
pub(super) fn roofline(run: &RunView<'_>, documents: &Documents<'_>) -> Option<String> {
    let used = &run.metrics.utilisation;
    let peaks: Vec<&PeakUsed> =
        if used.peaks.is_empty() { used.peak.iter().collect() } else { used.peaks.iter().collect() };
    let highest = peaks.iter().map(|peak| peak.flops.get()).fold(0.0, f64::max);
    let bandwidth = peaks.first()?.bytes_per_second.get();
    if highest <= 0.0 || bandwidth <= 0.0 {
        return None;
    }
    let mut points = point::points(run, documents, &peaks);
    // What lies above its roof cannot be true; a finding says so.
    points.retain(|point| {
        let roof = point.roof.min(point.intensity * bandwidth);
        point.intensity.is_finite() && point.intensity > 0.0 && point.rate > 0.0 && point.rate <= roof * 1.001
    });
    if points.is_empty() {
        return None;
    }
    let plot = plot(&points, highest, bandwidth);
    let (x, y) = (|value| plot.x(value), |value| plot.y(value));
    let mut svg = plot.grid();
    let start = plot.across.scale.low.max(plot.up.as_ref().map_or(0.0, |up| up.scale.low) / bandwidth);
    // Writing to a string cannot fail.
    for peak in &peaks {
        let flops = peak.flops.get();
        let _ = writeln!(
            svg,
            "<polyline points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\" class=\"roof\"><title>{}: {}</title></polyline>",
            x(start),
            y(start * bandwidth),
            x(flops / bandwidth),
            y(flops),
            x(plot.across.scale.high),
            y(flops),
            escape(&roof(peak)),
            escape(&peak.source)
        );
    }
    for (peak, at) in peaks.iter().zip(apart(peaks.iter().map(|peak| y(peak.flops.get()) - 6.0))) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{at:.1}\" text-anchor=\"end\" class=\"t\">{}<title>{}</title></text>",
            WIDTH - RIGHT - 4.0,
            escape(&roof(peak)),
            escape(&peak.source)
        );
    }
    for point in &points {
        let share = percent(Some(point.rate / point.roof.min(point.intensity * bandwidth)));
        let (rate, intensity) = (FlopsPerSecond::new(point.rate), FlopsPerByte::new(point.intensity));
        let mut hint = format!("{}: {rate} at {intensity}, {share} of the roof", point.name);
        if point.weight.is_some() {
            let _ = write!(hint, ", {} {}", percent(point.weight), point.kind.whole());
        }
        svg += &plot.dot((point.intensity, point.rate), radius(point), point.kind.class(), &hint);
    }
    let roofs: Vec<[f64; 4]> = peaks
        .iter()
        .map(|peak| {
            [x(peak.flops.get() / bandwidth), y(peak.flops.get()) - LINE - 6.0, WIDTH, y(peak.flops.get()) + 2.0]
        })
        .collect();
    let named: Vec<(&str, [f64; 3])> = points
        .iter()
        .filter(|point| point.kind == Kind::Stage)
        .map(|point| (point.name.as_str(), [x(point.intensity), y(point.rate), radius(point)]))
        .collect();
    let drawn = Kind::ALL.into_iter().filter(|kind| points.iter().any(|point| point.kind == *kind));
    let key: Vec<_> = drawn.map(|kind| (kind.class().to_owned(), kind.name().to_owned())).collect();
    Some(drawing("roofline", plot.bottom(), &(svg + &labels(&named, &roofs)), &key, LEFT))
}

/// Powers of ten around every point and the highest roof.
fn plot(points: &[Point], highest: f64, bandwidth: f64) -> Plot {
    // The ridge is what the points are seen against.
    let ridge = highest / bandwidth;
    let across = Scale::decades(points.iter().map(|point| point.intensity).chain([ridge / 2.0, ridge * 2.0]));
    let up = Scale::decades(points.iter().map(|point| point.rate).chain([highest]));
    let number: Words = |value| FlopsPerByte::new(value).to_string();
    let rate: Words = |value| FlopsPerSecond::new(value).to_string();
    Plot {
        left: LEFT,
        top: TOP,
        width: WIDTH - LEFT - RIGHT,
        height: BOTTOM - TOP,
        across: Axis::new("arithmetic intensity", across, number),
        up: Some(Axis::new("FLOP/s reached", up, rate)),
    }
}

/// Where the roofs come from, each with its source.
pub(super) fn sources(run: &RunView<'_>) -> Option<String> {
    let used = &run.metrics.utilisation;
    let peaks = if used.peaks.is_empty() { used.peak.as_slice() } else { used.peaks.as_slice() };
    let roofs: Vec<String> =
        peaks.iter().map(|peak| format!("{} in {} ({})", peak.flops, peak.dtype, peak.source)).collect();
    (!roofs.is_empty()).then(|| format!("roofs: {}", roofs.join("; ")))
}

/// A roof in words.
fn roof(peak: &PeakUsed) -> String {
    format!("{} in {}, {}", peak.flops, peak.dtype, peak.bytes_per_second)
}

/// Heights of lines of text, from the top down, so that none covers the one above it.
fn apart(heights: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    let mut free = f64::NEG_INFINITY;
    heights.map(move |height| {
        let at = height.max(free);
        free = at + LINE;
        at
    })
}

fn radius(point: &Point) -> f64 {
    3.0 + 9.0 * point.weight.unwrap_or_default().clamp(0.0, 1.0).sqrt()
}

/// The names of points, given with their centre and radius: beside each where that is free, else further out at the end of a line.
/// `taken` is left, top, right and bottom of what else must not be covered.
fn labels(points: &[(&str, [f64; 3])], taken: &[[f64; 4]]) -> String {
    let discs = points.iter().map(|(_, [x, y, r])| [x - r, y - r, x + r, y + r]);
    let mut taken: Vec<[f64; 4]> = discs.chain(taken.iter().copied()).collect();
    let mut text = String::new();
    for (name, [x, y, r]) in points {
        let wide = width(name, LETTERS);
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
            let inside = own[0] >= LEFT && own[1] >= TOP && own[2] <= WIDTH && own[3] <= BOTTOM;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_that_lie_close_together_do_not_cover_each_other() {
        let points = ["prefill", "vision", "sam", "clip"].map(|name| (name, [500.0, 200.0, 6.0]));
        let text = labels(&points, &[]);
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
            let apart = |other: &(f64, f64)| {
                (one.0 - other.0).abs() >= width("sam", LETTERS) || (one.1 - other.1).abs() >= LINE
            };
            assert!(placed[index + 1..].iter().all(apart), "{placed:?}");
        }
    }
}
