//! What `llm-perf analyze` prints: the whole answer on one screen of plain text.

use std::fmt::Write;

use types::view::AnalyticView;
use types::{AnalyticReport, DeviceUsed};

use super::headline::{device_count, meaning, model, stored, workload};
use super::likely;
use crate::render::table::{Table, printable};
use crate::words::number::{count, grouped, known, milliseconds, percent, tokens_per_second};

/// The report as at most 25 lines of plain text, and a line more for each device compared.
pub fn terminal(view: &AnalyticView<'_>) -> String {
    let report = view.report;
    let mut text = String::new();
    line(&mut text, &format!("model     {}", model(&report.model)));
    line(&mut text, &format!("workload  {}: {}", report.workload.profile_id, workload(&report.workload)));
    if let Some(stored) = stored(&report.model, &report.workload) {
        line(&mut text, &format!("stored    {stored}"));
    }
    line(&mut text, &format!("device    {}{}", device_count(&report.workload), device(&report.device)));
    section(&mut text, &stages(view));
    text.push('\n');
    if report.devices.len() < 2 {
        line(&mut text, &latency(view));
    }
    for part in likely::lines(report) {
        line(&mut text, &part);
    }
    line(&mut text, &memory(report));
    section(&mut text, &exchanges(report));
    section(&mut text, &devices(report));
    section(&mut text, &modules(view));
    text.push('\n');
    line(&mut text, &format!("Modelled, nothing measured: times are {}.", meaning(report)));
    text
}

fn line(text: &mut String, content: &str) {
    text.push_str(&printable(content));
    text.push('\n');
}

fn section(text: &mut String, table: &Table) {
    if !table.is_empty() {
        let _ = write!(text, "\n{table}");
    }
}

fn device(device: &DeviceUsed) -> String {
    let mut text = format!("{}: {}", device.name, device.bytes_per_second);
    for rate in &device.rates {
        let _ = write!(text, ", {} {} {}", rate.dtype, rate.unit, rate.flops);
    }
    text
}

fn stages(view: &AnalyticView<'_>) -> Table {
    let mut table = Table::new("stage | >matrix | >vector | >bytes | >time | >share | bound");
    for stage in &view.stages {
        table.row([
            "  ".repeat(stage.around.len()) + stage.name,
            stage.cost.flops_matrix.to_string(),
            stage.cost.flops_vector.to_string(),
            stage.cost.bytes.total().to_string(),
            milliseconds(stage.cost.time_ms),
            percent(stage.time_share),
            stage.cost.bound.clone(),
        ]);
    }
    table
}

fn latency(view: &AnalyticView<'_>) -> String {
    let mut text = format!("time      roofline time {}", milliseconds(view.report.predicted_total_time_ms));
    let Some(prediction) = view.prediction else { return text };
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
fn exchanges(report: &AnalyticReport) -> Table {
    let mut table = Table::new("exchange | in | >per pass | >tensor | >sent by each | >time");
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
    table
}

fn devices(report: &AnalyticReport) -> Table {
    let mut table = Table::new("device | >first token | >per token | >rate | >total | memory | >sequences");
    if report.devices.len() < 2 {
        return table;
    }
    for prediction in &report.devices {
        table.row([
            prediction.device.name.clone(),
            milliseconds(prediction.ttft_ms),
            known(prediction.time_per_output_token_ms.map(milliseconds)),
            known(prediction.decode_tokens_per_second.map(tokens_per_second)),
            milliseconds(prediction.predicted_total_time_ms),
            if prediction.fits { "fits" } else { "does NOT fit" }.to_owned(),
            known(prediction.sequences_that_fit.map(grouped)),
        ]);
    }
    table
}

fn modules(view: &AnalyticView<'_>) -> Table {
    let mut table = Table::new("modules by time | >time | >share | >work | >bytes");
    for role in &view.modules_brief {
        table.row([
            role.name.clone(),
            milliseconds(role.time_ms),
            percent(role.time_share),
            role.flops.to_string(),
            role.bytes.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use analysis::view::analytic;

    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn the_answer_fits_on_one_screen() {
        let text = terminal(&analytic(&sample::report()));
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 25, "{} lines", text.lines().count());
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(112), "{widest:?} columns");
    }

    #[test]
    fn several_devices_are_compared_line_by_line() {
        insta::assert_snapshot!(terminal(&analytic(&sample::on_two_devices())));
    }

    #[test]
    fn without_decode_there_is_no_time_per_token() {
        let mut report = sample::report();
        report.devices[0].time_per_output_token_ms = None;
        report.devices[0].decode_tokens_per_second = None;
        assert_eq!(latency(&analytic(&report)), "time      roofline time 92.0 ms, nothing is decoded");
    }

    #[test]
    fn an_empty_report_still_prints() {
        insta::assert_snapshot!(terminal(&analytic(&sample::empty())));
    }
}
