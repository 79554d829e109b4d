//! `report.md`: the whole run, from what is asked first to what is asked last.

use types::{Environment, Metrics, TraceFacts};

use super::imported;
use super::lost;
use super::page::Page;
use super::phrase::{
    device, environment, extent, forward_pass, imported_facts, known, model, nested, overhead, place, saving, sentence,
    severity, share_of_run, stage, time,
};
use super::recorded;
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, count, grouped, milliseconds, percent, tokens_per_second};
use crate::table::{Column, Table};

/// Modules shown.
const MODULES: usize = 20;
/// Inputs shown.
const INPUTS: usize = 50;

/// The run as Markdown.
pub fn report_markdown(metrics: &Metrics, environment: &Environment) -> String {
    let mut page = Page::new(&format!("Profile of {} on {}", prose(model(metrics)), prose(&device(metrics))));
    if let Some(facts) = imported_facts(metrics) {
        imported_sections(&mut page, metrics, facts, environment);
        return page.finish();
    }
    page.paragraph(&headline(metrics));
    lost::lost_time(&mut page, metrics);
    page.paragraph(&method(metrics));
    stages(&mut page, metrics);
    recorded::ranks(&mut page, metrics);
    utilisation(&mut page, metrics);
    recorded::flop_checks(&mut page, metrics);
    recorded::device(&mut page, metrics);
    recorded::memory(&mut page, metrics);
    findings(&mut page, metrics);
    variance(&mut page, metrics);
    if metrics.conditions.trace.is_some() {
        lost::modules(&mut page, metrics);
    } else {
        modules(&mut page, metrics);
    }
    imported::top_operators(&mut page, metrics);
    imported::top_kernels(&mut page, metrics);
    inputs(&mut page, metrics);
    quality(&mut page, metrics);
    machine(&mut page, metrics, environment);
    page.finish()
}

/// A run that others made is told from its files: what it lacks is left out, not filled in.
fn imported_sections(page: &mut Page, metrics: &Metrics, facts: &TraceFacts, environment: &Environment) {
    page.paragraph(&imported::headline(metrics));
    lost::lost_time(page, metrics);
    page.paragraph(&imported::method(metrics, facts));
    imported::stages(page, metrics, facts);
    recorded::ranks(page, metrics);
    utilisation(page, metrics);
    findings(page, metrics);
    lost::modules(page, metrics);
    imported::top_operators(page, metrics);
    imported::top_kernels(page, metrics);
    imported::workload(page, facts);
    imported::coverage(page, facts);
    quality(page, metrics);
    imported::sources(page, facts);
    machine(page, metrics, environment);
}

fn headline(metrics: &Metrics) -> String {
    let rates = &metrics.times.throughput;
    let mut text = match (rates.ttft_ns, forward_pass(metrics)) {
        (None, None) => return "**No prefill was measured.**".to_owned(),
        (None, Some(pass)) => format!("**{pass} for a forward pass.**"),
        (Some(first), _) => {
            let then = match (rates.time_per_output_token_ns, rates.decode_tokens_per_second) {
                (Some(step), Some(rate)) => format!("then {step} per token ({})", tokens_per_second(rate)),
                _ => "and nothing was decoded".to_owned(),
            };
            format!("**{first} to the first token, {then}.**")
        }
    };
    if let Some(mfu) = metrics.utilisation.mfu_model_level {
        text += &format!(" The model used {} of the device's arithmetic", percent(Some(mfu)));
        let mbu =
            metrics.utilisation.mbu_model_level.map(|mbu| format!(" and {} of its bandwidth", percent(Some(mbu))));
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
        true => ". Times are wall time as recorded, with the recorder at work. ",
        false => ". Times are wall time without instruments; operators and modules are from one instrumented pass. ",
    };
    text += &overhead(metrics);
    text + " FLOPs and bytes are modelled from the configuration, one multiply-add being two FLOPs."
}

