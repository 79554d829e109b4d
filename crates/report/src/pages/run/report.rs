//! `report.md`: the whole run, from what is asked first to what is asked last.

use types::view::RunView;
use types::{Environment, Metrics, Nanos, StepBasis, Throughput};

use super::headline::headline;
use super::phrase::{device, environment, extent, imported_facts, model, nested, no_utilisation, overhead, stage};
use super::quality::quality;
use super::{
    caveats, communication, critical_path, device_time, findings, imported, lost, memory, recorded, serving, steps,
    tries,
};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose};
use crate::words::number::{UNKNOWN, count, decimal, grouped, known, milliseconds, percent, share, tokens_per_second};

/// Modules shown.
const MODULES: usize = 20;
/// Inputs shown.
const INPUTS: usize = 50;

/// The run as Markdown: caveats, the answer, what to do, where the time goes, and then the details. An imported run is described
/// from its files: what it lacks is left out, not filled in.
pub fn report_page(run: &RunView<'_>, environment: &Environment) -> Page {
    let metrics = run.metrics;
    let imported = imported_facts(metrics);
    let mut page = Page::new(&format!("Profile of {} on {}", prose(model(metrics)), prose(&device(metrics))));
    caveats::callout(&mut page, metrics);
    page.paragraph(&headline(run));
    // Requests say themselves how they were measured.
    let of_client_alone = run.serving.is_some() && metrics.conditions.trace.is_none();
    if !of_client_alone {
        page.paragraph(&imported.map_or_else(|| method(metrics), |facts| imported::method(run, facts)));
    }
    findings::section(&mut page, run);
    serving::section(&mut page, run);
    if of_client_alone {
        quality(&mut page, run);
        machine(&mut page, metrics, environment);
        return page;
    }
    match imported {
        Some(facts) => imported::stages(&mut page, run, facts),
        None => stages(&mut page, run),
    }
    recorded::device(&mut page, run);
    device_time::section(&mut page, run);
    let is_host_only = imported::is_host_only(run);
    if !is_host_only {
        lost::lost_time(&mut page, run);
        critical_path::section(&mut page, run);
    }
    tries::section(&mut page, run);
    if imported.is_none() || metrics.times.throughput != Throughput::default() {
        aggregates(&mut page, metrics);
    }
    utilisation(&mut page, run);
    recorded::flop_checks(&mut page, run);
    if imported.is_some() {
        steps::section(&mut page, run);
    } else {
        variation(&mut page, metrics);
    }
    recorded::ranks(&mut page, run);
    communication::collectives(&mut page, run);
    recorded::memory(&mut page, run);
    memory::section(&mut page, run);
    match metrics.conditions.trace {
        Some(_) if is_host_only => {}
        Some(_) => lost::modules(&mut page, run),
        None => modules(&mut page, metrics),
    }
    imported::top_operators(&mut page, run);
    imported::top_kernels(&mut page, run);
    match imported {
        Some(facts) => {
            imported::workload(&mut page, run, facts);
            imported::sources(&mut page, facts);
        }
        None => inputs(&mut page, metrics),
    }
    quality(&mut page, run);
    machine(&mut page, metrics, environment);
    page
}

fn method(metrics: &Metrics) -> String {
    let mut text = format!("Measured: {}", extent(metrics));
    if let Some(settings) = &metrics.conditions.settings {
        text += &format!(", after {}, batch {}", count(settings.warmup_rounds.into(), "warm-up round"), settings.batch);
    }
    text += if metrics.conditions.trace.as_ref().is_some_and(|facts| facts.traced_pass.is_none()) {
        ". Times are wall times with the profiler attached. "
    } else {
        ". Times are wall times of plain runs; operators and modules come from one profiled pass. "
    };
    text += &overhead(metrics);
    text + " FLOPs and bytes are modelled from the configuration; one multiply-add counts as two FLOPs."
}

