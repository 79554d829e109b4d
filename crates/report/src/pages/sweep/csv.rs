//! One line per point, every figure exact: what a spreadsheet or a data frame reads.

use std::borrow::Cow;
use std::fmt::Write;

use crate::render::table::harmless;
use serde_json::Value;
use types::{ForecastRange, Sweep, SweepFigures, SweepPoint};

/// A column of figures: its name and what stands in it.
type Figure = (&'static str, fn(&SweepFigures) -> String);

/// Columns behind the settings, in order.
const FIGURES: &[Figure] = &[
    ("devices", |f| f.devices.to_string()),
    ("seq_len", |f| f.seq_len.to_string()),
    ("ttft_ms", |f| f.ttft_ms.to_string()),
    ("time_per_output_token_ms", |f| optional(f.time_per_output_token_ms)),
    ("decode_tokens_per_second", |f| optional(f.decode_tokens_per_second)),
    ("total_time_ms", |f| f.total_time_ms.to_string()),
    ("prefill_bound", |f| f.prefill_bound.clone()),
    ("decode_bound", |f| f.decode_bound.clone().unwrap_or_default()),
    ("weights_bytes", |f| f.weights_bytes.get().to_string()),
    ("activations_peak_bytes", |f| f.activations_peak_bytes.get().to_string()),
    ("kv_bytes", |f| f.kv_bytes.get().to_string()),
    ("total_bytes", |f| f.total_bytes.get().to_string()),
    ("fits", |f| f.fits.to_string()),
    ("sequences_that_fit", |f| optional(f.sequences_that_fit)),
    ("prefill_sent_bytes", |f| f.prefill_sent_bytes.get().to_string()),
    ("step_sent_bytes", |f| optional(f.step_sent_bytes.map(|bytes| bytes.get()))),
    ("forecast_ttft_ms", |f| optional(first(f).map(|range| range.value))),
    ("forecast_ttft_low_ms", |f| optional(first(f).map(|range| range.low))),
    ("forecast_ttft_high_ms", |f| optional(first(f).map(|range| range.high))),
    ("forecast_time_per_output_token_ms", |f| optional(each(f).map(|range| range.value))),
    ("forecast_time_per_output_token_low_ms", |f| optional(each(f).map(|range| range.low))),
    ("forecast_time_per_output_token_high_ms", |f| optional(each(f).map(|range| range.high))),
    ("forecast_origin", |f| optional(f.forecast.map(|forecast| forecast.origin))),
];

fn first(figures: &SweepFigures) -> Option<ForecastRange> {
    Some(figures.forecast?.ttft_ms)
}

fn each(figures: &SweepFigures) -> Option<ForecastRange> {
    figures.forecast?.time_per_output_token_ms
}

/// The sweep as CSV with a head line. What is unknown is empty.
pub fn csv(sweep: &Sweep) -> String {
    let mut text = String::with_capacity(256 * (sweep.points.len() + 1));
    text.push_str("point,hardware");
    for axis in &sweep.axes {
        push(&mut text, &axis.key);
    }
    for (name, _) in FIGURES {
        push(&mut text, name);
    }
    text.push_str(",error\n");
    for point in &sweep.points {
        line(&mut text, sweep, point);
    }
    text
}

fn line(text: &mut String, sweep: &Sweep, point: &SweepPoint) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", point.point);
    push(text, &point.hardware);
    for axis in &sweep.axes {
        push(text, &point.settings.get(&axis.key).map(value).unwrap_or_default());
    }
    for (_, figure) in FIGURES {
        push(text, &point.figures.as_ref().map(figure).unwrap_or_default());
    }
    push(text, point.error.as_deref().unwrap_or_default());
    text.push('\n');
}

/// One more cell.
fn push(text: &mut String, content: &str) {
    text.push(',');
    text.push_str(&cell(content));
}

/// A cell; quoted where it must be. A text that a spreadsheet would run as a formula gets an apostrophe in front, as
/// spreadsheets themselves write it, and what a terminal would obey is made visible.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let text = if is_formula { format!("'{text}").into() } else { Cow::Borrowed(text) };
    let text = match harmless(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown.into(),
    };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")).into() } else { text }
}

/// A setting as it is written on the command line.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::sample;

    #[test]
    fn one_line_per_point_with_every_figure() {
        insta::assert_snapshot!(csv(&sample::sweep()));
    }

    #[test]
    fn every_line_has_as_many_cells_as_the_head() {
        let text = csv(&sample::sweep());
        let cells = |line: &str| {
            let mut quoted = false;
            1 + line
                .chars()
                .filter(|c| {
                    quoted ^= *c == '"';
                    *c == ',' && !quoted
                })
                .count()
        };
        let head = cells(text.lines().next().unwrap());
        assert!(text.lines().all(|line| cells(line) == head), "{text}");
    }
}
