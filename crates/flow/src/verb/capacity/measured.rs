//! A forecast beside what a client measured of the same load.

use forecast::serving::Spread;
use types::{ForecastRange, LoadFigures, MeasuredFigure, MeasuredRequest};

use super::load::PlannedLoad;

/// The figures of `load` as its client measured them; empty where it did not measure every request.
pub(super) fn beside(load: &PlannedLoad, figures: &LoadFigures) -> Vec<MeasuredFigure> {
    if load.measured.is_empty() || load.measured.len() != load.asked.len() {
        return Vec::new();
    }
    let of = |part: fn(&MeasuredRequest) -> Option<f64>| Spread::of(load.measured.iter().filter_map(part).collect());
    let latencies = [
        ("ttft_ms", of(|one| Some(one.ttft_ms)), Some(figures.ttft_ms)),
        ("tpot_ms", of(|one| one.tpot_ms), figures.tpot_ms),
        ("e2el_ms", of(|one| Some(one.e2el_ms)), Some(figures.e2el_ms)),
    ];
    let mut rows = Vec::new();
    for (name, found, forecast) in latencies {
        let Some(forecast) = forecast else { continue };
        let parts =
            [("mean", found.mean, forecast.mean), ("p50", found.p50, forecast.p50), ("p99", found.p99, forecast.p99)];
        rows.extend(
            parts.into_iter().filter_map(|(part, measured, range)| row(format!("{name}.{part}"), measured, range)),
        );
    }
    rows.extend(row("output_throughput".to_owned(), throughput(load), figures.output_throughput));
    rows
}

fn row(figure: String, measured: f64, forecast: ForecastRange) -> Option<MeasuredFigure> {
    (measured > 0.0).then(|| MeasuredFigure { figure, measured, forecast, error: forecast.value / measured - 1.0 })
}

/// Tokens of outputs a second, from the first request to the last answer.
fn throughput(load: &PlannedLoad) -> f64 {
    let forecast::serving::Arrivals::Due(due) = load.draw(0).arrivals else { return 0.0 };
    let ends = due.iter().zip(&load.measured).map(|(sent, request)| sent / 1e3 + request.e2el_ms);
    let tokens: u64 = load.asked.iter().map(|asked| asked.output).sum();
    1e3 * tokens as f64 / ends.fold(0.0, f64::max).max(1e-9)
}
