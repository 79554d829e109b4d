//! The forecast beside the roofline: two lines for the terminal, a section of the summary.

use std::fmt::Write;

use types::{AnalyticReport, Contribution, ExecutionMode, ForecastRange, ForecastTime, ModeForecast};

use crate::markdown::prose;
use crate::number::{grouped, known, milliseconds, percent, tokens_per_second};
use crate::page::Page;
use crate::table::Table;

/// The usual mode with its interval and its largest parts, the others by their total; nothing without a forecast.
pub(super) fn lines(report: &AnalyticReport) -> Vec<String> {
    let Some(forecast) = &report.forecast else { return Vec::new() };
    let Some(usual) = forecast.modes.iter().find(|mode| mode.mode == forecast.mode) else { return Vec::new() };
    let mut text = format!("forecast  {} {}", name(usual.mode), interval(usual.total));
    let _ = write!(text, ": first token {}", milliseconds(usual.ttft_ms.value));
    if let Some(step) = usual.time_per_output_token_ms {
        let _ = write!(text, ", then {} per token", milliseconds(step.value));
    }
    for mode in forecast.modes.iter().filter(|mode| mode.mode != usual.mode) {
        let _ = write!(
            text,
            "; {} {}",
            name(mode.mode),
            known(mode.total.forecast_ns.map(|time| milliseconds(time.as_millis())))
        );
    }
    let largest = largest(usual);
    vec![text, format!("          {}: {}", forecast.origin, forecast.basis), format!("          largest: {largest}")]
}

/// The section of the summary.
pub(super) fn section(page: &mut Page, report: &AnalyticReport) {
    let Some(forecast) = &report.forecast else { return };
    page.heading(&format!("Forecast ({})", forecast.origin));
    page.paragraph(&format!(
        "What is likely, beside the roofline: {}. In brackets, the 90% interval.",
        prose(&forecast.basis)
    ));
    let mut table = Table::new("mode | >total | >first token | >per token | >rate | >launch gaps | >kernels");
    for mode in &forecast.modes {
        table.row([
            name(mode.mode).to_owned(),
            interval(mode.total),
            range(mode.ttft_ms),
            known(mode.time_per_output_token_ms.map(range)),
            known(mode.decode_tokens_per_second.map(|rate| tokens_per_second(rate.value))),
            milliseconds(mode.launch_gaps_ns.as_millis()),
            grouped(mode.kernels),
        ]);
    }
    page.table(&table);
    page.paragraph("The largest parts:");
    let mut table = Table::new("mode | prefill | decode");
    for mode in &forecast.modes {
        table.row([name(mode.mode).to_owned(), parts(&mode.prefill_contributions), parts(&mode.decode_contributions)]);
    }
    page.table(&table);
    for note in &forecast.notes {
        page.paragraph(&prose(note));
    }
}

fn name(mode: ExecutionMode) -> &'static str {
    match mode {
        ExecutionMode::Eager => "eager",
        ExecutionMode::Compiled => "compiled",
        ExecutionMode::Graph => "graph",
    }
}

fn interval(time: ForecastTime) -> String {
    let shown = |time: Option<types::Nanos>| known(time.map(|time| milliseconds(time.as_millis())));
    format!("{} ({} to {})", shown(time.forecast_ns), shown(time.forecast_low_ns), shown(time.forecast_high_ns))
}

fn range(range: ForecastRange) -> String {
    format!("{} ({} to {})", milliseconds(range.value), milliseconds(range.low), milliseconds(range.high))
}

fn largest(mode: &ModeForecast) -> String {
    let decode = parts(&mode.decode_contributions);
    let prefill = parts(&mode.prefill_contributions);
    if decode.is_empty() { format!("prefill {prefill}") } else { format!("prefill {prefill}; decode {decode}") }
}

fn parts(contributions: &[Contribution]) -> String {
    let part = |part: &Contribution| format!("{} {}", part.name.replace('_', " "), percent(Some(part.share)));
    contributions.iter().map(part).collect::<Vec<_>>().join(", ")
}
