//! The first screen: what happened in one sentence, five numbers, and what to do first.

use std::fmt::Write;

use types::view::RunView;

use super::prose;
use crate::escape::escape;
use crate::markdown::sentence;
use crate::number::{percent, tokens_per_second};
use crate::profile::{device, headline, model, saving};

/// Numbers on the first screen.
const NUMBERS: usize = 5;

/// The title of the page.
pub(super) fn title(run: &RunView<'_>) -> String {
    format!("{} on {}", model(run.metrics), device(run.metrics))
}

/// Sentence, numbers and first step.
pub(super) fn html(run: &RunView<'_>) -> String {
    let mut text =
        format!("<div class=\"verdict\">{}</div>\n<dl class=\"numbers\">\n", prose::html(&headline(run), "v"));
    for (name, value, origin) in numbers(run).into_iter().take(NUMBERS) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"m\">{origin}</dd></div>",
            escape(name),
            escape(&value)
        );
    }
    text += "</dl>\n";
    text + &first_step(run)
}

/// What is known of the run, the most asked for first, each with where it is from.
fn numbers(run: &RunView<'_>) -> Vec<(&'static str, String, &'static str)> {
    let (rates, used) = (&run.metrics.times.throughput, &run.metrics.utilisation);
    let mut found = Vec::new();
    let mut add = |name, value: Option<String>, origin| {
        if let Some(value) = value {
            found.push((name, value, origin));
        }
    };
    add("time to first token", rates.ttft_ns.map(|time| time.to_string()), "measured, median");
    add("time per output token", rates.time_per_output_token_ns.map(|time| time.to_string()), "measured");
    add("decode throughput", rates.decode_tokens_per_second.map(tokens_per_second), "measured");
    add("MFU", used.mfu_model_level.map(|share| percent(Some(share))), "modelled work over measured time");
    add("MBU", used.mbu_model_level.map(|share| percent(Some(share))), "modelled bytes over measured time");
    if let [time] = run.device_time.as_slice() {
        add("device busy", time.busy.map(|share| percent(Some(share))), "measured");
        add("device idle", Some(time.time.idle_ns.to_string()), "measured");
        add("recorded", Some(time.time.span_ns.to_string()), "measured");
    }
    add("devices", (run.device_time.len() > 1).then(|| run.device_time.len().to_string()), "counted");
    add("kernel time", (run.kernels.calls > 0).then(|| run.kernels.total_ns.to_string()), "measured");
    add("kernel launches", (run.kernels.calls > 0).then(|| crate::grouped(run.kernels.calls)), "counted");
    found
}

fn first_step(run: &RunView<'_>) -> String {
    let first = run.largest_savings.first().or_else(|| run.findings.first());
    let Some(view) = first else {
        return "<p class=\"first\">No rule found enough evidence to advise anything.</p>\n".to_owned();
    };
    let finding = view.finding;
    let evidence = finding.evidence.first().map(|text| sentence(text) + ". ").unwrap_or_default();
    let saves = view.saving.as_ref().map(|found| format!(" Estimated saving: {}.", saving(found))).unwrap_or_default();
    let text = format!("**First: {}.** {evidence}{}{saves}", finding.rule, sentence(&finding.advice));
    format!("<div class=\"first\">{}</div>\n", prose::html(&text, "f"))
}
