//! What the pages of an imported run say beyond those of a run of our own: sources, the device, how much could be placed.

use std::collections::BTreeMap;

use types::{Metrics, Nanos, Stage, TraceFacts};

use super::kernels::{by_time, of_stages};
use super::page::Page;
use super::phrase::{busy_share, known, nested, sentence, share_of_run, time};
use crate::markdown::{code, prose};
use crate::number::{UNKNOWN, count, grouped, milliseconds, percent, share};
use crate::table::{Column, Table};

/// Kernels shown in the report.
const KERNELS: usize = 15;
/// Operators shown in the report.
const OPERATORS: usize = 15;

/// The first sentence: how much of the time the device worked.
pub(super) fn headline(metrics: &Metrics) -> String {
    let totals = &metrics.times.totals;
    let Some((busy, wall)) = totals.gpu_busy_ns.zip(totals.wall_ns) else {
        return match totals.kernel_ns {
            Some(kernels) => format!("**{kernels} of kernels.** The files have no timeline."),
            None => "**The files hold no device work.**".to_owned(),
        };
    };
    let part = percent(busy_share(metrics, Some(busy), Some(wall)));
    let mut text = match metrics.devices.len() {
        0 | 1 => format!("**The device worked {busy} of {wall}: {part}.**"),
        several => format!("**{several} devices together worked {busy} in {wall}: {part} of their time.**"),
    };
    if let Some(launches) = totals.launches_per_token {
        text += &format!(" Each decoded token took {} launches.", grouped(launches.round().max(0.0) as u128));
    }
    text
}

/// What the numbers are, in a paragraph.
pub(super) fn method(metrics: &Metrics, facts: &TraceFacts) -> String {
    let mut text = format!("Read from {}.", count(facts.sources.len() as u64, "file"));
    if metrics.times.totals.wall_ns.is_some() {
        text += " Times of stages and operators are the host's, recorded by a profiler, which slows the host down; times of \
                 kernels are the device's. Device work belongs to the stage and the operator that launched it.";
    }
    if !metrics.utilisation.work_per_stage.is_empty() {
        text += " FLOPs and bytes are modelled from the configuration, one multiply-add being two FLOPs.";
    }
    text
}

/// The files.
pub(super) fn sources(page: &mut Page, facts: &TraceFacts) {
    page.heading("Sources");
    let mut table = Table::new([
        Column::text("file"),
        Column::text("format"),
        Column::text("written by"),
        Column::number("rank"),
        Column::number("size"),
        Column::text("SHA-256"),
    ]);
    for source in &facts.sources {
        table.row([
            code(&source.path),
            source.format.clone(),
            source.tool.as_deref().map_or(UNKNOWN.to_owned(), prose),
            known(source.rank),
            source.bytes.to_string(),
            code(&source.sha256),
        ]);
    }
    page.table(&table);
    page.paragraph("The files are not copied into the run.");
}

/// Stages on the host and on the device.
pub(super) fn stages(page: &mut Page, metrics: &Metrics, facts: &TraceFacts) {
    page.heading("Per-Stage Timings");
    if let Some(basis) = &facts.stages {
        let how = match (basis.inferred, basis.confidence) {
            (true, Some(confidence)) => format!("Inferred with a confidence of {}", percent(Some(confidence))),
            (true, None) => "Inferred".to_owned(),
            (false, _) => "Stages are from".to_owned(),
        };
        let joint = if basis.inferred { ": " } else { " " };
        let text = if metrics.times.stages.is_empty() {
            format!("No stage was found: {}.", sentence(&basis.basis))
        } else {
            format!("{how}{joint}{}. `a > b` is a part of `a` and contained in its numbers.", sentence(&basis.basis))
        };
        page.paragraph(&text);
    }
    if metrics.times.stages.is_empty() {
        return;
    }
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("instances"),
        Column::number("wall"),
        Column::number("of run"),
        Column::number("device busy"),
        Column::number("of wall"),
        Column::number("kernel time"),
        Column::number("kernels"),
        Column::number("tokens"),
        Column::number("MFU"),
        Column::number("MBU"),
    ]);
    for stage in &metrics.times.stages {
        table.row([
            nested(stage.name),
            grouped(stage.instances),
            time(stage.wall_ns),
            percent(share_of_run(metrics, stage)),
            time(stage.gpu_busy_ns),
            percent(busy_share(metrics, stage.gpu_busy_ns, stage.wall_ns)),
            time(stage.kernel_ns),
            known(stage.kernel_count.map(grouped)),
            known(stage.tokens.map(grouped)),
            percent(stage.mfu),
            percent(stage.mbu),
        ]);
    }
    page.table(&table);
    page.paragraph("Device work may run after the stage that launched it has returned.");
    if let Some(steps) = &facts.step_ms {
        let spread = steps.std.map(|std| format!(", std {}", milliseconds(std))).unwrap_or_default();
        page.paragraph(&format!(
            "{}: median {}, from {} to {}{spread}, host time.",
            count(steps.n, "decode step"),
            milliseconds(steps.median),
            milliseconds(steps.min),
            milliseconds(steps.max),
        ));
    }
    pace(page, facts);
}

