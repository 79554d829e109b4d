//! The forecast beside the roofline: two lines for the terminal, a section of the summary.

use std::fmt::Write;

use types::{AnalyticReport, Contribution, ExecutionMode, ForecastRange, ForecastTime, ModeForecast, PartKind};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::prose;
use crate::words::number::{grouped, known, milliseconds, percent, tokens_per_second};

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

/// What a run measured beside what was predicted; nothing without a run.
pub(super) fn measured(page: &mut Page, report: &AnalyticReport) {
    if report.measured_parts.is_empty() {
        return;
    }
    page.heading("Predicted and measured");
    page.paragraph(
        "Stages by their wall time without a profiler; modules and kernel families by the profiled pass, families by device time \
         alone. Ratios are roofline and forecast over measured.",
    );
    let mut table = Table::new("part | >measured | >roofline | >ratio | >forecast | >ratio");
    let ratio = |ratio: Option<f64>| known(ratio.map(|ratio| format!("{ratio:.2}")));
    for part in report.measured_parts.iter().take(MOST_PARTS) {
        let name = match (&part.kind, &part.stage) {
            (PartKind::KernelFamily, Some(stage)) => format!("{stage}: {} kernels", part.name),
            _ => part.name.clone(),
        };
        table.row([
            prose(&name),
            milliseconds(part.measured_ms),
            known(part.roofline_ms.map(milliseconds)),
            ratio(part.predicted_vs_measured_ratio),
            known(part.forecast_ms.map(milliseconds)),
            ratio(part.forecast_vs_measured_ratio),
        ]);
    }
    page.table(&table);
}

/// Rows of predicted and measured parts on the page; the report has all.
const MOST_PARTS: usize = 60;

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
