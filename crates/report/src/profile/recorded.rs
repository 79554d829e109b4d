//! What the report of a run with a recorded pass says beyond times: the device in that pass, memory, and the analytic model
//! held against a counter.

use types::{Metrics, PeakMemory};

use super::page::Page;
use super::phrase::{known, nested, time};
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, count, grouped, percent, share};
use crate::table::{Column, Table};

/// The device in the recorded pass; nothing for a run without one.
pub(super) fn device(page: &mut Page, metrics: &Metrics) {
    let Some(facts) = &metrics.conditions.trace else { return };
    let Some(pass) = &facts.traced_pass else { return };
    page.heading("Recorded pass");
    let input = pass.input.as_deref().map(|input| format!(" over {}", code(input))).unwrap_or_default();
    let Some(busy) = metrics.times.totals.gpu_busy_ns else {
        page.paragraph(&format!(
            "One pass{input} under torch.profiler recorded operators and no device work: the model ran on the processor."
        ));
        return;
    };
    let whole = pass.wall_ns.and_then(|wall| share(busy.get() as f64, wall.get() as f64));
    let mut text = format!(
        "One pass{input} was recorded by torch.profiler, which slows the host down. In it the device worked {busy} of {}: {}. \
         What was lost, and what findings would save, is of this pass.",
        known(pass.wall_ns),
        percent(whole),
    );
    if let Some(launches) = metrics.times.totals.launches_per_token {
        text += &format!(" Each decoded token took {} launches.", grouped(launches.round().max(0.0) as u128));
    }
    page.paragraph(&text);
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("wall, recorded"),
        Column::number("device busy"),
        Column::number("of wall"),
        Column::number("kernel time"),
        Column::number("kernels"),
    ]);
    for stage in &metrics.times.stages {
        let wall = pass.stages.get(&stage.name).copied();
        let part = stage.gpu_busy_ns.zip(wall).and_then(|(busy, wall)| share(busy.get() as f64, wall.get() as f64));
        table.row([
            nested(stage.name),
            time(wall),
            time(stage.gpu_busy_ns),
            percent(part),
            time(stage.kernel_ns),
            known(stage.kernel_count.map(grouped)),
        ]);
    }
    page.table(&table);
}

/// Memory the model took.
pub(super) fn memory(page: &mut Page, metrics: &Metrics) {
    let Some(PeakMemory { parameter_bytes, allocated_bytes, reserved_bytes }) = &metrics.conditions.memory else {
        return;
    };
    page.heading("Memory (counted)");
    let mut lines = Vec::new();
    lines.extend(parameter_bytes.map(|bytes| format!("parameters: {bytes}")));
    lines.extend(allocated_bytes.map(|bytes| format!("tensors on the device, at most: {bytes}")));
    lines.extend(reserved_bytes.map(|bytes| format!("taken from the device for them: {bytes}")));
    page.list(lines);
}

/// The analytic model beside torch's counter.
pub(super) fn flop_checks(page: &mut Page, metrics: &Metrics) {
    if metrics.utilisation.flop_checks.is_empty() {
        return;
    }
    page.heading("FLOPs: model against counter");
    page.paragraph(
        "The same forward pass, modelled from the configuration and counted by `torch.utils.flop_counter`; decode is its first \
         step. Both count matrix work.",
    );
    let mut table = Table::new([
        Column::text("input"),
        Column::text("stage"),
        Column::number("modelled"),
        Column::number("counted"),
        Column::number("difference"),
        Column::text("counted with"),
    ]);
    for check in &metrics.utilisation.flop_checks {
        let difference =
            check.difference.map(|share| if share == 0.0 { "none".into() } else { format!("{share:+.1e}") });
        table.row([
            code(&check.input),
            check.stage.to_string(),
            known(check.flops_modelled.map(|flops| grouped(flops.get()))),
            grouped(check.flops_counted.get()),
            difference.unwrap_or_else(|| UNKNOWN.to_owned()),
            prose(&check.notes.join(", ")),
        ]);
    }
    page.table(&table);
}

/// Ranks side by side.
pub(super) fn ranks(page: &mut Page, metrics: &Metrics) {
    if metrics.times.ranks.is_empty() {
        return;
    }
    page.heading("Ranks (measured)");
    page.paragraph(&format!(
        "{} ran side by side. Times are medians.",
        count(metrics.times.ranks.len() as u64, "rank")
    ));
    let mut table = Table::new([
        Column::number("rank"),
        Column::text("device"),
        Column::text("stage"),
        Column::number("median"),
        Column::number("runs"),
    ]);
    for rank in &metrics.times.ranks {
        for (stage, times) in &rank.stage_ms {
            table.row([
                rank.rank.to_string(),
                known(rank.device.as_ref()),
                nested(*stage),
                crate::number::milliseconds(times.median),
                times.n.to_string(),
            ]);
        }
    }
    page.table(&table);
    page.list(metrics.times.rank_skew.iter().map(|skew| {
        format!(
            "{}: rank {} is slowest, {} behind rank {}",
            skew.stage,
            skew.slowest,
            percent(Some(skew.share)),
            skew.fastest
        )
    }));
}