/// Percentiles and drift of the steps, and how far the host was ahead.
fn pace(page: &mut Page, facts: &TraceFacts) {
    let mut lines = Vec::new();
    if let Some(steps) = &facts.steps {
        let drift =
            steps.drift.map(|drift| format!("; the later half takes {:+.1}%", drift * 100.0)).unwrap_or_default();
        lines.push(format!("steps: p50 {}, p95 {}, p99 {}{drift}", steps.p50_ns, steps.p95_ns, steps.p99_ns));
        lines.push(format!(
            "per token: {:.0} kernels, {} of device work",
            steps.kernels_per_token, steps.work_per_token_ns
        ));
    }
    if let Some(queue) = &facts.queue_depth {
        let empty = percent(Some(queue.empty_share));
        lines.push(format!(
            "queue: {:.1} launches ahead on average, {} at most, empty {empty} of the time",
            queue.mean, queue.max
        ));
    }
    if !lines.is_empty() {
        page.list(lines);
    }
}

/// How much could be placed.
pub(super) fn coverage(page: &mut Page, facts: &TraceFacts) {
    let Some(coverage) = &facts.coverage else { return };
    page.heading("Coverage");
    page.paragraph(&format!("Shares of the {} of device work, overlap counted twice.", coverage.device_ns));
    let mut table = Table::new([Column::text("work"), Column::number("of device time")]);
    table.row(["in a stage that ranges mark".to_owned(), percent(coverage.stage_share)]);
    table.row(["in an inferred stage".to_owned(), percent(coverage.inferred_share)]);
    table.row(["in no stage".to_owned(), percent(coverage.unattributed_share)]);
    table.row(["inside a framework operator".to_owned(), percent(coverage.operator_share)]);
    page.table(&table);
}

/// The workload and what it rests on.
pub(super) fn workload(page: &mut Page, facts: &TraceFacts) {
    let Some(traced) = &facts.workload else { return };
    page.heading("Workload");
    match &traced.workload {
        Some(workload) => page.paragraph(&format!(
            "{} x {} prompt tokens, {} decode steps, {}: {}.",
            workload.batch,
            grouped(workload.seq_len),
            grouped(workload.decode_steps),
            workload.dtype,
            prose(&workload.description)
        )),
        None => page.paragraph("Not known, so there is no utilisation."),
    }
    let lines = traced.evidence.iter().map(|line| sentence(line));
    let missing = traced.missing.iter().map(|line| format!("missing: {}", sentence(line)));
    let lines: Vec<_> = lines.chain(missing).collect();
    if !lines.is_empty() {
        page.list(lines);
    }
}

/// The operators that matter most.
pub(super) fn top_operators(page: &mut Page, metrics: &Metrics) {
    page.heading("Top Operators");
    if metrics.breakdown.operators.is_empty() {
        return kinds_of_work(page, metrics);
    }
    let mut table = Table::new([
        Column::text("operator"),
        Column::number("device"),
        Column::number("self"),
        Column::number("total"),
        Column::number("calls"),
    ]);
    for operator in metrics.breakdown.operators.iter().take(OPERATORS) {
        table.row([
            code(&operator.name),
            time(operator.device_ns),
            operator.self_ns.to_string(),
            operator.total_ns.to_string(),
            grouped(operator.calls),
        ]);
    }
    page.table(&table);
    page.paragraph(
        "Device is the work launched by the operator itself, self its host time without callees, total with them. \
         `operators.md` has more.",
    );
}

/// What the kernels do, for a timeline whose recorder keeps no operators.
fn kinds_of_work(page: &mut Page, metrics: &Metrics) {
    let mut sums: BTreeMap<(&str, Option<Stage>), (Nanos, u64)> = BTreeMap::new();
    for kernel in &metrics.breakdown.kernels {
        let (time, calls) = sums.entry((&kernel.family, kernel.stage)).or_default();
        (*time, *calls) = (*time + kernel.total_ns, *calls + kernel.calls);
    }
    if sums.is_empty() {
        return page.paragraph("No operator was recorded.");
    }
    let all: Nanos = sums.values().map(|(time, _)| *time).sum();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (time, _))| std::cmp::Reverse(*time));
    let mut table = Table::new([
        Column::text("kind of kernel"),
        Column::text("stage"),
        Column::number("device"),
        Column::number("of time"),
        Column::number("calls"),
    ]);
    for ((family, stage), (time, calls)) in sums.into_iter().take(OPERATORS) {
        let part = percent(share(time.get() as f64, all.get() as f64));
        table.row([family.to_owned(), known(stage), time.to_string(), part, grouped(calls)]);
    }
    page.table(&table);
    page.paragraph(
        "No operator was recorded, so these are the kernels by what they do. `llm-perf profile --engine torch` records \
         operators, and `llm-perf import` reads those of torch.profiler.",
    );
}

/// The kernels that matter most.
pub(super) fn top_kernels(page: &mut Page, metrics: &Metrics) {
    page.heading("Top Kernels");
    if metrics.breakdown.kernels.is_empty() {
        return page.paragraph("No kernel was recorded: nothing ran on a device that was traced.");
    }
    let (kernels, fewer) = of_stages(metrics);
    page.table(&by_time(metrics, kernels.into_iter(), KERNELS));
    let rest = if fewer { "more, also those of no stage" } else { "more" };
    page.paragraph(&format!("`kernels.md` has {rest}."));
}
