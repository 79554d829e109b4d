//! The first screen: what happened in one sentence, five numbers, and the answers to four questions.

use types::view::RunView;

use super::{answers, prose};
use crate::escape::escape;
use crate::number::{percent, tokens_per_second};
use crate::profile::{device, headline, model};

/// Numbers on the first screen.
const NUMBERS: usize = 5;

/// The title of the page.
pub(super) fn title(run: &RunView<'_>) -> String {
    format!("{} on {}", model(run.metrics), device(run.metrics))
}

/// Sentence, numbers and answers. `find` picks the anchor that the page has.
pub(super) fn html(run: &RunView<'_>, find: impl Fn(&[&'static str]) -> Option<&'static str>) -> String {
    let number = |Number { name, value, origin, source }: Number| {
        let value = match find(source) {
            Some(anchor) => format!("<a href=\"#{anchor}\">{}</a>", escape(&value)),
            None => escape(&value),
        };
        format!("<div><dt>{name}</dt><dd>{value}</dd><dd class=\"m\">{origin}</dd></div>\n")
    };
    let numbers: String = numbers(run).into_iter().take(NUMBERS).map(number).collect();
    let mut text = format!("<div class=\"verdict\">{}</div>\n", prose::html(&headline(run), "v"));
    if !numbers.is_empty() {
        text += &format!("<dl class=\"numbers\">\n{numbers}</dl>\n");
    }
    text + &answers::html(run, find)
}

/// A number, with where it is from and the part of the page that it is taken from.
struct Number {
    name: &'static str,
    value: String,
    origin: &'static str,
    source: &'static [&'static str],
}

/// What is known of the run, the most asked for first.
fn numbers(run: &RunView<'_>) -> Vec<Number> {
    const RATES: &[&str] = &["report-aggregates", "report-per-stage-timings"];
    const USED: &[&str] = &["report-mfu-and-mbu"];
    const DEVICE: &[&str] = &["report-device-time", "stakeholder_summary-device-time"];
    const STEPS: &[&str] = &["report-steps", "steps"];
    const KERNELS: &[&str] = &["report-top-kernels", "kernels"];
    let (rates, used) = (&run.metrics.times.throughput, &run.metrics.utilisation);
    let mut found = Vec::new();
    let mut add = |name, value: Option<String>, origin, source| {
        if let Some(value) = value {
            found.push(Number { name, value, origin, source });
        }
    };
    add("time to first token", rates.ttft_ns.map(|time| time.to_string()), "measured, median", RATES);
    add("time per output token", rates.time_per_output_token_ns.map(|time| time.to_string()), "measured", RATES);
    add("decode throughput", rates.decode_tokens_per_second.map(tokens_per_second), "measured, of wall time", RATES);
    add("MFU", used.mfu_model_level.map(|share| percent(Some(share))), "modelled work over measured time", USED);
    add("MBU", used.mbu_model_level.map(|share| percent(Some(share))), "modelled bytes over measured time", USED);
    if let [steps] = run.engine_steps.as_slice() {
        let name = if steps.steps > 1 { "device time of a step, mean" } else { "device time of the step" };
        add(name, steps.mean_ns.map(|time| time.to_string()), "measured", STEPS);
        let rate = steps.tokens_per_second.map(tokens_per_second);
        add("throughput in steps", rate, "measured, of device time", STEPS);
    }
    // A serving engine is recorded for longer than its steps take: what the device does around them is no answer.
    if let [time] = run.device_time.as_slice()
        && run.engine_steps.is_empty()
    {
        add("device busy", time.busy.map(|share| percent(Some(share))), "measured", DEVICE);
        add("device idle", Some(time.time.idle_ns.to_string()), "measured", DEVICE);
        add("recorded", Some(time.time.span_ns.to_string()), "measured", DEVICE);
    }
    add("devices", (run.device_time.len() > 1).then(|| run.device_time.len().to_string()), "counted", DEVICE);
    add("kernel time", (run.kernels.calls > 0).then(|| run.kernels.total_ns.to_string()), "measured", KERNELS);
    add("kernel launches", (run.kernels.calls > 0).then(|| crate::grouped(run.kernels.calls)), "counted", KERNELS);
    found
}
