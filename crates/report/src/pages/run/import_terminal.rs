//! What `llm-perf import` ends with: totals, stages, the first kernels, how much could be placed, and what to do next.

use types::view::{DeviceTimeView, FindingView, NextStep, RunView};
use types::{Nanos, TraceFacts};

use super::communication;
use super::phrase::{device as device_name, indented, mfu, outlook, place, saving, set_aside};
use super::steps;
use crate::render::table::{Table, printable};
use crate::words::kind::Phrase;
use crate::words::number::{count, decimal, grouped, known, percent};

/// Kernels shown.
const KERNELS: usize = 8;
/// Most characters of a kernel's name.
const NAME: usize = 48;

/// The run as plain text.
pub fn import_terminal(run: &RunView<'_>) -> String {
    let Some(facts) = &run.metrics.conditions.trace else { return String::new() };
    let mut text = lines(summary(run, facts));
    for table in [stages(run), kernels(run), counters(facts)].into_iter().flatten() {
        text.push('\n');
        text += &table;
    }
    let findings = run.largest_savings.iter().map(|view| finding(run, view));
    let next = run.next_steps.iter().map(|step| format!("next: {}", next_step(step)));
    let last = lines(findings.chain(outlook(run)).chain(next));
    if last.is_empty() { text } else { text + "\n" + &last }
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| printable(&line).into_owned() + "\n").collect()
}

/// What would save most.
fn finding(run: &RunView<'_>, view: &FindingView<'_>) -> String {
    let saves = view.saving.as_ref().map(saving).unwrap_or_default();
    format!("finding: {} ({}), estimated saving: {saves}", view.finding.rule, place(run, view))
}

fn next_step(step: &NextStep<'_>) -> String {
    match step {
        NextStep::Utilisation(remedy) => format!("for MFU, {remedy}"),
        NextStep::MarkStages => {
            "mark stages with ranges named prefill and decode (NVTX, or record_function in PyTorch)".to_owned()
        }
        NextStep::MarkRest(share) => {
            format!("{} of the device's time is in no stage: mark it with ranges", percent(Some(*share)))
        }
    }
}

/// How the time of a device divides, and what most of its idle time is.
fn device(view: &DeviceTimeView<'_>) -> Vec<String> {
    let time = view.time;
    let mut line =
        format!("{:<9} busy {} of {}, {}", time.device.as_str(), time.busy_ns, time.span_ns, percent(view.busy));
    line += &format!(": compute {}", time.compute_ns);
    if time.communication_ns > Nanos::ZERO {
        line += &format!(", exposed communication {}", time.communication_exposed_ns);
    }
    line += &format!(", exposed copies {}, idle {}", time.copies_exposed_ns, time.idle_ns);
    let cause =
        view.causes.first().map(|(idle, _)| format!("          idle for {} while {}", idle.ns, idle.cause.phrase()));
    std::iter::once(line).chain(cause).collect()
}

fn summary(run: &RunView<'_>, facts: &TraceFacts) -> Vec<String> {
    let (metrics, totals) = (run.metrics, &run.metrics.times.totals);
    let what = metrics.run.model.as_deref().unwrap_or("model not named");
    let mut lines = vec![format!("{what}, on {}: {}", device_name(metrics), metrics.run.engine)];
    lines.extend(totals.wall_ns.map(|wall| format!("wall      {wall}")));
    lines.extend(facts.set_aside.as_ref().map(|aside| format!("aside     {}", set_aside(aside))));
    lines.extend(run.device_time.iter().flat_map(device));
    lines.extend(communication::line(run).map(|line| format!("longest   {line}")));
    if let Some((kernels, time)) = totals.kernel_count.zip(totals.kernel_ns) {
        let launches = totals.launches_per_token.map(|launches| format!("; {} launches per token", decimal(launches)));
        lines.push(format!("kernels   {} in {time}{}", grouped(kernels), launches.unwrap_or_default()));
    }
    if let Some(coverage) = &facts.coverage {
        let stages = match (coverage.stage_share, coverage.inferred_share) {
            (marked, Some(shown)) if shown > 0.0 => {
                format!("{} in marked stages and {} in stages that tokens show", percent(marked), percent(Some(shown)))
            }
            (marked, _) => format!("{} in stages", percent(marked)),
        };
        let none = percent(coverage.unattributed_share);
        let operators = coverage.operator_share.map(|share| format!("; {} inside operators", percent(Some(share))));
        lines.push(format!("coverage  {stages}, {none} in none{}", operators.unwrap_or_default()));
    }
    lines.extend(facts.kind.as_ref().map(|kind| format!("run       {}", kind.kind.phrase())));
    lines.extend(steps::engine_steps(run).into_iter().map(|step| format!("step      {step}")));
    if let Some(basis) = facts.stages.as_ref().filter(|_| !run.stages.is_empty()) {
        lines.push(format!("stages    {}", basis.basis));
    }
    if metrics.utilisation.peak.is_some() && !metrics.utilisation.work_per_stage.is_empty() {
        lines.push(format!("MFU       {}", known(mfu(metrics))));
    }
    lines
}

fn stages(run: &RunView<'_>) -> Option<String> {
    let mut table = Table::new("stage | >wall | >share | >GPU busy | >kernels | >kernel time | >MFU | >MBU");
    for view in &run.stages {
        let stage = view.stage;
        table.row([
            indented(stage.name),
            known(stage.wall_ns),
            percent(view.run_share),
            known(stage.gpu_busy_ns),
            known(stage.kernel_count.map(grouped)),
            known(stage.kernel_ns),
            percent(stage.mfu),
            percent(stage.mbu),
        ]);
    }
    (!table.is_empty()).then(|| table.to_string())
}

fn kernels(run: &RunView<'_>) -> Option<String> {
    let (shown, all) = (&run.kernels.of_stages, run.kernels.rows.len());
    let head = if shown.len() < all { "top kernels of stages" } else { "top kernels" };
    let mut table = Table::new(&format!("{head} | family | stage | >total | >share | >calls")).widest(NAME);
    for view in shown.iter().take(KERNELS) {
        let kernel = view.kernel;
        table.row([
            kernel.short_name.clone(),
            kernel.family.clone(),
            known(kernel.stage),
            kernel.total_ns.to_string(),
            percent(view.share),
            grouped(kernel.calls),
        ]);
    }
    let more = all.saturating_sub(shown.len().min(KERNELS)) as u64;
    let rest = match more {
        0 => String::new(),
        more => format!("and {} in kernels.md and metrics.json\n", count(more, "more row")),
    };
    (!table.is_empty()).then(|| table.to_string() + &rest)
}

fn counters(facts: &TraceFacts) -> Option<String> {
    let heads = "hardware counters | >calls | >total | >device memory | >compute | >memory | >occupancy";
    let mut table = Table::new(heads).widest(NAME);
    for row in facts.counters.iter().take(KERNELS) {
        table.row([
            row.short_name.clone(),
            grouped(row.calls),
            known(row.total_ns),
            known(row.dram_bytes),
            percent(row.compute_share),
            percent(row.memory_share),
            percent(row.occupancy),
        ]);
    }
    (!table.is_empty()).then(|| table.to_string())
}
