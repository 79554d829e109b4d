//! The forecast of a workload beside what was measured of it.

use types::{AnalyticReport, Nanos};

use super::rows::{Bar, Row, rows};
use crate::words::number::milliseconds;

/// Roofline, forecast and measured time of one request. Absent unless the run measured what is modelled.
pub(super) fn forecast_chart(report: &AnalyticReport) -> Option<String> {
    let measured = report.measured_total_time_ms?;
    let forecast = &report.forecast_total;
    let millis = |time: Option<Nanos>| time.map(|time| time.get() as f64 / 1e6);
    let row = |name: &str, to: f64, class: &str, interval: Option<(f64, f64)>| {
        let range = interval.map(|(low, high)| format!(" ({} to {})", milliseconds(low), milliseconds(high)));
        let figure = format!("{}{}", milliseconds(to), range.unwrap_or_default());
        Row {
            name: name.to_owned(),
            bars: vec![Bar { from: 0.0, to, class: class.to_owned(), hint: format!("{name}: {figure}"), interval }],
            figure,
        }
    };
    let mut drawn = vec![row("roofline time", report.predicted_total_time_ms, "c-least", None)];
    let interval = millis(forecast.forecast_low_ns).zip(millis(forecast.forecast_high_ns));
    drawn.extend(millis(forecast.forecast_ns).map(|time| row("forecast, eager", time, "c-predicted", interval)));
    drawn.push(row("measured", measured, "c-measured", None));
    Some(rows("forecast and measured time of a request", &drawn, ("time of a request", milliseconds)))
}
