//! What kind of run a trace shows, and its steps.

use types::view::{EngineStepsView, RunView};
use types::{StepLabel, TraceFacts};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, sentence};
use crate::words::kind::Phrase;
use crate::words::number::{count, grouped, known, milliseconds, tokens_per_second};

/// Steps shown.
const STEPS: usize = 20;

/// Steps of a serving engine in a sentence each: `Decode step of 32 sequences: 9.77 ms of device time.`
pub(super) fn engine_steps(run: &RunView<'_>) -> Vec<String> {
    run.engine_steps.iter().map(engine_step).collect()
}

fn engine_step(view: &EngineStepsView) -> String {
    let who = match view.label {
        StepLabel::Prefill => count(view.prompts, "prompt"),
        StepLabel::Decode => count(view.sequences, "decoding sequence"),
        StepLabel::Mixed => {
            format!("{} and {}", count(view.prompts, "prompt"), count(view.sequences, "decoding sequence"))
        }
    };
    let tokens = view.tokens.map(|tokens| format!(", {}", count(tokens, "token"))).unwrap_or_default();
    let rate = view.tokens_per_second.map(|rate| format!(" ({})", tokens_per_second(rate))).unwrap_or_default();
    let each = if view.steps > 1 { format!(", {} each on average", known(view.mean_ns)) } else { String::new() };
    let steps = count(view.steps, &format!("{} step", view.label.name()));
    format!("{steps} with {who}{tokens}: {} of device time{each}{rate}.", view.device_ns)
}

/// What kind of run it is.
pub(super) fn kind(facts: &TraceFacts) -> Option<String> {
    let kind = facts.kind.as_ref()?;
    Some(format!("The trace shows {}: {}.", kind.kind.phrase(), sentence(kind.evidence.trim_end_matches('.'))))
}

/// The steps.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    let Some(steps) = &run.metrics.times.steps else { return };
    page.heading("Steps (measured)");
    let spread = |what: &str, times: &Option<types::Statistics>| {
        let times = times.as_ref()?;
        let std = times.std.map(|std| format!(", std {}", milliseconds(std))).unwrap_or_default();
        let (median, min, max) = (milliseconds(times.median), milliseconds(times.min), milliseconds(times.max));
        Some(format!("{what}: median {median}, min {min}, max {max}{std}"))
    };
    page.paragraph(&format!(
        "{} (source: {}). Wall time runs from the start of a step, or the end of the one before it, to the end of its device \
         work; device time is the time its work kept the device busy.",
        count(steps.list.len() as u64, "step"),
        steps.basis.phrase()
    ));
    let spreads = spread("wall time per step", &steps.wall_ms)
        .into_iter()
        .chain(spread("device time per step", &steps.device_ms));
    page.list(engine_steps(run).into_iter().chain(spreads));
    let mut table =
        Table::new("step | kind | >wall | >host | >device | >kernels | >prompts | >decoding sequences | >tokens");
    for step in steps.list.iter().take(STEPS) {
        table.row([
            code(&step.name),
            known(step.label.map(StepLabel::name)),
            step.wall_ns.to_string(),
            step.host_ns.to_string(),
            step.device_ns.to_string(),
            grouped(step.kernels),
            known(step.batch.map(|batch| batch.context.sequences)),
            known(step.batch.map(|batch| batch.generation.sequences)),
            known(step.batch.and_then(|batch| batch.tokens)),
        ]);
    }
    page.table(&table);
    if steps.list.len() > STEPS {
        page.paragraph(&format!("{} more are in `metrics.json`.", grouped((steps.list.len() - STEPS) as u64)));
    }
}
