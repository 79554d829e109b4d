//! `stakeholder_summary.md`: the run in plain words, for people who will not read the tables.
//!
//! Every sentence is made from this run's numbers; a sentence without its number is left out.

use types::view::{FindingView, Resource, RunView, Takeaway};
use types::{Environment, Stage};

use super::device_time;
use super::imported;
use super::lost;
use super::phrase::{device, environment, extent, imported_facts, model, nested, no_utilisation, saving, stage};
use super::steps;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose, sentence};
use crate::words::number::{UNKNOWN, grouped, known, milliseconds, percent, tokens_per_second};

/// The summary as Markdown.
pub fn summary_page(run: &RunView<'_>, machine: &Environment) -> Page {
    with_sections(run, machine, |_| {})
}

/// The same, with sections of another page between the kernels and what follows from them.
pub(crate) fn with_sections(run: &RunView<'_>, machine: &Environment, more: impl FnOnce(&mut Page)) -> Page {
    let metrics = run.metrics;
    let mut page = Page::new(&format!("Summary of {} on {}", prose(model(metrics)), prose(&device(metrics))));
    page.heading("Environment");
    page.list(environment(metrics, machine));
    if metrics.conditions.trace.is_some() {
        page.heading("Device time");
        let none = "The files hold no device work.".to_owned();
        page.paragraph(&device_time::headline(run).unwrap_or(none));
        page.list(steps::engine_steps(run));
    }
    aggregates(&mut page, run);
    stages(&mut page, run);
    utilisation(&mut page, run);
    takeaways(&mut page, run);
    cost_centres(&mut page, run);
    imported::top_operators(&mut page, run);
    imported::top_kernels(&mut page, run);
    more(&mut page);
    lost::lost_time(&mut page, run);
    recommendations(&mut page, run);
    limits(&mut page, run);
    page
}

fn aggregates(page: &mut Page, run: &RunView<'_>) {
    page.heading("Aggregates");
    let (metrics, rates) = (run.metrics, &run.metrics.times.throughput);
    let mut lines = vec![format!("measured: {}", extent(metrics))];
    lines.extend(metrics.times.totals.wall_ns.map(|wall| format!("total time of all runs: {wall}")));
    lines.extend(run.forward_pass_ms.map(|pass| format!("one forward pass: {} (median)", milliseconds(pass))));
    lines.extend(rates.ttft_ns.map(|first| format!("time to first token: {first} (median)")));
    lines.extend(rates.time_per_output_token_ns.map(|step| format!("time per output token: {step}")));
    let throughput = [("decode", rates.decode_tokens_per_second), ("prefill", rates.prefill_tokens_per_second)];
    for (stage, rate) in throughput {
        lines.extend(rate.map(|rate| format!("{stage} throughput: {}", tokens_per_second(rate))));
    }
    page.list(lines);
}

fn stages(page: &mut Page, run: &RunView<'_>) {
    page.heading("Per-Stage Timings");
    let mut table = Table::new("stage | >median | >mean | >std | >share | >tokens");
    for view in &run.stages {
        table.row([
            nested(view.stage.name),
            known(view.times.map(|times| milliseconds(times.median))),
            known(view.times.map(|times| milliseconds(times.mean))),
            known(view.times.and_then(|times| times.std).map(milliseconds)),
            percent(view.run_share),
            known(view.stage.tokens.map(grouped)),
        ]);
    }
    if table.is_empty() {
        return page.paragraph("No stage was measured.");
    }
    page.table(&table);
    page.paragraph("Times are per input, over all inputs and repeats; `a > b` is contained in `a`.");
}

