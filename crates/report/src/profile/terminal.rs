//! What `llm-perf profile` ends with: the numbers a person wants, and where the time went.

use types::{Metrics, Severity, Stage, Statistics};

use super::phrase::{device, extent, forward_pass, indented, known, model, share_of_run, stage, time};
use crate::number::{UNKNOWN, count, milliseconds, percent, tokens_per_second};
use crate::table::{Column, Table, printable};

/// The run as at most 15 lines of plain text.
pub fn terminal(metrics: &Metrics) -> String {
    let weights = metrics.run.weights.as_ref().map(|weights| format!(", weights: {weights}")).unwrap_or_default();
    let rates = &metrics.times.throughput;
    let mut lines = vec![format!("{}{weights}, on {}: {}", model(metrics), device(metrics), extent(metrics))];
    match forward_pass(metrics) {
        Some(pass) => lines.push(format!("forward pass {pass}, batch {}", known(batch(metrics)))),
        None => lines.extend([
            format!("first token  {}", time(rates.ttft_ns)),
            format!("per token    {}", time(rates.time_per_output_token_ns)),
            format!("throughput   {}", rates.decode_tokens_per_second.map_or(UNKNOWN.to_owned(), tokens_per_second)),
        ]),
    }
    lines.extend([
        format!("MFU          {}", utilisation(metrics)),
        format!("held against {}", peak(metrics)),
        String::new(),
    ]);
    let lines = lines.iter().map(|line| printable(line).into_owned() + "\n");
    let mut text = lines.collect::<String>() + &stages(metrics);
    if let Some(line) = outlook(metrics) {
        text += &line;
        text.push('\n');
    }
    text
}

fn batch(metrics: &Metrics) -> Option<u32> {
    metrics.conditions.settings.as_ref().map(|settings| settings.batch)
}

fn utilisation(metrics: &Metrics) -> String {
    let of = |name: Stage| Some(format!("{name} {}", percent(stage(metrics, name)?.mfu)));
    let stages: Vec<_> = [Stage::Prefill, Stage::Decode].into_iter().filter_map(of).collect();
    if stages.is_empty() { UNKNOWN.to_owned() } else { stages.join(", ") }
}

fn peak(metrics: &Metrics) -> String {
    let Some(peak) = &metrics.utilisation.peak else { return "no known peak of this device".to_owned() };
    format!("{} in {}, {} ({})", peak.flops, peak.dtype, peak.bytes_per_second, peak.source)
}

fn stages(metrics: &Metrics) -> String {
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("median"),
        Column::number("repeats vary"),
        Column::number("of run"),
        Column::number("MFU"),
        Column::number("MBU"),
    ]);
    for stage in &metrics.times.stages {
        let median =
            metrics.times.aggregates.stage_ms.get(&stage.name).map(|statistics| milliseconds(statistics.median));
        let spread = metrics.times.variance.repeat_cv_per_stage.get(&stage.name).copied().flatten();
        table.row([
            indented(stage.name),
            known(median),
            percent(spread),
            percent(share_of_run(metrics, stage)),
            percent(stage.mfu),
            percent(stage.mbu),
        ]);
    }
    if table.is_empty() { "no stage was measured\n".to_owned() } else { table.plain() }
}

/// Times of stages alone, in milliseconds, as a plain table.
pub fn stage_times_terminal(stages: &[(Stage, Statistics)]) -> String {
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("runs"),
        Column::number("median"),
        Column::number("shortest"),
    ]);
    for (stage, times) in stages {
        table.row([indented(*stage), times.n.to_string(), milliseconds(times.median), milliseconds(times.min)]);
    }
    if table.is_empty() { "no stage was measured\n".to_owned() } else { table.plain() }
}

/// One line for what the report has to say; none where there is nothing.
pub(super) fn outlook(metrics: &Metrics) -> Option<String> {
    let findings = metrics.conclusions.findings.len() as u64;
    let severe = metrics.conclusions.findings.iter().filter(|finding| finding.severity > Severity::Info);
    let mut warned: Vec<_> = severe.map(|finding| finding.rule.as_str()).collect();
    warned.dedup();
    let notes = metrics.conclusions.quality.iter().filter(|counter| counter.severity > Severity::Info).count() as u64;
    let mut parts = Vec::new();
    if findings > 0 {
        let names = if warned.is_empty() { String::new() } else { format!(" (warnings: {})", warned.join(", ")) };
        parts.push(count(findings, "finding") + &names);
    }
    if notes > 0 {
        parts.push(count(notes, "doubt") + " about the data");
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sample;

    #[test]
    fn the_answer_fits_on_fifteen_lines() {
        let text = terminal(&sample::metrics());
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 15, "{} lines", text.lines().count());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(112), "{widest:?} columns");
    }

    #[test]
    fn an_unknown_device_and_no_decode_show_dashes() {
        insta::assert_snapshot!(terminal(&sample::without_peak()));
    }

    #[test]
    fn an_empty_run_still_prints() {
        insta::assert_snapshot!(terminal(&sample::empty()));
    }
}
