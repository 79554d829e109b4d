//! `report.md`: the whole run, from what is asked first to what is asked last.

use types::view::RunView;
use types::{Environment, Metrics, Nanos, Throughput, TraceFacts};

use super::communication;
use super::critical_path;
use super::device_time;
use super::imported;
use super::lost;
use super::memory;
use super::phrase::{
    device, environment, extent, imported_facts, model, nested, no_utilisation, overhead, place, replayed, saving,
    stage,
};
use super::recorded;
use super::steps;
use super::tries;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose, sentence};
use crate::words::number::{UNKNOWN, count, grouped, known, milliseconds, percent, tokens_per_second};

/// Modules shown.
const MODULES: usize = 20;
/// Inputs shown.
const INPUTS: usize = 50;

/// The run as Markdown.
pub fn report_page(run: &RunView<'_>, environment: &Environment) -> Page {
    let metrics = run.metrics;
    let mut page = Page::new(&format!("Profile of {} on {}", prose(model(metrics)), prose(&device(metrics))));
    if let Some(facts) = imported_facts(metrics) {
        imported_sections(&mut page, run, facts, environment);
        return page;
    }
    page.paragraph(&measured(run));
    lost::lost_time(&mut page, run);
    page.paragraph(&method(metrics));
    stages(&mut page, run);
    recorded::ranks(&mut page, run);
    utilisation(&mut page, run);
    recorded::flop_checks(&mut page, run);
    recorded::device(&mut page, run);
    device_time::section(&mut page, run);
    communication::collectives(&mut page, run);
    recorded::memory(&mut page, run);
    memory::section(&mut page, run);
    findings(&mut page, run);
    critical_path::section(&mut page, run);
    tries::section(&mut page, run);
    variation(&mut page, metrics);
    if metrics.conditions.trace.is_some() {
        lost::modules(&mut page, run);
    } else {
        modules(&mut page, metrics);
    }
    imported::top_operators(&mut page, run);
    imported::top_kernels(&mut page, run);
    inputs(&mut page, metrics);
    quality(&mut page, run);
    machine(&mut page, metrics, environment);
    page
}

/// An imported run is described from its files: what it lacks is left out, not filled in.
fn imported_sections(page: &mut Page, run: &RunView<'_>, facts: &TraceFacts, environment: &Environment) {
    page.paragraph(&imported::headline(run));
    page.paragraph(&imported::method(run, facts));
    device_time::section(page, run);
    findings(page, run);
    critical_path::section(page, run);
    communication::collectives(page, run);
    steps::section(page, run);
    memory::section(page, run);
    lost::lost_time(page, run);
    imported::stages(page, run, facts);
    if run.metrics.times.throughput != Throughput::default() {
        aggregates(page, run.metrics);
    }
    recorded::ranks(page, run);
    utilisation(page, run);
    lost::modules(page, run);
    imported::top_operators(page, run);
    imported::top_kernels(page, run);
    imported::workload(page, run, facts);
    imported::coverage(page, facts);
    quality(page, run);
    imported::sources(page, facts);
    machine(page, run.metrics, environment);
}

/// First token, time per token and utilisation, in a sentence or two.
pub(super) fn measured(run: &RunView<'_>) -> String {
    let (metrics, rates) = (run.metrics, &run.metrics.times.throughput);
    let mut text = match (rates.ttft_ns, run.forward_pass_ms) {
        (None, None) => return "**No prefill was measured.**".to_owned(),
        (None, Some(pass)) => format!("**{} for a forward pass.**", milliseconds(pass)),
        (Some(first), _) => {
            let then = match (rates.time_per_output_token_ns, rates.decode_tokens_per_second) {
                (Some(step), Some(rate)) => format!("then {step} per token ({})", tokens_per_second(rate)),
                _ => "and nothing was decoded".to_owned(),
            };
            format!("**{first} to the first token, {then}.**")
        }
    };
    if let Some(mfu) = metrics.utilisation.mfu_model_level {
        text += &format!(" The model reached {} of peak FLOP/s (MFU)", percent(Some(mfu)));
        let mbu = metrics
            .utilisation
            .mbu_model_level
            .map(|mbu| format!(" and {} of peak bandwidth (MBU)", percent(Some(mbu))));
        text += &(mbu.unwrap_or_default() + ".");
    }
    text
}

