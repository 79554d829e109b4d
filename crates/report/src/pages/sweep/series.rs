//! Points of a sweep as lines over one of its axes.

use std::collections::BTreeMap;

use serde_json::Value;
use types::{Sweep, SweepFigures, SweepPoint};

use super::csv::value;
use super::table::short;

/// What one figure does along one axis.
pub(crate) struct Series {
    /// The key of the axis; `hardware` where no setting has several values.
    pub(crate) axis: String,
    /// Where on the axis values stand, with their texts. Numbers stand where they are, anything else in order.
    pub(crate) ticks: Vec<(f64, String)>,
    /// Whether the axis is one of numbers.
    pub(crate) numeric: bool,
    pub(crate) lines: Vec<SeriesLine>,
}

/// One combination of everything else.
pub(crate) struct SeriesLine {
    pub(crate) label: String,
    pub(crate) points: Vec<PlottedPoint>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlottedPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) fits: bool,
}

impl Series {
    /// Lines of `figure`; none where no point has it, or where there is nothing to draw a line along.
    pub(crate) fn new(sweep: &Sweep, figure: impl Fn(&SweepFigures) -> Option<f64>) -> Option<Self> {
        let (axis, values) = axis(sweep)?;
        let numeric = values.iter().all(Value::is_number);
        let place = |index: usize| values[index].as_f64().filter(|_| numeric).unwrap_or(index as f64);
        let mut ticks: Vec<(f64, String)> =
            (0..values.len()).map(|index| (place(index), value(&values[index]))).collect();
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        ticks.dedup_by(|a, b| a.0 == b.0);
        let mut order: BTreeMap<String, usize> = BTreeMap::new();
        let mut lines: Vec<SeriesLine> = Vec::new();
        for point in &sweep.points {
            let Some(figures) = &point.figures else { continue };
            let Some(y) = figure(figures) else { continue };
            let own = if axis == HARDWARE {
                Value::String(point.hardware.clone())
            } else {
                point.settings.get(&axis)?.clone()
            };
            let Some(index) = values.iter().position(|value| *value == own) else { continue };
            let label = label(sweep, point, &axis);
            let next = lines.len();
            let line = *order.entry(label.clone()).or_insert(next);
            if line == next {
                lines.push(SeriesLine { label, points: Vec::new() });
            }
            lines[line].points.push(PlottedPoint { x: place(index), y, fits: figures.fits });
        }
        for line in &mut lines {
            line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        (!lines.is_empty()).then_some(Self { axis, ticks, numeric, lines })
    }
}

const HARDWARE: &str = "hardware";

/// The first setting of several numbers, else of several values, else the devices.
fn axis(sweep: &Sweep) -> Option<(String, Vec<Value>)> {
    let several = || sweep.axes.iter().filter(|axis| axis.values.len() > 1);
    let numbers = several().find(|axis| axis.values.iter().all(Value::is_number));
    if let Some(axis) = numbers.or_else(|| several().next()) {
        return Some((axis.key.clone(), axis.values.clone()));
    }
    let devices: Vec<_> = sweep.hardware.iter().map(|device| Value::String(device.id.clone())).collect();
    (devices.len() > 1).then(|| (HARDWARE.to_owned(), devices))
}

/// What tells a line from others: the device, and all settings that vary beside the axis.
fn label(sweep: &Sweep, point: &SweepPoint, axis: &str) -> String {
    let mut parts = Vec::new();
    if sweep.hardware.len() > 1 && axis != HARDWARE {
        parts.push(point.hardware.clone());
    }
    for other in sweep.axes.iter().filter(|other| other.key != axis && other.values.len() > 1) {
        let set = point.settings.get(&other.key).map(value).unwrap_or_default();
        parts.push(format!("{} {set}", short(&other.key)));
    }
    if parts.is_empty() { sweep.model.model_id.clone() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::sample;

    #[test]
    fn numbers_are_the_axis_and_everything_else_tells_lines_apart() {
        let series = Series::new(&sample::sweep(), |figures| Some(figures.ttft_ms)).unwrap();
        assert_eq!((series.axis.as_str(), series.numeric), ("workload.batch", true));
        assert_eq!(series.ticks.iter().map(|tick| tick.0).collect::<Vec<_>>(), [1.0, 8.0, 64.0]);
        let labels: Vec<_> = series.lines.iter().map(|line| line.label.as_str()).collect();
        assert_eq!(labels, ["h200, attention eager", "tiny, attention eager", "h200, attention flash"]);
    }

    #[test]
    fn without_settings_devices_are_the_axis() {
        let mut sweep = sample::sweep();
        sweep.axes.clear();
        sweep.points.truncate(2);
        let series = Series::new(&sweep, |figures| Some(figures.ttft_ms)).unwrap();
        assert_eq!((series.axis.as_str(), series.numeric, series.lines.len()), ("hardware", false, 1));
        sweep.hardware.truncate(1);
        assert!(Series::new(&sweep, |figures| Some(figures.ttft_ms)).is_none());
    }
}
