//! The roofline: what the device's peaks allow at each arithmetic intensity, and where stages and operators lie beneath it.

use std::fmt::Write;

use types::view::RunView;

use super::bars::WIDTH;
use crate::escape::escape;
use crate::number::percent;

const HEIGHT: f64 = 400.0;
const LEFT: f64 = 96.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = 20.0;
/// Operators drawn, those with most time first.
const OPERATORS: usize = 60;

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
    let mut points = stages(run, flops);
    points.extend(operators(run));
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
    let mut labels: Vec<(f64, f64)> = Vec::new();
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
            3.0 + 9.0 * point.weight.clamp(0.0, 1.0).sqrt(),
            escape(&hint)
        );
        if point.is_stage {
            // Stages lie close together; a label moves down until it covers none.
            let (across, mut down) = (x(point.intensity) + 14.0, y(point.rate) + 4.0);
            while labels.iter().any(|(other, at)| (other - across).abs() < 70.0 && (at - down).abs() < 13.0) {
                down += 13.0;
            }
            labels.push((across, down));
            let _ = writeln!(svg, "<text x=\"{across:.1}\" y=\"{down:.1}\" class=\"t\">{}</text>", escape(&point.name));
        }
    }
    Some(svg + "</svg>\n")
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
    run.operators.by_shape.iter().filter_map(point).take(OPERATORS).collect()
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
