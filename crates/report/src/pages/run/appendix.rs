//! The tables behind the summary, for readers who want the numbers.

use types::view::{LossBasis, Resource, RunView, Takeaway};
use types::{Environment, Stage};

use super::imported;
use super::phrase::{environment, extent, nested, no_utilisation, stage};
use crate::render::text::{code, prose};
use crate::render::{Page, Table};
use crate::words::number::{grouped, known, milliseconds, percent, tokens_per_second};

/// All of them, with those of another page between the kernels and the end.
pub(super) fn sections(page: &mut Page, run: &RunView<'_>, machine: &Environment, more: impl FnOnce(&mut Page)) {
    page.heading("Environment");
    page.list(environment(run.metrics, machine));
    aggregates(page, run);
    stages(page, run);
    utilisation(page, run);
    takeaways(page, run);
    cost_centres(page, run);
    imported::top_operators(page, run);
    imported::top_kernels(page, run);
    more(page);
    page.paragraph("`report.md` has the whole analysis, `assumptions.md` every setting, `metrics.json` every number.");
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
        lines.extend(rate.map(|rate| format!("{stage} throughput: {} of wall time", tokens_per_second(rate))));
    }
    page.list(lines);
}

fn stages(page: &mut Page, run: &RunView<'_>) {
    page.heading("Per-Stage Timings");
    let mut table = Table::new("stage | >median | >mean | >std | >share of run | >tokens per instance");
    for view in &run.stages {
        table.row([
            nested(view.stage.name),
            known(view.times.map(|times| milliseconds(times.median))),
            known(view.times.map(|times| milliseconds(times.mean))),
            known(view.times.and_then(|times| times.std).map(milliseconds)),
            percent(view.run_share),
            known(view.stage.tokens.and_then(|tokens| tokens.checked_div(view.stage.instances)).map(grouped)),
        ]);
    }
    if table.is_empty() {
        return page.paragraph("No stage was measured.");
    }
    page.table(&table);
    page.paragraph("Times are per instance of a stage, over all inputs and repeats. `a > b` is part of `a`.");
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
        let pass = match takeaway.loss_basis {
            LossBasis::Measured => "",
            LossBasis::ProfiledPass => " in the profiled pass",
        };
        text += &format!("; {} of its time{pass} is lost to {}", percent(share), prose(cause));
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
    let coverage = match (centres.kind, centres.operator_share) {
        ("operator", Some(share)) => format!(" Framework operators launched {} of it.", percent(Some(share))),
        (_, Some(share)) => {
            format!(" Operators are not ranked: they launched only {} of the device work.", percent(Some(share)))
        }
        (_, None) => String::new(),
    };
    page.paragraph(&format!("Together they take {} of {}.{coverage}", percent(centres.share), centres.whole));
}
