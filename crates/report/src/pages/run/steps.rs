//! What kind of run a trace shows, and its steps.

use types::view::{EngineStepsView, RunView};
use types::{Nanos, StepBasis, StepLabel, TraceFacts};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, sentence};
use crate::words::kind::Phrase;
use crate::words::number::{count, grouped, known, milliseconds, percent, tokens_per_second};

/// Steps shown.
const STEPS: usize = 20;

/// Steps of a serving engine in a sentence each: `Decode step of 32 sequences: 9.77 ms of device time.`
pub(super) fn engine_steps(run: &RunView<'_>) -> Vec<String> {
    run.engine_steps.iter().map(engine_step).collect()
}

fn engine_step(view: &EngineStepsView) -> String {
    let prompts = view.prompts.map(|prompts| count(prompts, "prompt"));
    let sequences = view.sequences.map(|sequences| count(sequences, "decoding sequence"));
    let (noun, who) = match view.label {
        Some(StepLabel::Prefill) => ("prefill step".to_owned(), prompts),
        Some(StepLabel::Decode) => ("decode step".to_owned(), sequences),
        Some(StepLabel::Mixed) => {
            let who = prompts.zip(sequences).map(|(prompts, sequences)| format!("{prompts} and {sequences}"));
            ("mixed step".to_owned(), who)
        }
        Some(StepLabel::Verify) => ("verification step".to_owned(), sequences),
        Some(StepLabel::Draft) => ("draft step".to_owned(), None),
        None if view.prompts.zip(view.sequences) == Some((0, 0)) => ("empty step".to_owned(), None),
        None => (format!("{} step", code(&view.annotation)), None),
    };
    let is_speculative = matches!(view.label, Some(StepLabel::Verify | StepLabel::Draft));
    let of = if is_speculative { " of speculative decoding" } else { "" };
    let who = who.map(|who| format!(" with {who}")).unwrap_or_default();
    let tokens = view.tokens.filter(|tokens| *tokens > 0);
    let tokens = tokens.map(|tokens| format!(", {}", count(tokens, "token"))).unwrap_or_default();
    let rate =
        view.tokens_per_second.map(|rate| format!(" ({} of wall time)", tokens_per_second(rate))).unwrap_or_default();
    let each = if view.steps > 1 { format!(", {} each on average", known(view.mean_ns)) } else { String::new() };
    let roofline = view.roofline_mean_ns.map(|time| format!(", roofline time {time}")).unwrap_or_default();
    let accepted = if view.label == Some(StepLabel::Verify) { "; accepted tokens are not recorded" } else { "" };
    let steps = count(view.steps, &noun);
    if view.device_ns == Nanos::ZERO {
        return format!("{steps}{of}{who}{tokens}.");
    }
    format!("{steps}{of}{who}{tokens}: {} of device time{each}{roofline}{rate}{accepted}.", view.device_ns)
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
    // Device work that was not recorded, or whose launches were not, is unknown and not zero.
    let recorded = steps.list.iter().any(|step| step.kernels > 0 || step.device_ns > Nanos::ZERO);
    let (steps_found, basis) = (count(steps.list.len() as u64, "step"), steps.basis.phrase());
    page.paragraph(&match (recorded, steps.basis) {
        (false, _) => format!("{steps_found} (source: {basis}). Wall time is host time: no device work of these steps is known."),
        (true, basis_of) => format!(
            "{steps_found} (source: {basis}). Wall time runs from the start of a step, or the end of the work launched before it, to \
             the end of its device work{}; device time is the time its work kept the device busy.",
            match basis_of {
                StepBasis::EngineAnnotations => {
                    ", without the time in which the device does nothing although its next work has been launched"
                }
                _ => "",
            }
        ),
    });
    let device_spread = spread("device time per step", &steps.device_ms).filter(|_| recorded);
    let spreads = spread("wall time per step", &steps.wall_ms).into_iter().chain(device_spread);
    page.list(engine_steps(run).into_iter().chain(spreads));
    let [is_labelled, has_batch, has_work] = [
        steps.list.iter().any(|step| step.label.is_some()),
        steps.list.iter().any(|step| step.batch.is_some()),
        steps.list.iter().any(|step| step.work.is_some()),
    ];
    let columns = [
        ("step", true),
        (" | kind", is_labelled),
        (" | >wall | >host | >device | >kernels", true),
        (" | >prompts | >decoding sequences | >tokens", has_batch),
        (" | >roofline | >MFU | >MBU", has_work),
    ];
    let mut table = Table::new(&columns.iter().filter(|(_, shown)| *shown).map(|(head, _)| *head).collect::<String>());
    for step in steps.list.iter().take(STEPS) {
        // Launches of whole graphs hide theirs.
        let kernels = (step.kernels > 0 || step.device_ns == Nanos::ZERO).then(|| grouped(step.kernels));
        let mut cells = vec![code(&step.name)];
        if is_labelled {
            cells.push(known(step.label.map(StepLabel::name)));
        }
        cells.extend([step.wall_ns.to_string(), step.host_ns.to_string()]);
        cells.extend([known(recorded.then_some(step.device_ns)), known(kernels.filter(|_| recorded))]);
        if has_batch {
            cells.push(known(step.batch.map(|batch| batch.context.sequences)));
            cells.push(known(step.batch.map(|batch| batch.generation.sequences)));
            cells.push(known(step.batch.and_then(|batch| batch.tokens)));
        }
        if has_work {
            cells.push(known(step.work.and_then(|work| work.roofline_ns)));
            cells.extend([step.work.and_then(|work| work.mfu), step.work.and_then(|work| work.mbu)].map(percent));
        }
        table.row(cells);
    }
    page.table(&table);
    if steps.list.len() > STEPS {
        page.paragraph(&format!("{} more are in `metrics.json`.", grouped((steps.list.len() - STEPS) as u64)));
    }
}