fn utilisation(page: &mut Page, run: &RunView<'_>) {
    page.heading("MFU");
    let metrics = run.metrics;
    let Some(peak) = &metrics.utilisation.peak else {
        return page.paragraph(&no_utilisation(run));
    };
    page.paragraph(&format!(
        "MFU is the share of peak FLOP/s ({} in {}, {}) that the model's own work reaches; MBU is the same for memory bandwidth \
         ({}).",
        peak.flops,
        peak.dtype,
        prose(&peak.source),
        peak.bytes_per_second
    ));
    let mut table = Table::new("part | >MFU | >MBU");
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

fn takeaways(page: &mut Page, run: &RunView<'_>) {
    page.heading("Stage takeaways");
    if run.takeaways.is_empty() {
        return page.paragraph("No stage was measured.");
    }
    page.list(run.takeaways.iter().map(takeaway));
}

fn takeaway(takeaway: &Takeaway<'_>) -> String {
    let mut text = format!("**{}** is ", takeaway.stage);
    text += &takeaway.parent.map(|(parent, share)| format!("{} of {parent}, ", percent(share))).unwrap_or_default();
    text += &format!("{} of the run", percent(takeaway.run_share));
    let longest = takeaway.longest_part.map(|(part, share)| format!(", and {} of it is {part}", percent(share)));
    text += &longest.unwrap_or_default();
    if let Some((mfu, mbu)) = takeaway.utilisation {
        let (mfu, mbu) = (percent(Some(mfu)), percent(Some(mbu)));
        text += &format!("; it reaches {mfu} of peak FLOP/s and {mbu} of peak bandwidth");
        text += match takeaway.bound {
            Some(Resource::Memory) => ", so it is memory-bound",
            Some(Resource::Compute) => ", so it is compute-bound",
            None => "",
        };
    }
    if let Some((cause, share)) = takeaway.largest_loss {
        text += &format!("; {} of its time is lost to {}", percent(share), prose(cause));
    }
    let variation = takeaway.repeat_cv.map(|cv| format!("; run-to-run variation (CV) {}", percent(Some(cv))));
    text + &variation.unwrap_or_default() + "."
}

fn cost_centres(page: &mut Page, run: &RunView<'_>) {
    page.heading("Top cost centres");
    let centres = &run.cost_centres;
    let mut table = Table::new(&format!(">rank | {} | stage | >share | >time | >roofline time", centres.kind));
    for (rank, centre) in centres.rows.iter().enumerate() {
        table.row([
            (rank + 1).to_string(),
            code(centre.name),
            known(centre.stage),
            percent(centre.share),
            centre.time_ns.to_string(),
            known(centre.roofline_ns),
        ]);
    }
    if table.is_empty() {
        return page.paragraph("Neither operators nor kernels were recorded, so the time cannot be divided further.");
    }
    page.table(&table);
    page.paragraph(&format!("Together they take {} of {}.", percent(centres.share), centres.whole));
}

fn recommendations(page: &mut Page, run: &RunView<'_>) {
    page.heading("Recommendations");
    if run.findings.is_empty() {
        return page.paragraph("None: no rule found enough evidence in this run.");
    }
    page.list(run.findings.iter().map(recommendation));
}

/// What the numbers cannot say.
fn limits(page: &mut Page, run: &RunView<'_>) {
    page.heading("Limits and assumptions");
    let mut lines = vec![
        "FLOPs, bytes and roofline times are modelled from the model's configuration; all other times are measured."
            .to_owned(),
    ];
    if imported_facts(run.metrics).is_some() {
        lines.push("The times were recorded under a profiler, which slows the host down; check a figure that matters without one.".to_owned());
    }
    lines.extend(run.data_warnings.iter().map(|counter| {
        format!("{}: {} ({})", code(&counter.counter), grouped(counter.value), sentence(&counter.remedy))
    }));
    lines.push("`assumptions.md` has all settings, `metrics.json` all numbers.".to_owned());
    page.list(lines);
}

fn recommendation(view: &FindingView<'_>) -> String {
    let finding = view.finding;
    let place = finding.stage.map(|stage| format!("{stage}, ")).unwrap_or_default();
    let because = finding.evidence.first().map_or(UNKNOWN.to_owned(), |line| sentence(line));
    let saves = view.saving.as_ref().map(|saves| format!(" Estimated saving: {}.", saving(saves))).unwrap_or_default();
    format!("**{place}{}**: {because}. {}{saves}", prose(&finding.rule), sentence(&finding.advice))
}

#[cfg(test)]
mod tests {
    use analysis::view::run;
    use types::Metrics;

    use super::*;
    use crate::pages::run::sample;

    #[test]
    fn the_summary_says_what_this_run_showed() {
        insta::assert_snapshot!(summary_page(&run(&sample::metrics()), &sample::environment()).markdown());
    }

    #[test]
    fn two_different_runs_are_recommended_different_things() {
        let section = |metrics: &Metrics| {
            let page = summary_page(&run(metrics), &sample::environment()).markdown();
            let section = page.split("## Recommendations").nth(1).unwrap();
            section.split("\n## ").next().unwrap().to_owned()
        };
        let (first, second) = (section(&sample::metrics()), section(&sample::without_peak()));
        assert_ne!(first, second);
        assert_eq!(section(&sample::empty()).trim(), "None: no rule found enough evidence in this run.");
    }

    #[test]
    fn an_unknown_device_claims_no_utilisation() {
        let page = summary_page(&run(&sample::without_peak()), &sample::environment()).markdown();
        assert!(page.contains("is unknown too") && !page.contains("of peak FLOP/s"), "{page}");
    }
}
