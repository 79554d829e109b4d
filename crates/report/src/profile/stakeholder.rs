//! `stakeholder_summary.md`: the run in plain words, for people who will not read the tables.
//!
//! Every sentence is made from this run's numbers; a sentence without its number is left out.

use types::{Environment, Finding, Metrics, Severity, Stage, StageSummary};

use super::imported;
use super::lost;
use super::page::Page;
use super::phrase::{
    device, environment, extent, forward_pass, imported_facts, known, model, nested, saving, sentence, share_of_run,
    stage, time,
};
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, grouped, milliseconds, percent, share, tokens_per_second};
use crate::table::{Column, Table};

/// Cost centres named.
const CENTRES: usize = 3;
/// How many times as busy one resource must be as the other to be called what a stage waits for.
const CLEARLY: f64 = 2.0;

/// The summary as Markdown.
pub fn stakeholder_markdown(metrics: &Metrics, found: &Environment) -> String {
    with_sections(metrics, found, |_| {})
}

/// The same, with sections of another page between the kernels and what follows from them.
pub(crate) fn with_sections(metrics: &Metrics, found: &Environment, more: impl FnOnce(&mut Page)) -> String {
    let mut page = Page::new(&format!("What {} takes on {}", prose(model(metrics)), prose(&device(metrics))));
    page.heading("Environment");
    page.list(environment(metrics, found));
    aggregates(&mut page, metrics);
    stages(&mut page, metrics);
    utilisation(&mut page, metrics);
    takeaways(&mut page, metrics);
    if metrics.conditions.trace.is_none() {
        centres(&mut page, metrics);
    }
    imported::top_operators(&mut page, metrics);
    imported::top_kernels(&mut page, metrics);
    more(&mut page);
    lost::lost_time(&mut page, metrics);
    recommendations(&mut page, metrics);
    limits(&mut page, metrics);
    page.finish()
}

fn aggregates(page: &mut Page, metrics: &Metrics) {
    page.heading("Aggregates");
    let rates = &metrics.times.throughput;
    let mut lines = vec![format!("measured: {}", extent(metrics))];
    lines.extend(metrics.times.totals.wall_ns.map(|wall| format!("all runs together: {wall}")));
    lines.extend(forward_pass(metrics).map(|pass| format!("one forward pass: {pass} (median)")));
    lines.extend(rates.ttft_ns.map(|first| format!("waiting for the first token: {first} (median)")));
    lines.extend(rates.time_per_output_token_ns.map(|step| format!("each further token: {step}")));
    let decode = rates.decode_tokens_per_second;
    lines.extend(decode.map(|rate| format!("speed of writing: {}", tokens_per_second(rate))));
    let prefill = rates.prefill_tokens_per_second;
    lines.extend(prefill.map(|rate| format!("speed of reading the prompt: {}", tokens_per_second(rate))));
    page.list(lines);
}

fn stages(page: &mut Page, metrics: &Metrics) {
    page.heading("Per-Stage Timings");
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("median"),
        Column::number("mean"),
        Column::number("std"),
        Column::number("of run"),
        Column::number("tokens"),
    ]);
    for stage in &metrics.times.stages {
        let found = metrics.times.aggregates.stage_ms.get(&stage.name);
        table.row([
            nested(stage.name),
            known(found.map(|found| milliseconds(found.median))),
            known(found.map(|found| milliseconds(found.mean))),
            known(found.and_then(|found| found.std).map(milliseconds)),
            percent(share_of_run(metrics, stage)),
            known(stage.tokens.map(grouped)),
        ]);
    }
    if table.is_empty() {
        return page.paragraph("No stage was measured.");
    }
    page.table(&table);
    page.paragraph("Times are per input, all inputs and repeats together; `a > b` is contained in `a`.");
}

fn utilisation(page: &mut Page, metrics: &Metrics) {
    page.heading("MFU");
    let Some(peak) = &metrics.utilisation.peak else {
        let open = metrics.conclusions.quality.iter().find(|counter| counter.counter == "stages_without_utilisation");
        let why = match open {
            Some(counter) => format!("How well the device was used is not known: {}.", prose(&counter.remedy)),
            None => "The rates of this device are not known, so how well it was used is not either.".to_owned(),
        };
        return page.paragraph(&why);
    };
    page.paragraph(&format!(
        "MFU is the share of the device's arithmetic ({} in {}, {}) that the model's own work took up; MBU is the same for \
         memory ({}).",
        peak.flops,
        peak.dtype,
        prose(&peak.source),
        peak.bytes_per_second
    ));
    let mut table = Table::new([Column::text("part"), Column::number("MFU"), Column::number("MBU")]);
    table.row([
        "model".to_owned(),
        percent(metrics.utilisation.mfu_model_level),
        percent(metrics.utilisation.mbu_model_level),
    ]);
    for stage in [Stage::Vision, Stage::Prefill, Stage::Decode].into_iter().filter_map(|name| stage(metrics, name)) {
        table.row([stage.name.to_string(), percent(stage.mfu), percent(stage.mbu)]);
    }
    page.table(&table);
}

fn takeaways(page: &mut Page, metrics: &Metrics) {
    page.heading("Stage takeaways");
    let lines: Vec<_> = metrics.times.stages.iter().filter_map(|stage| takeaway(metrics, stage)).collect();
    if lines.is_empty() { page.paragraph("No stage was measured.") } else { page.list(lines) }
}

