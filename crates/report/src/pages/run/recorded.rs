//! What the report of a run with a profiled pass says beyond times: the device in that pass, memory, and modelled beside
//! counted FLOPs.

use types::PeakMemory;
use types::view::RunView;

use super::communication;
use super::phrase::nested;
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose};
use crate::words::number::{count, decimal, grouped, known, milliseconds, percent};

/// The device in the profiled pass; nothing for a run without one.
pub(super) fn device(page: &mut Page, run: &RunView<'_>) {
    let totals = &run.metrics.times.totals;
    let Some(pass) = run.metrics.conditions.trace.as_ref().and_then(|facts| facts.traced_pass.as_ref()) else { return };
    page.heading("Profiled pass");
    let input = pass.input.as_deref().map(|input| format!(" over {}", code(input))).unwrap_or_default();
    let Some(busy) = totals.gpu_busy_ns else {
        page.paragraph(&format!(
            "One pass{input} under torch.profiler recorded operators but no device work: the model ran on the CPU."
        ));
        return;
    };
    let mut text = format!(
        "torch.profiler recorded one pass{input}, which slows the host down. The device was busy for {busy} of {} ({}). Lost time and \
         estimated savings refer to this pass.",
        known(pass.wall_ns),
        percent(run.profiled_busy_share),
    );
    if let Some(launches) = totals.launches_per_token {
        text += &format!(" Each decode step makes {} launches on average.", decimal(launches));
    }
    page.paragraph(&text);
    let mut table = Table::new("stage | >wall, profiled | >device busy | >share of wall | >kernel time | >kernels");
    for view in &run.stages {
        table.row([
            nested(view.stage.name),
            known(view.profiled_ns),
            known(view.stage.gpu_busy_ns),
            percent(view.profiled_busy_share),
            known(view.stage.kernel_ns),
            known(view.stage.kernel_count.map(grouped)),
        ]);
    }
    page.table(&table);
}

/// Memory the model took.
pub(super) fn memory(page: &mut Page, run: &RunView<'_>) {
    let Some(PeakMemory { parameter_bytes, allocated_bytes, reserved_bytes }) = &run.metrics.conditions.memory else {
        return;
    };
    page.heading("Memory (counted)");
    let mut lines = Vec::new();
    lines.extend(parameter_bytes.map(|bytes| format!("parameters: {bytes}")));
    lines.extend(allocated_bytes.map(|bytes| format!("peak allocated on the device: {bytes}")));
    lines.extend(reserved_bytes.map(|bytes| format!("peak reserved on the device: {bytes}")));
    page.list(lines);
}

/// Modelled FLOPs beside those of torch's counter.
pub(super) fn flop_checks(page: &mut Page, run: &RunView<'_>) {
    if run.metrics.utilisation.flop_checks.is_empty() {
        return;
    }
    page.heading("FLOPs: modelled and counted");
    page.paragraph(
        "The same forward pass, modelled from the configuration and counted by `torch.utils.flop_counter`; decode stands for its \
         first step. Both count matrix FLOPs only.",
    );
    let mut table = Table::new("input | stage | >modelled | >counted | >difference | counted with");
    for check in &run.metrics.utilisation.flop_checks {
        let difference =
            check.difference.map(|share| if share == 0.0 { "none".into() } else { format!("{share:+.1e}") });
        table.row([
            code(&check.input),
            check.stage.to_string(),
            known(check.flops_modelled.map(|flops| grouped(flops.get()))),
            grouped(check.flops_counted.get()),
            known(difference),
            prose(&check.notes.join(", ")),
        ]);
    }
    page.table(&table);
}

/// Ranks side by side.
pub(super) fn ranks(page: &mut Page, run: &RunView<'_>) {
    let metrics = run.metrics;
    if metrics.times.ranks.is_empty() {
        return;
    }
    page.heading("Ranks (measured)");
    let ranks = count(metrics.times.ranks.len() as u64, "rank");
    let missing = metrics.conclusions.quality.iter().find(|counter| counter.counter == "ranks_missing");
    let missing = missing.map(|counter| format!(" {} of the job are missing.", count(counter.value, "rank")));
    let missing = missing.unwrap_or_default();
    if let Some(found) = &metrics.times.rank_arrivals {
        page.paragraph(&format!("{ranks} were recorded.{missing}"));
        communication::arrivals(page, found);
    }
    if metrics.times.ranks.iter().all(|rank| rank.stage_ms.is_empty()) {
        if metrics.times.rank_arrivals.is_none() {
            page.paragraph(&format!("{ranks} were recorded.{missing} They have nothing in common to compare."));
        }
        return;
    }
    page.paragraph(&format!("{ranks} ran in parallel.{missing} Times are medians per instance."));
    let mut table = Table::new(">rank | device | stage | >median | >instances");
    for rank in &metrics.times.ranks {
        for (stage, times) in &rank.stage_ms {
            table.row([
                rank.rank.to_string(),
                known(rank.device.as_ref()),
                nested(*stage),
                milliseconds(times.median),
                times.n.to_string(),
            ]);
        }
    }
    page.table(&table);
    page.list(metrics.times.rank_skew.iter().map(|skew| {
        let share = percent(Some(skew.share));
        format!("{}: rank {} is the slowest, {share} slower than rank {}", skew.stage, skew.slowest, skew.fastest)
    }));
}
