//! The forecast next to the roofline: lines for the terminal, a section of the summary.

use std::fmt::Write;

use types::{AnalyticReport, Contribution, ExecutionMode, ForecastRange, ForecastTime, ModeForecast, Origin, PartKind};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::prose;
use crate::words::number::{grouped, known, milliseconds, percent, tokens_per_second};

/// The usual mode with its interval, the others by their total; nothing without a forecast.
pub(super) fn line(report: &AnalyticReport) -> Option<String> {
    let forecast = report.forecast.as_ref()?;
    let usual = usual(report)?;
    let mut text = format!("{} {}", name(usual.mode), interval(usual.total));
    if let Some(step) = usual.time_per_output_token_ms {
        let (first, step) = (milliseconds(usual.ttft_ms.value), milliseconds(step.value));
        let _ = write!(text, ": first token {first}, then {step} per token");
    }
    for mode in forecast.modes.iter().filter(|mode| mode.mode != usual.mode) {
        let total = known(mode.total.forecast_ns.map(|time| milliseconds(time.as_millis())));
        let _ = write!(text, "; {} {total}", name(mode.mode));
    }
    Some(text)
}

/// What a forecast that is not assumed rests on; caveats have the others.
pub(super) fn basis(report: &AnalyticReport) -> Option<String> {
    let forecast = report.forecast.as_ref().filter(|forecast| forecast.origin != Origin::Assumed)?;
    Some(format!("{}: {}", forecast.origin, prose(&forecast.basis)))
}

/// The largest parts of each stage in the usual mode.
pub(crate) fn largest(report: &AnalyticReport) -> Option<String> {
    let usual = usual(report)?;
    let stages = [("prefill", &usual.prefill_contributions), ("decode", &usual.decode_contributions)];
    let known = stages.into_iter().filter(|(_, parts)| !parts.is_empty());
    Some(known.map(|(stage, parts)| format!("of {stage}: {}", self::parts(parts))).collect::<Vec<_>>().join("; "))
}

/// The forecast in the mode that is usual.
pub(crate) fn usual(report: &AnalyticReport) -> Option<&ModeForecast> {
    let forecast = report.forecast.as_ref()?;
    forecast.modes.iter().find(|mode| mode.mode == forecast.mode)
}

/// The section of the summary.
pub(super) fn section(page: &mut Page, report: &AnalyticReport) {
    let Some(forecast) = &report.forecast else { return };
    page.heading(&format!("Forecast ({})", forecast.origin));
    page.paragraph(&format!(
        "Likely times, next to the roofline: {}. Brackets hold the 90% interval.",
        prose(&forecast.basis)
    ));
    let decodes = forecast.modes.iter().any(|mode| mode.time_per_output_token_ms.is_some());
    let mut table = Table::new(if decodes {
        "mode | >total | >first token | >per token | >rate | >launch gaps | >kernels"
    } else {
        "mode | >total | >launch gaps | >kernels"
    });
    for mode in &forecast.modes {
        let mut cells = vec![name(mode.mode).to_owned(), interval(mode.total)];
        if decodes {
            cells.push(range(mode.ttft_ms));
            cells.push(known(mode.time_per_output_token_ms.map(range)));
            cells.push(known(mode.decode_tokens_per_second.map(|rate| tokens_per_second(rate.value))));
        }
        cells.push(milliseconds(mode.launch_gaps_ns.as_millis()));
        cells.push(grouped(mode.kernels));
        table.row(cells);
    }
    page.table(&table);
    page.paragraph("The largest parts, as shares of each stage:");
    let mut table = Table::new(if decodes { "mode | of prefill | of decode" } else { "mode | of prefill" });
    for mode in &forecast.modes {
        let stages = [&mode.prefill_contributions, &mode.decode_contributions].map(|stage| parts(stage));
        let cells = [name(mode.mode).to_owned()].into_iter().chain(stages).take(if decodes { 3 } else { 2 });
        table.row(cells);
    }
    page.table(&table);
}

/// What a run measured next to what was predicted; nothing without a run.
pub(super) fn measured(page: &mut Page, report: &AnalyticReport) {
    if report.measured_parts.is_empty() {
        return;
    }
    page.heading("Predicted and measured");
    page.paragraph(
        "Stages show wall time: that of runs without a profiler where there are any, else that of the recording. Modules and kernel \
         families come from the recording; families count device time only. Ratios are roofline over measured and forecast over measured.",
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

/// What a mode is called.
pub(crate) fn name(mode: ExecutionMode) -> &'static str {
    match mode {
        ExecutionMode::Eager => "eager",
        ExecutionMode::Compiled => "compiled",
        ExecutionMode::Graph => "graph",
    }
}

fn interval(time: ForecastTime) -> String {
    let shown = |time: Option<types::Nanos>| known(time.map(|time| milliseconds(time.as_millis())));
    format!("{} (90%: {} to {})", shown(time.forecast_ns), shown(time.forecast_low_ns), shown(time.forecast_high_ns))
}

fn range(range: ForecastRange) -> String {
    format!("{} ({} to {})", milliseconds(range.value), milliseconds(range.low), milliseconds(range.high))
}

fn parts(contributions: &[Contribution]) -> String {
    let part = |part: &Contribution| format!("{} {}", part.name.replace('_', " "), percent(Some(part.share)));
    contributions.iter().map(part).collect::<Vec<_>>().join(", ")
}
