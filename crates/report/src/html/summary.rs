//! The first screen: what happened in one sentence, five numbers, and the answers to four questions.

use std::borrow::Cow;

use types::view::RunView;
use types::{Latency, Quantile, RunManifest};

use super::answers::{self, Answer, answers};
use crate::pages::run::{device, headline, imported_facts, model, serving};
use crate::render::escape::escape;
use crate::render::html_line;
use crate::words::number::{milliseconds, percent, tokens_per_second};

/// Numbers on the first screen.
const NUMBERS: usize = 5;
/// Characters of a command in the title.
const TITLE: usize = 80;

/// What the page shows first.
#[derive(Default)]
pub(super) struct FirstScreen {
    /// What happened, as Markdown.
    pub(super) headline: String,
    /// The parts of the page that it is taken from, the best first.
    pub(super) source: &'static [&'static str],
    pub(super) numbers: Vec<Number>,
    pub(super) answers: Vec<Answer>,
}

/// That of a run.
pub(super) fn of_run(run: &RunView<'_>) -> FirstScreen {
    FirstScreen {
        // The first answer below says where the latency goes.
        headline: run.serving.as_ref().map_or_else(|| headline(run), |view| format!("**{}**", serving::answer(view))),
        source: verdict_source(run),
        numbers: numbers(run),
        answers: answers(run),
    }
}

/// What the page is called. What nobody named is told by its file.
pub(super) fn title(run: &RunView<'_>, manifest: Option<&RunManifest>) -> String {
    let sources = run.metrics.conditions.trace.as_ref().map(|trace| trace.sources.as_slice()).unwrap_or_default();
    let unnamed = run.metrics.run.model.is_none() && imported_facts(run.metrics).is_some();
    let on = device(run.metrics);
    let command = manifest.map(|manifest| manifest.command.as_slice()).unwrap_or_default();
    let program = command.iter().position(|word| word == "--").map(|place| command[place + 1..].join(" "));
    let program = program.filter(|_| run.metrics.run.model.is_none() && run.metrics.run.engine == "command");
    match (run.commands.as_slice(), sources) {
        ([], [first, rest @ ..]) if unnamed => {
            let file = first.path.rsplit('/').next().unwrap_or_default();
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            format!("{file}{more} on {on}")
        }
        ([], _) => format!("{} on {on}", program.as_deref().map_or(model(run.metrics).to_owned(), shortened)),
        ([command], _) => format!("Profile of {}", shortened(&command.facts.command)),
        (commands, _) => format!("Profile of {} commands", commands.len()),
    }
}

/// A command as long as a title may be.
fn shortened(command: &str) -> String {
    if command.chars().count() <= TITLE {
        command.to_owned()
    } else {
        command.chars().take(TITLE - 1).chain(['…']).collect()
    }
}

