//! What `llm-perf analyze` prints: the whole answer on one screen of plain text.

use std::fmt::Write;

use types::{AnalyticReport, DeviceUsed};

use super::headline::{caveats, device_count, generates, meaning, model, prediction, stored, workload};
use super::summary::{device_table, exchange_table};
use super::{likely, modules, stages};
use crate::render::text::prose;
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{count, milliseconds, percent, share, tokens_per_second};

/// Modules on a screen.
const MODULES: usize = 5;

/// The report as at most 25 lines of plain text, and a line more for each caveat and each device compared.
pub fn terminal(report: &AnalyticReport) -> String {
    let mut page = Page::new("");
    page.callout(READ_FIRST, caveats(report));
    let profile = &report.workload;
    page.facts([
        ("model", Some(prose(&model(&report.model)))),
        ("workload", Some(prose(&format!("{}: {}", profile.profile_id, workload(report))))),
        ("stored", stored(&report.model, profile).map(|stored| prose(&stored))),
        ("device", Some(device_count(profile) + &device(&report.device))),
    ]);
    let indented = |stage: &stages::StageRow<'_>| "  ".repeat(stage.around.len()) + stage.name;
    section(&mut page, stages::table(report, indented));
    page.facts([
        ("time", (report.devices.len() < 2).then(|| latency(report))),
        ("forecast", likely::line(report)),
        ("basis", likely::basis(report)),
        ("largest", likely::largest(report)),
        ("memory", Some(memory(report))),
    ]);
    section(&mut page, exchange_table(report));
    section(&mut page, device_table(report));
    section(&mut page, longest(report));
    page.facts([("origin", Some(format!("modelled, nothing measured: times are {}", meaning(report))))]);
    page.terminal()
}

fn section(page: &mut Page, table: Table) {
    if !table.is_empty() {
        page.table(&table);
    }
}

fn device(device: &DeviceUsed) -> String {
    let mut text = format!("{}: {}", prose(&device.name), device.bytes_per_second);
    for rate in &device.rates {
        let _ = write!(text, ", {} {} {}", rate.dtype, rate.unit, rate.flops);
    }
    text
}

fn latency(report: &AnalyticReport) -> String {
    let mut text = format!("roofline time {}", milliseconds(report.predicted_total_time_ms));
    let Some(prediction) = prediction(report) else { return text };
    let Some(step) = prediction.time_per_output_token_ms else { return text + "; nothing is decoded" };
    let _ = write!(text, ": first token {}, then {} per token", milliseconds(prediction.ttft_ms), milliseconds(step));
    if let Some(rate) = prediction.decode_tokens_per_second {
        let _ = write!(text, ", {}", tokens_per_second(rate));
    }
    text
}

fn memory(report: &AnalyticReport) -> String {
    let need = &report.memory;
    let verdict = if need.fits { "fits" } else { "does NOT fit" };
    let cache = if generates(report) { format!(" + {} KV", need.kv_bytes) } else { String::new() };
    let mut text = format!(
        "{} = {} weights + {} activations{cache}; {verdict} into {}",
        need.total_bytes, need.weights_bytes, need.activations_peak_bytes, report.device.memory_bytes,
    );
    if let Some(sequences) = need.sequences_that_fit {
        let _ = write!(text, ", room for {}", count(sequences, "sequence"));
    }
    text
}

fn longest(report: &AnalyticReport) -> Table {
    let mut table = Table::new("modules by time | >time | >of total time | >FLOPs | >bytes");
    for role in modules::by_time(report, MODULES) {
        table.row([
            prose(&role.name),
            milliseconds(role.time_ms),
            percent(share(role.time_ms, report.predicted_total_time_ms)),
            role.flops.to_string(),
            role.bytes.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use types::{Base, Caveat, CaveatKind, Facts};

    use super::*;
    use crate::pages::analytic::sample;
    use crate::words::Spoken;

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
    fn a_part_of_a_model_and_an_assumed_forecast_are_said_before_the_first_number() {
        let mut report = sample::report();
        report.model.part_of = Some("gemma3".to_owned());
        let left_out = Facts::new().with("part", "vision_config").with("parameters", 417_000_000u64);
        let facts = Facts::new().with("whole", "gemma3");
        let facts = facts.with("parts", vec![left_out.with_share("share", 0.1, Base::Itself)]);
        report.caveats = vec![
            Caveat::new(CaveatKind::PartlyModelled, facts),
            Caveat::new(CaveatKind::AssumedDtype, Facts::new().with("dtype", "bf16")),
            Caveat::new(CaveatKind::ClassDefaults, Facts::new().with("sizes", "num_attention_heads 8")),
        ];
        report.say();
        report.forecast = Some(sample::assumed_forecast());
        for text in [terminal(&report), super::super::summary_page(&report).markdown()] {
            let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no `{part}` in {text}"));
            let first_number = at("92.0 ms");
            assert!(at(READ_FIRST) < at("Only the language decoder of gemma3 is modelled"), "{text}");
            assert!(at("rests mostly on assumptions") < first_number, "{text}");
            for said in ["`vision_config`, about 417,000,000", "10.0% of the model", "bf16 is assumed", "heads 8."] {
                assert!(at(said) < first_number, "{said}: {text}");
            }
        }
    }

    #[test]
    fn without_decode_there_is_no_time_per_token() {
        let mut report = sample::report();
        report.devices[0].time_per_output_token_ms = None;
        report.devices[0].decode_tokens_per_second = None;
        assert_eq!(latency(&report), "roofline time 92.0 ms; nothing is decoded");
    }

    #[test]
    fn what_generates_nothing_has_neither_new_tokens_nor_a_cache() {
        let mut report = sample::report();
        report.memory.kv_bytes = types::Bytes::ZERO;
        assert!(workload(&report).starts_with("512 tokens, batch 1"), "{}", workload(&report));
        assert!(!memory(&report).contains("KV"), "{}", memory(&report));
    }

    #[test]
    fn an_empty_report_still_prints() {
        insta::assert_snapshot!(terminal(&sample::empty()));
    }
}
