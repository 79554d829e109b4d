//! What `llm-perf import` ends with: totals, stages, the first kernels, how much could be placed, and what to do next.

use types::{Finding, Metrics, Stage, TraceFacts};

use super::kernels::of_stages;
use super::phrase::{busy_share, device, indented, known, place, saving, set_aside, share_of_run, stage, time};
use super::terminal::outlook;
use crate::number::{UNKNOWN, count, grouped, percent, share};
use crate::table::{Column, Table, printable};

/// Kernels shown.
const KERNELS: usize = 8;
/// Findings shown.
const FINDINGS: usize = 3;
/// Most characters of a kernel's name.
const NAME: usize = 48;

/// The run as plain text.
pub fn import_terminal(metrics: &Metrics) -> String {
    let Some(facts) = &metrics.conditions.trace else { return String::new() };
    let mut text = String::new();
    for line in summary(metrics, facts) {
        text += &printable(&line);
        text.push('\n');
    }
    for table in [stages(metrics), kernels(metrics), counters(facts)].into_iter().flatten() {
        text.push('\n');
        text += &table;
    }
    let found = findings(metrics).into_iter().map(|line| format!("finding: {line}"));
    let next = next_steps(metrics, facts).into_iter().map(|line| format!("next: {line}"));
    let lines: Vec<_> = found.chain(outlook(metrics)).chain(next).collect();
    if !lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        text += &printable(&line);
        text.push('\n');
    }
    text
}

/// What would save most, as far as the run tells.
fn findings(metrics: &Metrics) -> Vec<String> {
    let mut saving: Vec<_> = metrics.conclusions.findings.iter().filter(|finding| finding.saves_ns.is_some()).collect();
    saving.sort_by_key(|finding| std::cmp::Reverse(finding.saves_ns));
    let line = |finding: &&Finding| {
        let saves = self::saving(finding, metrics).unwrap_or_default();
        format!("{} ({}) would save {saves}", finding.rule, place(finding))
    };
    saving.iter().take(FINDINGS).map(line).collect()
}

fn summary(metrics: &Metrics, facts: &TraceFacts) -> Vec<String> {
    let totals = &metrics.times.totals;
    let what = metrics.run.model.as_deref().unwrap_or("model not named");
    let mut lines = vec![format!("{what}, on {}: {}", device(metrics), metrics.run.engine)];
    if let Some(wall) = totals.wall_ns {
        lines.push(format!("wall      {wall}"));
    }
    if let Some(aside) = &facts.set_aside {
        lines.push(format!("aside     {}", set_aside(aside)));
    }
    if let Some(busy) = totals.gpu_busy_ns {
        let several = metrics.devices.len() > 1;
        let of = if several { format!("of {} devices' wall", metrics.devices.len()) } else { "of wall".to_owned() };
        lines.push(format!("GPU busy  {busy}, {} {of}", percent(busy_share(metrics, Some(busy), totals.wall_ns))));
    }
    if let Some((kernels, time)) = totals.kernel_count.zip(totals.kernel_ns) {
        let launches = totals.launches_per_token.map(|launches| format!("; {launches:.1} launches per token"));
        lines.push(format!("kernels   {} in {time}{}", grouped(kernels), launches.unwrap_or_default()));
    }
    if let Some(coverage) = &facts.coverage {
        let stages = match (coverage.stage_share, coverage.inferred_share) {
            (marked, Some(inferred)) if inferred > 0.0 => {
                format!("{} in marked and {} in inferred stages", percent(marked), percent(Some(inferred)))
            }
            (marked, _) => format!("{} in stages", percent(marked)),
        };
        let none = percent(coverage.unattributed_share);
        let operators = coverage.operator_share.map(|share| format!("; {} inside operators", percent(Some(share))));
        lines.push(format!("coverage  {stages}, {none} in none{}", operators.unwrap_or_default()));
    }
    if let Some(basis) = &facts.stages {
        let sure = basis.confidence.map(|sure| format!(" (confidence {})", percent(Some(sure)))).unwrap_or_default();
        let how = if basis.inferred { "inferred: " } else { "" };
        lines.push(format!("stages    {how}{}{sure}", basis.basis));
    }
    if metrics.utilisation.peak.is_some() && !metrics.utilisation.work_per_stage.is_empty() {
        let of = |name: Stage| Some(format!("{name} {}", percent(stage(metrics, name)?.mfu)));
        let each: Vec<_> = [Stage::Prefill, Stage::Decode].into_iter().filter_map(of).collect();
        lines.push(format!("MFU       {}", if each.is_empty() { UNKNOWN.to_owned() } else { each.join(", ") }));
    }
    lines
}