fn stages(page: &mut Page, run: &RunView<'_>) {
    page.heading("Per-Stage Timings (measured)");
    if run.stages.is_empty() {
        return page.paragraph("No stages were measured.");
    }
    let wall = run.metrics.times.totals.wall_ns.map(|wall| format!(" ({wall})")).unwrap_or_default();
    page.paragraph(&format!(
        "`a > b` is a part of `a` and included in its numbers; prefill and decode add up to the run{wall}. An instance is one \
         inference of one input. Total and share cover all instances; the other columns are per instance."
    ));
    let mut table = Table::new(
        "stage | >instances | >total of all | >share of run | >median | >MAD | >mean | >std | >min | >max | >tokens per instance",
    );
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
            known(stage.tokens.and_then(|tokens| share(tokens as f64, stage.instances as f64)).map(decimal)),
        ]);
    }
    page.table(&table);
}

/// Latency and throughput over all inputs and repeats.
fn aggregates(page: &mut Page, metrics: &Metrics) {
    page.heading("Aggregates (measured)");
    let rates = &metrics.times.throughput;
    let rate = |rate: Option<f64>| rate.map(tokens_per_second);
    let time = |time: Option<Nanos>| time.map(|time| time.to_string());
    let mut table = Table::new("quantity | >value");
    for (quantity, value) in [
        ("time to first token, per inference", time(rates.ttft_ns)),
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
    let basis = metrics.times.steps.as_ref().map(|steps| steps.basis);
    page.paragraph(match basis {
        Some(StepBasis::EngineAnnotations) => {
            "Throughput is the number of tokens of all instances of a stage over their wall time."
        }
        _ => "Latency and throughput are derived from the median times of the inputs.",
    });
}

fn utilisation(page: &mut Page, run: &RunView<'_>) {
    let metrics = run.metrics;
    page.heading("MFU and MBU (modelled work over measured time)");
    match &metrics.utilisation.peak {
        Some(peak) => page.paragraph(&format!(
            "Peak: {} in {} and {} ({}). The work of all inputs, each once, is divided by the sum of their median times.",
            peak.flops,
            peak.dtype,
            peak.bytes_per_second,
            prose(&peak.source)
        )),
        None => page.paragraph(&no_utilisation(run)),
    }
    let mut table = Table::new("stage | >matrix FLOPs | >bytes | >MFU | >MBU");
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
        // Without peak rates it is said already why nothing is known.
        if metrics.utilisation.peak.is_some() {
            page.paragraph("The work of this model is not modelled.");
        }
        return;
    }
    let (mfu, mbu) = (percent(metrics.utilisation.mfu_model_level), percent(metrics.utilisation.mbu_model_level));
    table.row(["model".to_owned(), UNKNOWN.to_owned(), UNKNOWN.to_owned(), mfu, mbu]);
    page.table(&table);
}

fn variation(page: &mut Page, metrics: &Metrics) {
    page.heading("Run-to-run variation (measured)");
    page.paragraph(
        "Coefficients of variation (CV): between repeats of the same input, pooled over all inputs, and between the inputs' medians.",
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
        return page.paragraph("No operators were recorded inside modules.");
    }
    let cut = match metrics.breakdown.modules.len() {
        all if all > MODULES => format!(" The table shows the first {MODULES} of {all}."),
        _ => String::new(),
    };
    page.paragraph(&format!(
        "Rows include submodules, so they overlap; self excludes them. Roofline is the shortest time that the device's peak rates \
         allow for the module's operators; lost is the rest.{cut} `operators.md` has the parts without overlap."
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
    page.table_or(&table, "No inputs were recorded.");
    if let Some(more) = metrics.conditions.inputs.len().checked_sub(INPUTS).filter(|more| *more > 0) {
        page.paragraph(&format!("{more} more are in `metrics.json`."));
    }
}

fn machine(page: &mut Page, metrics: &Metrics, machine: &Environment) {
    page.heading("Environment");
    page.list(environment(metrics, machine));
    page.paragraph(&format!(
        "Run {}, {} at {}. `env.json` has the details.",
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
        assert_eq!(page.lines().filter(|line| line.starts_with("## ")).count(), 12, "{page}");
    }
}