/// Sentence, numbers and answers. `find` picks the anchor that the page has.
pub(super) fn html(screen: FirstScreen, find: impl Fn(&[&'static str]) -> Option<&'static str>) -> String {
    let FirstScreen { headline, source, numbers, answers } = screen;
    let number = |Number { name, value, origin, source }: Number| {
        let value = match find(source) {
            Some(anchor) => format!("<a href=\"#{anchor}\">{}</a>", escape(&value)),
            None => escape(&value),
        };
        format!("<div><dt>{}</dt><dd>{value}</dd><dd class=\"m\">{}</dd></div>\n", escape(&name), escape(&origin))
    };
    let numbers: String = numbers.into_iter().take(NUMBERS).map(number).collect();
    let source = find(source).map(|anchor| format!(" <a class=\"source\" href=\"#{anchor}\">Source</a>"));
    let mut text = String::new();
    if !headline.is_empty() {
        text += &format!("<p class=\"verdict\">{}{}</p>\n", html_line(&headline), source.unwrap_or_default());
    }
    if !numbers.is_empty() {
        text += &format!("<dl class=\"numbers\">\n{numbers}</dl>\n");
    }
    text + &answers::html(answers, find)
}

/// The parts of the page that the first sentence is taken from, the best first.
fn verdict_source(run: &RunView<'_>) -> &'static [&'static str] {
    if run.serving.is_some() {
        return &["report-requests", "report"];
    }
    match (run.commands.is_empty(), imported_facts(run.metrics), run.engine_steps.is_empty()) {
        (false, ..) => &["report"],
        (true, None, _) => &["report-aggregates", "stages", "report-per-stage-timings", "report"],
        (true, Some(_), false) => &["report-steps", "device-time", "report"],
        (true, Some(_), true) => &["device-time", "report-device-time", "report"],
    }
}

/// A number, with where it is from and the part of the page that it is taken from.
pub(super) struct Number {
    name: Cow<'static, str>,
    value: String,
    origin: Cow<'static, str>,
    source: &'static [&'static str],
}

impl Number {
    pub(super) fn new(
        name: impl Into<Cow<'static, str>>,
        value: impl ToString,
        origin: impl Into<Cow<'static, str>>,
        source: &'static [&'static str],
    ) -> Self {
        Self { name: name.into(), value: value.to_string(), origin: origin.into(), source }
    }
}

/// What is known of the run, the most asked for first.
fn numbers(run: &RunView<'_>) -> Vec<Number> {
    const RATES: &[&str] = &["report-aggregates", "report-per-stage-timings"];
    const USED: &[&str] = &["report-mfu-and-mbu"];
    const DEVICE: &[&str] = &["report-device-time", "stakeholder_summary-device-time"];
    const STEPS: &[&str] = &["report-steps", "steps"];
    const KERNELS: &[&str] = &["report-top-kernels", "kernels"];
    const REQUESTS: &[&str] = &["report-requests"];
    const RUNS: &[&str] = &["report"];
    let (rates, used) = (&run.metrics.times.throughput, &run.metrics.utilisation);
    let mut found = Vec::new();
    let mut add = |name: &'static str, value: Option<String>, origin: &'static str, source| {
        found.extend(value.map(|value| Number::new(name, value, origin, source)));
    };
    if let [command] = run.commands.as_slice() {
        let times = command.facts.wall_ms.as_ref();
        let how = if command.measured > 1 { "measured, median" } else { "measured, one run" };
        add("wall time", times.map(|times| milliseconds(times.median)), how, RUNS);
    }
    if let Some(load) = run.serving.as_ref().map(|view| &view.serving.load) {
        let time = |latency: Option<Latency>, of: fn(&Latency) -> Quantile| latency.map(|one| of(&one).ns.to_string());
        add("time to first token, p50", time(load.ttft, |one| one.p50), "measured by the client", REQUESTS);
        add("time to first token, p99", time(load.ttft, |one| one.p99), "measured by the client", REQUESTS);
        add("time per output token, p50", time(load.tpot, |one| one.p50), "measured by the client", REQUESTS);
        add("end-to-end latency, p50", time(load.e2el, |one| one.p50), "measured by the client", REQUESTS);
        add("output throughput", load.output_throughput.map(tokens_per_second), "measured by the client", REQUESTS);
        let joules = load.joules_per_output_token.map(|joules| joules.to_string());
        add("energy per output token", joules, "counted by the GPUs", REQUESTS);
    }
    add("time to first token", rates.ttft_ns.map(|time| time.to_string()), "measured, median per inference", RATES);
    add("time per output token", rates.time_per_output_token_ns.map(|time| time.to_string()), "measured", RATES);
    add("decode throughput", rates.decode_tokens_per_second.map(tokens_per_second), "measured", RATES);
    add("MFU", used.mfu_model_level.map(|share| percent(Some(share))), "modelled FLOPs over measured time", USED);
    add("MBU", used.mbu_model_level.map(|share| percent(Some(share))), "modelled bytes over measured time", USED);
    if let [steps] = run.engine_steps.as_slice() {
        let name = if steps.steps > 1 { "device time per step, mean" } else { "device time of the step" };
        add(name, steps.mean_ns.map(|time| time.to_string()), "measured", STEPS);
        let rate = steps.tokens_per_second.map(tokens_per_second);
        add("throughput in steps", rate, "measured, per second of wall time", STEPS);
    }
    // A serving engine is recorded for longer than its steps take: what the device does around them is no answer.
    if let [time] = run.device_time.as_slice()
        && run.engine_steps.is_empty()
    {
        add("device busy", time.busy.map(|share| percent(Some(share))), "measured, share of the recorded time", DEVICE);
        add("device idle", Some(time.time.idle_ns.to_string()), "measured", DEVICE);
        add("recorded", Some(time.time.span_ns.to_string()), "measured", DEVICE);
    }
    if let [first, _, ..] = run.device_time.as_slice() {
        add("devices", Some(run.device_time.len().to_string()), "counted", DEVICE);
        let busiest = run.device_time.iter().max_by_key(|device| device.time.busy_ns).unwrap_or(first);
        add("busiest device", busiest.busy.map(|share| percent(Some(share))), "measured, share of its span", DEVICE);
        let longest = run.device_time.iter().map(|device| device.time.span_ns).max();
        add("recorded", longest.map(|span| span.to_string()), "measured, longest device", DEVICE);
    }
    add(
        "kernel time",
        (run.kernels.calls > 0).then(|| run.kernels.total_ns.to_string()),
        "measured, all streams",
        KERNELS,
    );
    add("kernels", (run.kernels.calls > 0).then(|| crate::grouped(run.kernels.calls)), "counted", KERNELS);
    found
}