fn stages(metrics: &Metrics) -> Option<String> {
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("wall"),
        Column::number("of run"),
        Column::number("GPU busy"),
        Column::number("kernels"),
        Column::number("kernel time"),
        Column::number("MFU"),
        Column::number("MBU"),
    ]);
    for stage in &metrics.times.stages {
        table.row([
            indented(stage.name),
            time(stage.wall_ns),
            percent(share_of_run(metrics, stage)),
            time(stage.gpu_busy_ns),
            known(stage.kernel_count.map(grouped)),
            time(stage.kernel_ns),
            percent(stage.mfu),
            percent(stage.mbu),
        ]);
    }
    (!table.is_empty()).then(|| table.plain())
}

fn kernels(metrics: &Metrics) -> Option<String> {
    let all: i64 = metrics.breakdown.kernels.iter().map(|kernel| kernel.total_ns.get()).sum();
    let (shown, fewer) = of_stages(metrics);
    let mut table = Table::new([
        Column::text(if fewer { "top kernels of stages" } else { "top kernels" }),
        Column::text("family"),
        Column::text("stage"),
        Column::number("total"),
        Column::number("of time"),
        Column::number("calls"),
    ]);
    for kernel in shown.iter().take(KERNELS) {
        table.row([
            cut(&kernel.short_name),
            kernel.family.clone(),
            known(kernel.stage),
            kernel.total_ns.to_string(),
            percent(share(kernel.total_ns.get() as f64, all as f64)),
            grouped(kernel.calls),
        ]);
    }
    let more = metrics.breakdown.kernels.len().saturating_sub(shown.len().min(KERNELS)) as u64;
    let rest = if more > 0 {
        format!("and {} in kernels.md and metrics.json\n", count(more, "more row"))
    } else {
        String::new()
    };
    (!table.is_empty()).then(|| table.plain() + &rest)
}

fn counters(facts: &TraceFacts) -> Option<String> {
    let mut table = Table::new([
        Column::text("hardware counters"),
        Column::number("calls"),
        Column::number("total"),
        Column::number("device memory"),
        Column::number("compute"),
        Column::number("memory"),
        Column::number("occupancy"),
    ]);
    for row in facts.counters.iter().take(KERNELS) {
        table.row([
            cut(&row.short_name),
            grouped(row.calls),
            time(row.total_ns),
            known(row.dram_bytes),
            percent(row.compute_share),
            percent(row.memory_share),
            percent(row.occupancy),
        ]);
    }
    (!table.is_empty()).then(|| table.plain())
}

/// What would make the next import tell more. Only what fits this one.
fn next_steps(metrics: &Metrics, facts: &TraceFacts) -> Vec<String> {
    let open = metrics.conclusions.quality.iter().find(|counter| counter.counter == "stages_without_utilisation");
    let mut steps: Vec<_> = open.map(|counter| format!("for MFU, {}", counter.remedy)).into_iter().collect();
    let unplaced = facts.coverage.as_ref().and_then(|coverage| coverage.unattributed_share);
    if metrics.times.stages.is_empty() && facts.coverage.is_some() {
        steps.push("mark stages with ranges named prefill and decode (NVTX, or record_function in PyTorch)".to_owned());
    } else if unplaced > Some(0.02) {
        steps.push(format!("{} of the device's time is in no stage: mark it with ranges", percent(unplaced)));
    }
    steps
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((place, _)) => format!("{}...", &name[..place]),
        None => name.to_owned(),
    }
}