fn takeaway(metrics: &Metrics, stage: &StageSummary) -> Option<String> {
    let part = percent(share_of_run(metrics, stage));
    let mut text = match stage.name {
        Stage::Prefill | Stage::Decode => format!("**{}** is {part} of the run", stage.name),
        Stage::Vision => {
            let parent = self::stage(metrics, Stage::Prefill)?;
            let of = share(stage.wall_ns?.get() as f64, parent.wall_ns?.get() as f64);
            format!("**vision** is {} of prefill, {part} of the run", percent(of))
        }
        // The encoders are named with vision.
        Stage::Sam | Stage::Clip | Stage::Projector => return None,
    };
    if stage.name == Stage::Vision {
        let parts = metrics.times.stages.iter().filter(|other| other.parent == Some(Stage::Vision));
        if let Some(longest) = parts.max_by_key(|other| other.wall_ns) {
            let of = share(longest.wall_ns?.get() as f64, stage.wall_ns?.get() as f64);
            text += &format!(", and {} of it is {}", percent(of), longest.name);
        }
    }
    let waits = stage.mfu.zip(stage.mbu).map(|(mfu, mbu)| {
        let use_of =
            format!("{} of the arithmetic and {} of the bandwidth are used", percent(Some(mfu)), percent(Some(mbu)));
        match (mfu, mbu) {
            (mfu, mbu) if mbu > mfu * CLEARLY => format!("; {use_of}, so memory is the nearer limit"),
            (mfu, mbu) if mfu > mbu * CLEARLY => format!("; {use_of}, so arithmetic is the nearer limit"),
            _ => format!("; {use_of}"),
        }
    });
    text += &waits.unwrap_or_default();
    let varies = metrics.times.variance.repeat_cv_per_stage.get(&stage.name).copied().flatten();
    text += &varies.map(|varies| format!("; repeats differ by {}", percent(Some(varies)))).unwrap_or_default();
    Some(text + ".")
}

fn centres(page: &mut Page, metrics: &Metrics) {
    page.heading("Top cost centres");
    if metrics.breakdown.cost_centres.is_empty() {
        return page.paragraph("No operator was recorded, so the time cannot be divided further.");
    }
    let mut table = Table::new([
        Column::number("rank"),
        Column::text("part of the network"),
        Column::text("stage"),
        Column::number("of operator time"),
        Column::number("time"),
        Column::number("least possible"),
    ]);
    for (rank, centre) in metrics.breakdown.cost_centres.iter().take(CENTRES).enumerate() {
        table.row([
            (rank + 1).to_string(),
            code(&centre.module),
            centre.stage.to_string(),
            percent(Some(centre.share)),
            centre.total_ns.to_string(),
            time(centre.speed_of_light_ns),
        ]);
    }
    page.table(&table);
    let named: f64 = metrics.breakdown.cost_centres.iter().take(CENTRES).map(|centre| centre.share).sum();
    page.paragraph(&format!(
        "Together they are {} of the operators' time, one instrumented pass.",
        percent(Some(named))
    ));
}

fn recommendations(page: &mut Page, metrics: &Metrics) {
    page.heading("Recommendations");
    if metrics.conclusions.findings.is_empty() {
        return page.paragraph("None: no rule found enough evidence in this run.");
    }
    page.list(metrics.conclusions.findings.iter().map(|finding| recommendation(finding, metrics)));
}

/// What the numbers cannot say.
fn limits(page: &mut Page, metrics: &Metrics) {
    page.heading("Limits and assumptions");
    let mut lines = vec![
        "FLOPs, bytes and the least possible time are modelled from the model's configuration; all other times are measured."
            .to_owned(),
    ];
    if imported_facts(metrics).is_some() {
        lines.push("The times were taken under a profiler, which slows the host down; check a figure that matters without one.".to_owned());
    }
    let doubts = metrics.conclusions.quality.iter().filter(|counter| counter.severity > Severity::Info);
    lines.extend(doubts.map(|counter| {
        format!("{}: {} ({})", code(&counter.counter), grouped(counter.value), sentence(&counter.remedy))
    }));
    lines.push("`assumptions.md` has all settings, `metrics.json` all numbers.".to_owned());
    page.list(lines);
}

fn recommendation(finding: &Finding, metrics: &Metrics) -> String {
    let place = finding.stage.map(|stage| format!("{stage}, ")).unwrap_or_default();
    let because = finding.evidence.first().map_or(UNKNOWN.to_owned(), |line| sentence(line));
    let saves = match saving(finding, metrics) {
        Some(saves) => format!(" It would save {saves}."),
        None => String::new(),
    };
    format!("**{place}{}**: {because}. {}{saves}", prose(&finding.rule), sentence(&finding.advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sample;

    #[test]
    fn the_summary_says_what_this_run_showed() {
        insta::assert_snapshot!(stakeholder_markdown(&sample::metrics(), &sample::environment()));
    }

    #[test]
    fn two_different_runs_are_recommended_different_things() {
        let section = |metrics: &Metrics| {
            let page = stakeholder_markdown(metrics, &sample::environment());
            let section = page.split("## Recommendations").nth(1).unwrap();
            section.split("\n## ").next().unwrap().to_owned()
        };
        let (first, second) = (section(&sample::metrics()), section(&sample::without_peak()));
        assert_ne!(first, second);
        assert_eq!(section(&sample::empty()).trim(), "None: no rule found enough evidence in this run.");
    }

    #[test]
    fn an_unknown_device_claims_no_utilisation() {
        let page = stakeholder_markdown(&sample::without_peak(), &sample::environment());
        assert!(page.contains("are not known") && !page.contains("of the arithmetic"), "{page}");
    }
}