fn method(metrics: &Metrics) -> String {
    let mut text = format!("Measured: {}", extent(metrics));
    if let Some(settings) = &metrics.conditions.settings {
        text += &format!(", after {}, batch {}", count(settings.warmup_rounds.into(), "warm-up round"), settings.batch);
    }
    text += match metrics.conditions.trace.as_ref().is_some_and(|facts| facts.traced_pass.is_none()) {
        true => ". Times are wall times as recorded, with the profiler attached. ",
        false => ". Times are wall times of plain runs; operators and modules are from one profiled pass. ",
    };
    text += &overhead(metrics);
    text + " FLOPs and bytes are modelled from the configuration; one multiply-add counts as two FLOPs."
}

fn stages(page: &mut Page, run: &RunView<'_>) {
    page.heading("Per-Stage Timings (measured)");
    if run.stages.is_empty() {
        return page.paragraph("No stage was measured.");
    }
    let wall = run.metrics.times.totals.wall_ns.map(|wall| format!(": {wall}")).unwrap_or_default();
    page.paragraph(&format!(
        "`a > b` is a part of `a` and contained in its numbers; prefill and decode add up to the run{wall}. Total is over all \
         instances; the other times are per instance, over all inputs."
    ));
    let mut table =
        Table::new("stage | >instances | >total | >share | >median | >MAD | >mean | >std | >min | >max | >tokens");
    for view in &run.stages {
        let (stage, times) = (view.stage, view.times);
        let of = |value: Option<f64>| known(value.map(milliseconds));
        table.row([
            nested(stage.name),
            grouped(stage.instances),
            known(stage.wall_ns),
            percent(view.run_share),
            of(times.map(|times| times.median)),
            of(times.and_then(|times| times.mad)),
            of(times.map(|times| times.mean)),
            of(times.and_then(|times| times.std)),
            of(times.map(|times| times.min)),
            of(times.map(|times| times.max)),
            known(stage.tokens.map(grouped)),
        ]);
    }
    page.table(&table);
    aggregates(page, run.metrics);
}

/// Rates over all inputs and repeats.
fn aggregates(page: &mut Page, metrics: &Metrics) {
    page.heading("Aggregates (measured)");
    let rates = &metrics.times.throughput;
    let rate = |rate: Option<f64>| rate.map(tokens_per_second);
    let time = |time: Option<Nanos>| time.map(|time| time.to_string());
    let mut table = Table::new("quantity | >value");
    for (quantity, value) in [
        ("time to first token", time(rates.ttft_ns)),
        ("time per output token", time(rates.time_per_output_token_ns)),
        ("decode throughput", rate(rates.decode_tokens_per_second)),
        ("end-to-end throughput", rate(rates.end_to_end_tokens_per_second)),
        ("prefill throughput", rate(rates.prefill_tokens_per_second)),
        ("model load time", time(metrics.times.load_ns)),
    ] {
        // A trace may tell one of them alone.
        if value.is_some() || metrics.conditions.trace.is_none() {
            table.row([quantity.to_owned(), known(value)]);
        }
    }
    page.table(&table);
}

fn utilisation(page: &mut Page, run: &RunView<'_>) {
    let metrics = run.metrics;
    page.heading("MFU and MBU (modelled work over measured time)");
    match &metrics.utilisation.peak {
        Some(peak) => page.paragraph(&format!(
            "Relative to peak: {} in {} and {} ({}). The work is that of all inputs, each once, over the sum of their median times; a dash means \
             unknown.",
            peak.flops,
            peak.dtype,
            peak.bytes_per_second,
            prose(&peak.source)
        )),
        None => page.paragraph(&no_utilisation(run)),
    }
    let mut table = Table::new("stage | >matrix work | >bytes | >MFU | >MBU");
    for (name, work) in &metrics.utilisation.work_per_stage {
        let used = stage(metrics, *name);
        table.row([
            nested(*name),
            work.flops_matrix.to_string(),
            work.bytes.to_string(),
            percent(used.and_then(|stage| stage.mfu)),
            percent(used.and_then(|stage| stage.mbu)),
        ]);
    }
    if table.is_empty() {
        return page.paragraph("The work of this model is not modelled.");
    }
    let (mfu, mbu) = (percent(metrics.utilisation.mfu_model_level), percent(metrics.utilisation.mbu_model_level));
    table.row(["model".to_owned(), UNKNOWN.to_owned(), UNKNOWN.to_owned(), mfu, mbu]);
    page.table(&table);
}

