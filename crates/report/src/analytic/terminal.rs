//! What `llm-perf analyze` prints: the whole answer on one screen of plain text.

use std::fmt::Write;

use types::{AnalyticReport, DeviceUsed};

use super::breakdown::by_time;
use super::headline::{device_count, meaning, model, prediction, stored, workload};
use super::stages::ordered;
use crate::number::{UNKNOWN, count, grouped, milliseconds, percent, share, tokens_per_second};
use crate::table::{Column, Table, printable};

/// Modules shown.
const MODULES: usize = 5;

/// The report as at most 25 lines of plain text, and a line more for each device compared.
pub fn terminal(report: &AnalyticReport) -> String {
    let mut text = String::new();
    line(&mut text, &format!("model     {}", model(&report.model)));
    line(&mut text, &format!("workload  {}: {}", report.workload.profile_id, workload(&report.workload)));
    if let Some(stored) = stored(&report.workload) {
        line(&mut text, &format!("stored    {stored}"));
    }
    line(&mut text, &format!("device    {}{}", device_count(&report.workload), device(&report.device)));
    section(&mut text, &stages(report));
    text.push('\n');
    if report.devices.len() < 2 {
        line(&mut text, &latency(report));
    }
    line(&mut text, &memory(report));
    section(&mut text, &exchanges(report));
    section(&mut text, &devices(report));
    section(&mut text, &modules(report));
    text.push('\n');
    line(&mut text, &format!("Modelled, nothing measured: times are {}.", meaning(report)));
    text
}

fn line(text: &mut String, content: &str) {
    text.push_str(&printable(content));
    text.push('\n');
}

fn section(text: &mut String, table: &str) {
    if !table.is_empty() {
        text.push('\n');
        text.push_str(table);
    }
}

fn device(device: &DeviceUsed) -> String {
    let mut text = format!("{}: {}", device.name, device.bytes_per_second);
    for rate in &device.rates {
        let _ = write!(text, ", {} {} {}", rate.dtype, rate.unit, rate.flops);
    }
    text
}

fn stages(report: &AnalyticReport) -> String {
    let mut table = Table::new([
        Column::text("stage"),
        Column::number("matrix"),
        Column::number("vector"),
        Column::number("bytes"),
        Column::number("time"),
        Column::number("share"),
        Column::text("bound"),
    ]);
    for row in ordered(&report.stages) {
        table.row([
            "  ".repeat(row.around.len()) + row.name,
            row.cost.flops_matrix.to_string(),
            row.cost.flops_vector.to_string(),
            row.cost.bytes.total().to_string(),
            milliseconds(row.cost.time_ms),
            percent(share(row.cost.time_ms, report.predicted_total_time_ms)),
            row.cost.bound.clone(),
        ]);
    }
    if table.is_empty() { String::new() } else { table.plain() }
}

fn latency(report: &AnalyticReport) -> String {
    let mut text = format!("time      at least {}", milliseconds(report.predicted_total_time_ms));
    let Some(prediction) = prediction(report) else { return text };
    let Some(step) = prediction.time_per_output_token_ms else { return text + ", nothing is decoded" };
    let _ = write!(text, ": first token {}, then {} per token", milliseconds(prediction.ttft_ms), milliseconds(step));
    if let Some(rate) = prediction.decode_tokens_per_second {
        let _ = write!(text, ", {}", tokens_per_second(rate));
    }
    text
}

fn memory(report: &AnalyticReport) -> String {
    let need = &report.memory;
    let verdict = if need.fits { "fits" } else { "does NOT fit" };
    let mut text = format!(
        "memory    {} = {} weights + {} activations + {} KV; {verdict} {}",
        need.total_bytes, need.weights_bytes, need.activations_peak_bytes, need.kv_bytes, report.device.memory_bytes,
    );
    if let Some(sequences) = need.sequences_that_fit {
        let _ = write!(text, ", room for {}", count(sequences, "sequence"));
    }
    text
}

/// What devices that share the model send to each other.
fn exchanges(report: &AnalyticReport) -> String {
    if report.exchanges.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::text("exchange"),
        Column::text("in"),
        Column::number("per pass"),
        Column::number("tensor"),
        Column::number("sent by each"),
        Column::number("time"),
    ]);
    for exchange in &report.exchanges {
        table.row([
            format!("{} of {}", exchange.collective, exchange.devices),
            exchange.stage.clone(),
            grouped(exchange.per_pass),
            exchange.tensor_bytes.to_string(),
            exchange.sent_bytes_per_pass.to_string(),
            milliseconds(exchange.time_per_pass_ms),
        ]);
    }
    table.plain()
}

fn devices(report: &AnalyticReport) -> String {
    if report.devices.len() < 2 {
        return String::new();
    }
    let mut table = Table::new([
        Column::text("device"),
        Column::number("first token"),
        Column::number("per token"),
        Column::number("rate"),
        Column::number("in all"),
        Column::text("memory"),
        Column::number("sequences"),
    ]);
    for prediction in &report.devices {
        table.row([
            prediction.device.name.clone(),
            milliseconds(prediction.ttft_ms),
            prediction.time_per_output_token_ms.map_or(UNKNOWN.to_owned(), milliseconds),
            prediction.decode_tokens_per_second.map_or(UNKNOWN.to_owned(), tokens_per_second),
            milliseconds(prediction.predicted_total_time_ms),
            if prediction.fits { "fits" } else { "does NOT fit" }.to_owned(),
            prediction.sequences_that_fit.map_or(UNKNOWN.to_owned(), grouped),
        ]);
    }
    table.plain()
}

fn modules(report: &AnalyticReport) -> String {
    let mut table = Table::new([
        Column::text("modules by time"),
        Column::number("time"),
        Column::number("share"),
        Column::number("work"),
        Column::number("bytes"),
    ]);
    for role in by_time(report, MODULES) {
        table.row([
            role.name,
            milliseconds(role.time_ms),
            percent(share(role.time_ms, report.predicted_total_time_ms)),
            role.flops.to_string(),
            role.bytes.to_string(),
        ]);
    }
    if table.is_empty() { String::new() } else { table.plain() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytic::sample;

    #[test]
    fn the_answer_fits_on_one_screen() {
        let text = terminal(&sample::report());
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 25, "{} lines", text.lines().count());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(112), "{widest:?} columns");
    }

    #[test]
    fn several_devices_are_compared_line_by_line() {
        insta::assert_snapshot!(terminal(&sample::on_two_devices()));
    }

    #[test]
    fn without_decode_there_is_no_time_per_token() {
        let mut report = sample::report();
        report.devices[0].time_per_output_token_ms = None;
        report.devices[0].decode_tokens_per_second = None;
        assert_eq!(latency(&report), "time      at least 92.0 ms, nothing is decoded");
    }

    #[test]
    fn an_empty_report_still_prints() {
        insta::assert_snapshot!(terminal(&sample::empty()));
    }
}
