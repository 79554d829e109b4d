//! What `llm-perf import` ends with: requests, totals, stages, the first kernels, how much could be attributed, and what to do next.

use types::view::{DeviceTimeView, NextStep, RunView};
use types::{IdleCause, Nanos, TraceFacts};

use super::imported::stage_table;
use super::kernels::{NAME, counter_table};
use super::phrase::{device as device_name, indented, mfu, model, set_aside};
use super::{caveats, communication, device_time, findings, imported, serving, steps};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose, sentence};
use crate::words::idle;
use crate::words::kind::Phrase;
use crate::words::number::{count, decimal, grouped, known, percent};

/// Kernels shown.
const KERNELS: usize = 8;
/// Savings shown.
const SAVINGS: usize = 3;
/// Idle time that has a line.
const WORTH_A_LINE: Nanos = Nanos::new(1_000);

/// The run as plain text.
pub fn import_terminal(run: &RunView<'_>) -> String {
    let mut page = Page::default();
    caveats::callout(&mut page, run.metrics);
    serving::terminal(&mut page, run);
    blocks(&mut page, run);
    page.terminal()
}

/// What a trace shows; nothing without one.
pub(crate) fn blocks(page: &mut Page, run: &RunView<'_>) {
    let Some(facts) = &run.metrics.conditions.trace else { return };
    summary(page, run, facts);
    if !run.stages.is_empty() {
        page.table(&stage_table(run, indented));
    }
    kernels(page, run);
    if !facts.counters.is_empty() {
        page.table(&counter_table(facts, "hardware counters", KERNELS));
    }
    let mut last = findings::outlook(run, SAVINGS);
    last.extend(run.next_steps.iter().map(next_step));
    last.extend(imported::is_host_only(run).then(|| imported::RECORD_DEVICES.to_owned()));
    if !last.is_empty() {
        page.heading(&last[0]);
    }
    last.iter().skip(1).for_each(|line| page.paragraph(line));
}

fn next_step(step: &NextStep<'_>) -> String {
    match step {
        NextStep::Utilisation { remedy, stages: None } => format!("MFU is unknown. {}", sentence(remedy)),
        NextStep::Utilisation { remedy, stages: Some((open, all)) } => {
            format!("MFU is unknown for {open} of {}. {}", count(*all, "stage"), sentence(remedy))
        }
        NextStep::MarkStages => {
            "next: mark stages with ranges named prefill and decode (NVTX, or record_function in PyTorch)".to_owned()
        }
        NextStep::MarkRest(share) => {
            format!("next: mark the {} of device time outside stages with ranges", percent(Some(*share)))
        }
    }
}

/// How the time of a device divides, and what most of its idle time is.
fn device(view: &DeviceTimeView<'_>) -> [Option<String>; 2] {
    let time = view.time;
    let communication = if time.communication_ns > Nanos::ZERO {
        format!("exposed communication {}, ", time.communication_exposed_ns)
    } else {
        String::new()
    };
    let line = format!(
        "{} busy {} of {} ({}): compute {}, {communication}exposed copies {}, idle {}",
        time.device,
        time.busy_ns,
        time.span_ns,
        percent(view.busy),
        time.compute_ns,
        time.copies_exposed_ns,
        time.idle_ns
    );
    let cause = view.causes.first().filter(|(idle, _)| idle.ns >= WORTH_A_LINE);
    let cause = cause.map(|(idle, _)| match idle.cause {
        IdleCause::NotRecorded => format!("{} of idle time has no known cause", idle.ns),
        cause => format!("{} of idle time is {}", idle.ns, idle::cause(cause)),
    });
    [Some(line), cause]
}

fn summary(page: &mut Page, run: &RunView<'_>, facts: &TraceFacts) {
    let (metrics, totals) = (run.metrics, &run.metrics.times.totals);
    let what = metrics.run.model.as_deref().unwrap_or_else(|| model(metrics).trim_start_matches("an "));
    page.paragraph(&prose(&format!("{what} on {}, from {}", device_name(metrics), metrics.run.engine)));
    let kernels = totals.kernel_count.zip(totals.kernel_ns).map(|(kernels, time)| {
        let launches =
            totals.launches_per_token.map(|launches| format!("; {} launches per decode step", decimal(launches)));
        format!("{} in {time}{}", grouped(kernels), launches.unwrap_or_default())
    });
    let priced = metrics.utilisation.peak.is_some() && !metrics.utilisation.work_per_stage.is_empty();
    let wall = device_time::surrounded(run, device_time::WORTH_NAMING);
    let wall = wall.or_else(|| totals.wall_ns.map(|wall| wall.to_string()));
    let mut rows = vec![("wall", wall), ("excluded", facts.set_aside.as_ref().map(set_aside))];
    rows.extend(
        run.device_time.iter().flat_map(device).zip(["device", ""].into_iter().cycle()).map(|(row, name)| (name, row)),
    );
    let engine_steps = steps::engine_steps(run);
    if run.device_time.is_empty() && totals.kernel_count.is_none() && engine_steps.is_empty() {
        let none = imported::headline(run).replace("**", "");
        rows.push(("device", Some(none)));
    }
    rows.extend([
        ("longest", communication::line(run)),
        ("kernels", kernels),
        ("coverage", imported::coverage(facts)),
        ("kind", facts.kind.as_ref().map(|kind| kind.kind.phrase().to_owned())),
    ]);
    rows.extend(engine_steps.into_iter().map(|step| ("steps", Some(step))));
    rows.extend([
        ("stages", facts.stages.as_ref().filter(|_| !run.stages.is_empty()).map(|basis| sentence(&basis.basis))),
        ("MFU", priced.then(|| known(mfu(metrics)))),
    ]);
    page.facts(rows);
}

fn kernels(page: &mut Page, run: &RunView<'_>) {
    let (shown, all) = (&run.kernels.of_stages, run.kernels.rows.len());
    let head = if shown.len() < all { "top kernels in stages" } else { "top kernels" };
    let has_stages = shown.iter().any(|view| view.kernel.stage.is_some());
    let several = shown.iter().any(|view| view.kernel.device != shown[0].kernel.device);
    let stage = if has_stages { " | stage" } else { "" };
    let device = if several { " | device" } else { "" };
    let columns = format!("{head} | family{stage}{device} | >total | >share of kernel time | >calls");
    let mut table = Table::new(&columns).widest(NAME);
    for view in shown.iter().take(KERNELS) {
        let kernel = view.kernel;
        let mut cells = vec![code(&kernel.short_name), kernel.family.clone()];
        cells.extend(has_stages.then(|| known(kernel.stage)));
        cells.extend(several.then(|| kernel.device.to_string()));
        cells.extend([kernel.total_ns.to_string(), percent(view.share), grouped(kernel.calls)]);
        table.row(cells);
    }
    if table.is_empty() {
        return;
    }
    page.table(&table);
    let more = all.saturating_sub(shown.len().min(KERNELS)) as u64;
    if more > 0 {
        page.paragraph(&format!("{} in kernels.md and metrics.json", count(more, "more row")));
    }
}