pub(super) fn findings(page: &mut Page, run: &RunView<'_>) {
    page.heading("Findings");
    if run.findings.is_empty() {
        return page.paragraph("No rule found enough evidence.");
    }
    for view in &run.findings {
        let finding = view.finding;
        let (rule, place, severity) = (prose(&finding.rule), place(run, view), finding.severity.name());
        page.paragraph(&format!("**{rule}** ({place}, {severity})"));
        let saves = view.saving.as_ref().map_or("unknown (the evidence does not quantify it)".to_owned(), saving);
        let evidence = finding.evidence.iter().map(|line| sentence(line));
        let mut rest = vec![format!("estimated saving: {saves}")];
        rest.extend(replayed(&finding.saving));
        rest.push(format!("advice: {}", sentence(&finding.advice)));
        page.list(evidence.chain(rest));
    }
}

fn variation(page: &mut Page, metrics: &Metrics) {
    page.heading("Run-to-run variation (measured)");
    page.paragraph(
        "Coefficients of variation (CV): between repeats of one input, pooled over all inputs, and between the medians of the \
         inputs.",
    );
    let mut table = Table::new("stage | >CV of repeats | >CV of inputs");
    for (stage, repeat) in &metrics.times.variance.repeat_cv_per_stage {
        let input = metrics.times.variance.input_cv_per_stage.get(stage).copied().flatten();
        table.row([nested(*stage), percent(*repeat), percent(input)]);
    }
    page.table_or(&table, "Nothing was measured.");
}

fn modules(page: &mut Page, metrics: &Metrics) {
    page.heading("Modules (profiled pass)");
    if metrics.breakdown.modules.is_empty() {
        return page.paragraph("No operator was recorded inside a module.");
    }
    let cut = match metrics.breakdown.modules.len() {
        all if all > MODULES => format!(" The first {MODULES} of {all}."),
        _ => String::new(),
    };
    page.paragraph(&format!(
        "Rows include submodules, so they overlap; self excludes them. Roofline is the time the device's peak rates allow for the \
         module's operators; lost is the rest.{cut} `operators.md` has the parts without overlap."
    ));
    page.table(&lost::module_table(metrics.breakdown.modules.iter().take(MODULES), false));
}

fn inputs(page: &mut Page, metrics: &Metrics) {
    page.heading("Inputs");
    let mut table =
        Table::new("input | >width | >height | >tiles | >prompt tokens | >image tokens | >generated tokens");
    for input in metrics.conditions.inputs.iter().take(INPUTS) {
        table.row([
            code(&input.name),
            known(input.width.map(grouped)),
            known(input.height.map(grouped)),
            known(input.crop_grid.map(|[across, down]| format!("{across} x {down}"))),
            grouped(input.prompt_tokens),
            grouped(input.image_tokens),
            grouped(input.generated_tokens),
        ]);
    }
    page.table_or(&table, "No input is recorded.");
    if let Some(more) = metrics.conditions.inputs.len().checked_sub(INPUTS).filter(|more| *more > 0) {
        page.paragraph(&format!("{more} more are in `metrics.json`."));
    }
}

pub(super) fn quality(page: &mut Page, run: &RunView<'_>) {
    page.heading("Data quality");
    let mut table = Table::new("counter | >value | >share | severity | remedy");
    for counter in &run.metrics.conclusions.quality {
        table.row([
            code(&counter.counter),
            grouped(counter.value),
            percent(counter.share),
            counter.severity.name().to_owned(),
            sentence(&counter.remedy),
        ]);
    }
    page.table_or(&table, "Nothing was dropped or left unattributed.");
}

fn machine(page: &mut Page, metrics: &Metrics, machine: &Environment) {
    page.heading("Environment");
    page.list(environment(metrics, machine));
    page.paragraph(&format!(
        "Run {}, {} {}. `env.json` has the rest.",
        code(&metrics.run.id),
        if imported_facts(metrics).is_some() { "imported" } else { "captured" },
        prose(&machine.captured_at)
    ));
}

#[cfg(test)]
mod tests {
    use analysis::view::run;

    use super::*;
    use crate::pages::run::sample;

    #[test]
    fn the_report_goes_from_the_answer_to_the_details() {
        insta::assert_snapshot!(report_page(&run(&sample::metrics()), &sample::environment()).markdown());
    }

    #[test]
    fn a_device_without_rates_has_a_report_without_utilisation() {
        insta::assert_snapshot!(report_page(&run(&sample::without_peak()), &sample::environment()).markdown());
    }

    #[test]
    fn an_empty_run_has_every_section() {
        let page = report_page(&run(&sample::empty()), &sample::environment()).markdown();
        assert_eq!(page.lines().filter(|line| line.starts_with("## ")).count(), 11, "{page}");
    }
}
