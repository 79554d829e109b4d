//! Figures of a forecast as people read them: a value and its interval.

use types::{Capacity, ForecastRange, LatencyForecast, LimitedLatency, StepKind};

use crate::render::Table;
use crate::words::kind::Phrase;
use crate::words::number::{decimal, grouped, milliseconds, percent, rate, signed};

/// A time and its interval.
pub(super) fn times(range: ForecastRange) -> String {
    interval(range, milliseconds)
}

/// A figure and its interval, each written by `write`; the figure alone where the interval shows nothing more.
pub(super) fn interval(range: ForecastRange, write: fn(f64) -> String) -> String {
    let [value, low, high] = [range.value, range.low, range.high].map(write);
    if low == value && high == value { value } else { format!("{value} ({low} to {high})") }
}

fn share(value: f64) -> String {
    percent(Some(value))
}

/// Money with as many digits as tell something.
pub(super) fn money(value: f64) -> String {
    match value {
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

fn kilojoules(joules: f64) -> String {
    format!("{} kJ", decimal((joules / 100.0).round() / 10.0))
}

pub(super) fn latencies(capacity: &Capacity) -> Table {
    let figures = &capacity.figures;
    let mut table = Table::new("latency | >mean | >p50 | >p99");
    let rows: [(&str, Option<LatencyForecast>); 5] = [
        ("TTFT", Some(figures.ttft_ms)),
        ("TPOT", figures.tpot_ms),
        ("ITL", figures.itl_ms),
        ("E2EL", Some(figures.e2el_ms)),
        ("queue", Some(figures.queue_ms)),
    ];
    for (name, found) in rows {
        let Some(LatencyForecast { mean, p50, p99 }) = found else { continue };
        table.row([name.to_owned(), times(mean), times(p50), times(p99)]);
    }
    table
}

/// The forecast beside what a client measured.
pub(super) fn measured(capacity: &Capacity) -> Table {
    let mut table = Table::new("figure | >forecast | >measured | >forecast off by");
    for row in &capacity.measured {
        let write = if row.figure.contains("_ms") { milliseconds } else { rate };
        let (latency, part) = row.figure.split_once("_ms.").unwrap_or(("output tokens/s", ""));
        let name = if part.is_empty() { latency.to_owned() } else { format!("{} {part}", latency.to_uppercase()) };
        table.row([name, interval(row.forecast, write), write(row.measured), signed(row.error)]);
    }
    table
}

/// Measured steps against their forecast, and whether it is corrected by them.
pub(super) fn residuals(capacity: &Capacity) -> Table {
    let heading = if capacity.is_corrected { "device time is corrected by" } else { "device time of steps" };
    let mut table = Table::new(&format!("{heading} | >measured steps | >median off by | >varies by"));
    for residual in &capacity.step_residuals {
        let kind = if residual.kind == StepKind::Decode { "decode" } else { "with prompts" };
        table.row([
            kind.to_owned(),
            grouped(residual.steps),
            signed(residual.factor - 1.0),
            percent(Some(residual.deviation)),
        ]);
    }
    table
}

/// Throughput, goodput and what the server does meanwhile.
pub(super) fn rates(capacity: &Capacity) -> Vec<(&'static str, Option<String>)> {
    let figures = &capacity.figures;
    let tokens = |range| format!("{} tokens/s", interval(range, rate));
    let requests = if capacity.load.refused > 0 { "the requests that are not refused" } else { "the requests" };
    vec![
        ("output", Some(tokens(figures.output_throughput))),
        ("input", Some(tokens(figures.input_throughput))),
        ("requests", Some(format!("{} a second", interval(figures.request_throughput, rate)))),
        ("within target", figures.goodput_share.map(|range| format!("{} of {requests}", interval(range, share)))),
        ("batch", Some(format!("{} sequences per step", interval(figures.batch, decimal_rounded)))),
        ("device busy", Some(interval(figures.busy, share))),
        ("KV cache", Some(format!("{} at most", interval(figures.kv_peak, share)))),
        ("preemptions", Some(interval(figures.preemptions, decimal_rounded))),
    ]
}

fn decimal_rounded(value: f64) -> String {
    decimal((value * 10.0).round() / 10.0)
}

/// Energy and price of tokens.
pub(super) fn costs(capacity: &Capacity) -> Vec<(&'static str, Option<String>)> {
    let energy = capacity.energy.map(|energy| {
        let [input, output] = [energy.joules_per_million_input_tokens, energy.joules_per_million_output_tokens];
        format!(
            "{} per million tokens in, {} per million out ({}: {} W per device)",
            interval(input, kilojoules),
            interval(output, kilojoules),
            energy.origin,
            decimal(energy.watts)
        )
    });
    let price = capacity.price.map(|price| {
        format!(
            "{} per million tokens in, {} per million out (assumed: {} an hour per device)",
            interval(price.per_million_input_tokens, money),
            interval(price.per_million_output_tokens, money),
            money(price.per_device_hour)
        )
    });
    vec![("energy", energy), ("price", price)]
}

/// The highest load within the target.
pub(super) fn highest(capacity: &Capacity) -> Option<String> {
    let Some(highest) = capacity.highest else {
        let is_asked = capacity.load.objective.is_some();
        return is_asked
            .then(|| "not searched: the requests of the file all start at once, which is no rate".to_owned());
    };
    let level = match (highest.requests_per_second, highest.concurrency) {
        (Some(level), _) => format!("{} requests a second", interval(level, rate)),
        (None, Some(level)) => format!("{} requests at a time", interval(level, decimal_rounded)),
        (None, None) => return None,
    };
    if highest.limited_by == LimitedLatency::NotReached {
        return Some(format!(
            "at least {level}: the highest load that was simulated still meets the target for {} of the requests",
            share(highest.share)
        ));
    }
    Some(format!(
        "{level}, at which {} of the requests meet the target; limited by {}",
        share(highest.share),
        highest.limited_by.phrase()
    ))
}