fn stages(page: &mut Page, metrics: &Metrics) {
    page.heading("Per-Stage Timings (measured)");
    if metrics.times.stages.is_empty() {
        return page.paragraph("No stage was measured.");
    }
    let wall = metrics.times.totals.wall_ns.map(|wall| format!(": {wall}")).unwrap_or_default();
    page.paragraph(&format!(
        "`a > b` is a part of `a` and contained in its numbers; prefill and decode add up to the run{wall}. Total is over all \
         instances, the other times are per instance, all inputs together."
    ));
    let mut times = Table::new([
        Column::text("stage"),
        Column::number("instances"),
        Column::number("total"),
        Column::number("of run"),
        Column::number("median"),
        Column::number("MAD"),
        Column::number("mean"),
        Column::number("std"),
        Column::number("min"),
        Column::number("max"),
        Column::number("tokens"),
    ]);
    for stage in &metrics.times.stages {
        let found = metrics.times.aggregates.stage_ms.get(&stage.name);
        let of = |value: Option<f64>| known(value.map(milliseconds));
        times.row([
            nested(stage.name),
            grouped(stage.instances),
            time(stage.wall_ns),
            percent(share_of_run(metrics, stage)),
            of(found.map(|found| found.median)),
            of(found.and_then(|found| found.mad)),
            of(found.map(|found| found.mean)),
            of(found.and_then(|found| found.std)),
            of(found.map(|found| found.min)),
            of(found.map(|found| found.max)),
            known(stage.tokens.map(grouped)),
        ]);
    }
    page.table(&times);
    aggregates(page, metrics);
}

/// Rates over all inputs and repeats.
fn aggregates(page: &mut Page, metrics: &Metrics) {
    page.heading("Aggregates (measured)");
    let rates = &metrics.times.throughput;
    let rate = |rate: Option<f64>| rate.map_or(UNKNOWN.to_owned(), tokens_per_second);
    let mut table = Table::new([Column::text("rate"), Column::number("value")]);
    table.row(["time to first token".to_owned(), time(rates.ttft_ns)]);
    table.row(["time per output token".to_owned(), time(rates.time_per_output_token_ns)]);
    table.row(["decode".to_owned(), rate(rates.decode_tokens_per_second)]);
    table.row(["prefill".to_owned(), rate(rates.prefill_tokens_per_second)]);
    table.row(["loading the model".to_owned(), time(metrics.times.load_ns)]);
    page.table(&table);
}

fn utilisation(page: &mut Page, metrics: &Metrics) {
    page.heading("MFU and MBU (modelled work over measured time)");
    match &metrics.utilisation.peak {
        Some(peak) => page.paragraph(&format!(
            "Held against {} in {} and {}: {}. Work is that of all inputs, each once; a dash is unknown.",
            peak.flops,
            peak.dtype,
            peak.bytes_per_second,
            prose(&peak.source)
        )),
        None => page.paragraph("The device's rates are not known, so there is no utilisation."),
    }
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("matrix work"),
        Column::number("bytes"),
        Column::number("MFU"),
        Column::number("MBU"),
    ]);
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

pub(super) fn findings(page: &mut Page, metrics: &Metrics) {
    page.heading("Findings");
    if metrics.conclusions.findings.is_empty() {
        return page.paragraph("No rule found enough evidence to conclude anything.");
    }
    for finding in &metrics.conclusions.findings {
        let (rule, place, severity) = (prose(&finding.rule), place(finding), severity(finding.severity));
        page.paragraph(&format!("**{rule}** ({place}, {severity})"));
        let saves = saving(finding, metrics).unwrap_or("this run does not tell".to_owned());
        let evidence = finding.evidence.iter().map(|line| sentence(line));
        page.list(evidence.chain([format!("would save: {saves}"), format!("advice: {}", sentence(&finding.advice))]));
    }
}

fn variance(page: &mut Page, metrics: &Metrics) {
    page.heading("Spread (measured)");
    page.paragraph(
        "Repeats: how much runs of one input differ, all inputs pooled. Inputs: how much the inputs' medians differ. Both are \
         standard deviations as a share of the centre.",
    );
    let mut table = Table::new([Column::text("stage"), Column::number("repeats"), Column::number("inputs")]);
    for (stage, repeat) in &metrics.times.variance.repeat_cv_per_stage {
        let input = metrics.times.variance.input_cv_per_stage.get(stage).copied().flatten();
        table.row([nested(*stage), percent(*repeat), percent(input)]);
    }
    if table.is_empty() { page.paragraph("Nothing was measured.") } else { page.table(&table) }
}

