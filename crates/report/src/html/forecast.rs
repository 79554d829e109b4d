//! The forecast of a workload beside what was measured of it.

use types::{AnalyticReport, Nanos};

use super::rows::{Bar, Row, rows};
use crate::words::number::milliseconds;

/// Roofline, forecast and measured time of one request. Absent unless the run measured what is modelled.
pub(super) fn forecast_chart(report: &AnalyticReport) -> Option<String> {
    let measured = report.measured_total_time_ms?;
    let forecast = &report.forecast_total;
    let millis = |time: Option<Nanos>| time.map(|time| time.as_millis());
    let interval = millis(forecast.forecast_low_ns).zip(millis(forecast.forecast_high_ns));
    let mut drawn = vec![forecast_row("roofline time", report.predicted_total_time_ms, "c-least", None)];
    drawn.extend(
        millis(forecast.forecast_ns).map(|time| forecast_row("forecast, eager", time, "c-predicted", interval)),
    );
    drawn.push(forecast_row("measured", measured, "c-measured", None));
    rows("forecast and measured time of a request", &drawn, ("time of a request", milliseconds))
}

/// A time in milliseconds with its interval.
pub(super) fn forecast_row(name: &str, time: f64, class: &str, interval: Option<(f64, f64)>) -> Row {
    let range = interval.map(|(low, high)| format!(" ({} to {})", milliseconds(low), milliseconds(high)));
    let figure = format!("{}{}", milliseconds(time), range.unwrap_or_default());
    let bar = Bar::new(time, class, format!("{name}: {figure}")).within(interval);
    Row { name: name.to_owned(), bars: vec![bar], figure }
}
