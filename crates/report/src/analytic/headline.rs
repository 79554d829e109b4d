//! What matters most, in a paragraph: how long, in which stage, bound by what, in which modules.

use types::{AnalyticReport, AttentionKind, DevicePrediction, LogitsKind, ModelSpec, StageCost, WorkloadProfile};

use super::breakdown::by_time;
use crate::markdown::{code, prose};
use crate::number::{count, grouped, milliseconds, percent, share, tokens_per_second};

/// Modules named in the paragraph.
const NAMED_MODULES: usize = 3;

/// The paragraph, as Markdown.
pub(super) fn paragraph(report: &AnalyticReport) -> String {
    let mut sentences = vec![times(report)];
    sentences.extend(stages(report));
    sentences.extend(work(report));
    sentences.extend(modules(report));
    if let (Some(run), Some(measured)) = (&report.profile_run_id, report.measured_total_time_ms) {
        let ratio = report.predicted_vs_measured_ratio.map(|ratio| format!(", predicted over measured {ratio:.3}"));
        let ratio = ratio.unwrap_or_default();
        sentences.push(format!("Run {} took {} (measured){ratio}.", code(run), milliseconds(measured)));
    }
    sentences.join(" ")
}

/// The prediction the report's own times belong to.
pub(super) fn prediction(report: &AnalyticReport) -> Option<&DevicePrediction> {
    report.devices.iter().find(|prediction| prediction.device.id == report.device.id)
}

/// What is asked of the model, on one line of plain text.
pub(super) fn workload(workload: &WorkloadProfile) -> String {
    let mut parts = Vec::new();
    if workload.seq_len > 0 {
        let image = grouped(workload.image_tokens);
        let kinds = if workload.image_tokens > 0 { format!(" ({image} image)") } else { String::new() };
        parts.push(count(workload.seq_len, "prompt token") + &kinds);
    }
    if workload.max_new_tokens > 0 {
        parts.push(format!("{} new", grouped(workload.max_new_tokens)));
    }
    parts.push(format!("batch {}", grouped(workload.batch)));
    parts.push(workload.dtype.to_string());
    if workload.seq_len > 0 {
        parts.push(format!("{} attention", attention(workload.attention)));
        let logits = match workload.logits {
            LogitsKind::All => "all logits",
            LogitsKind::Last => "last logits",
        };
        parts.push(logits.to_owned());
    }
    parts.join(", ")
}

/// The model on one line of plain text.
pub(super) fn model(model: &ModelSpec) -> String {
    let (id, class, parameters) = (&model.model_id, &model.model_variant, grouped(model.parameters.total));
    format!("{id} ({class}), {parameters} parameters")
}

/// How attention is computed.
pub(super) fn attention(kind: AttentionKind) -> &'static str {
    match kind {
        AttentionKind::Eager => "eager",
        AttentionKind::Flash => "flash",
    }
}

fn times(report: &AnalyticReport) -> String {
    let total = milliseconds(report.predicted_total_time_ms);
    let mut text = format!("**{} needs at least {total}", prose(&report.device.name));
    if let Some(prediction) = prediction(report) {
        let first = milliseconds(prediction.ttft_ms);
        match (prediction.time_per_output_token_ms, prediction.decode_tokens_per_second) {
            (Some(step), Some(rate)) => {
                let steps = count(report.workload.decode_steps, "decode step");
                let (step, rate) = (milliseconds(step), tokens_per_second(rate));
                text += &format!(": {first} to the first token, then {steps} of {step} ({rate})");
            }
            _ => text += &format!(": {first} to the first result, and nothing is decoded"),
        }
    }
    text + ".**"
}

fn stages(report: &AnalyticReport) -> Option<String> {
    let clause = |name: &str| {
        let stage = report.stages.get(name).filter(|stage| stage.operations > 0)?;
        let time = percent(share(stage.time_ms, report.predicted_total_time_ms));
        Some(format!("{} takes {time} of the time and is bound by {}", code(name), prose(&stage.bound)))
    };
    let clauses: Vec<_> = ["prefill", "decode"].into_iter().filter_map(clause).collect();
    (!clauses.is_empty()).then(|| clauses.join("; ") + ".")
}

fn work(report: &AnalyticReport) -> Option<String> {
    let (prefill, decode) = (report.stages.get("prefill")?, report.stages.get("decode")?);
    let flops = |stage: &StageCost| stage.flops_matrix + stage.flops_vector;
    let (all_flops, all_bytes) = (flops(prefill) + flops(decode), prefill.bytes.total() + decode.bytes.total());
    let (flops, bytes) = (flops(prefill).as_f64(), prefill.bytes.total().as_f64());
    Some(format!(
        "Prefill does {} of the {all_flops} and moves {} of the {all_bytes}; decode does the rest.",
        percent(share(flops, all_flops.as_f64())),
        percent(share(bytes, all_bytes.as_f64())),
    ))
}

fn modules(report: &AnalyticReport) -> Option<String> {
    let mut roles = by_time(report, NAMED_MODULES);
    roles.truncate(NAMED_MODULES);
    let named = |role: &super::breakdown::Role| {
        format!("{} ({})", code(&role.name), percent(share(role.time_ms, report.predicted_total_time_ms)))
    };
    let names: Vec<_> = roles.iter().map(named).collect();
    let (last, others) = names.split_last()?;
    let list = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    Some(format!("Most of the time is in {list}."))
}