fn modules(page: &mut Page, metrics: &Metrics) {
    page.heading("Modules (instrumented pass)");
    if metrics.breakdown.modules.is_empty() {
        return page.paragraph("No operator was recorded inside a module.");
    }
    let cut = match metrics.breakdown.modules.len() {
        all if all > MODULES => format!(" The first {MODULES} of {all}."),
        _ => String::new(),
    };
    page.paragraph(&format!(
        "Submodules are included, so rows overlap; own is without them. Least is what the device's rates allow for the module's operators, lost is \
         the rest.{cut} `operators.md` has the parts without overlap."
    ));
    let mut table = Table::new([
        Column::text("module"),
        Column::text("class"),
        Column::text("stage"),
        Column::number("measured"),
        Column::number("of it own"),
        Column::number("least"),
        Column::number("lost"),
        Column::text("bound"),
    ]);
    for module in metrics.breakdown.modules.iter().take(MODULES) {
        table.row([
            code(&module.path),
            prose(&module.class),
            module.stage.to_string(),
            time(module.measured_ns),
            time(module.exclusive_ns),
            time(module.speed_of_light_ns),
            time(module.lost_ns),
            module.bound.clone().unwrap_or(UNKNOWN.to_owned()),
        ]);
    }
    page.table(&table);
}

fn inputs(page: &mut Page, metrics: &Metrics) {
    page.heading("Inputs");
    let mut table = Table::new([
        Column::text("input"),
        Column::number("width"),
        Column::number("height"),
        Column::number("tiles"),
        Column::number("prompt tokens"),
        Column::number("of them image"),
        Column::number("generated"),
    ]);
    for input in metrics.conditions.inputs.iter().take(INPUTS) {
        table.row([
            code(&input.name),
            known(input.width.map(grouped)),
            known(input.height.map(grouped)),
            input.crop_grid.map_or(UNKNOWN.to_owned(), |[across, down]| format!("{across} x {down}")),
            grouped(input.prompt_tokens),
            grouped(input.image_tokens),
            grouped(input.generated_tokens),
        ]);
    }
    if table.is_empty() {
        return page.paragraph("No input is recorded.");
    }
    page.table(&table);
    if let Some(more) = metrics.conditions.inputs.len().checked_sub(INPUTS).filter(|more| *more > 0) {
        page.paragraph(&format!("{more} more are in `metrics.json`."));
    }
}

pub(super) fn quality(page: &mut Page, metrics: &Metrics) {
    page.heading("Quality of the data");
    let mut table = Table::new([
        Column::text("counter"),
        Column::number("value"),
        Column::number("share"),
        Column::text("severity"),
        Column::text("remedy"),
    ]);
    for counter in &metrics.conclusions.quality {
        table.row([
            code(&counter.counter),
            grouped(counter.value),
            percent(counter.share),
            severity(counter.severity).to_owned(),
            sentence(&counter.remedy),
        ]);
    }
    if table.is_empty() { page.paragraph("Nothing was dropped or left open.") } else { page.table(&table) }
}

fn machine(page: &mut Page, metrics: &Metrics, found: &Environment) {
    page.heading("Environment");
    page.list(environment(metrics, found));
    page.paragraph(&format!(
        "Run {}, {} {}. `env.json` has the rest.",
        code(&metrics.run.id),
        if imported_facts(metrics).is_some() { "imported" } else { "captured" },
        prose(&found.captured_at)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sample;

    #[test]
    fn the_report_goes_from_the_answer_to_the_details() {
        insta::assert_snapshot!(report_markdown(&sample::metrics(), &sample::environment()));
    }

    #[test]
    fn a_device_without_rates_has_a_report_without_utilisation() {
        insta::assert_snapshot!(report_markdown(&sample::without_peak(), &sample::environment()));
    }

    #[test]
    fn an_empty_run_has_every_section() {
        let page = report_markdown(&sample::empty(), &sample::environment());
        assert_eq!(page.lines().filter(|line| line.starts_with("## ")).count(), 11, "{page}");
    }
}
