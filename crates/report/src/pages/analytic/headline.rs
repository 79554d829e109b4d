//! What matters most, in a paragraph: how long, in which stage, bound by what, in which modules.

use types::view::{AnalyticView, ModuleRole};
use types::{AnalyticReport, AttentionKind, LogitsKind, ModelSpec, WorkloadProfile};

use crate::render::text::{code, prose};
use crate::words::number::{count, grouped, milliseconds, percent, tokens_per_second};

/// Modules named in the paragraph.
const NAMED_MODULES: usize = 3;

/// The paragraph, as Markdown.
pub(super) fn paragraph(view: &AnalyticView<'_>) -> String {
    let report = view.report;
    let mut sentences = vec![times(view)];
    sentences.extend(stages(view));
    sentences.extend(work(view));
    sentences.extend(modules(view));
    if let (Some(run), Some(measured)) = (&report.profile_run_id, report.measured_total_time_ms) {
        let ratio = report.predicted_vs_measured_ratio.map(|ratio| format!(", predicted over measured {ratio:.3}"));
        let ratio = ratio.unwrap_or_default();
        sentences.push(format!("Run {} took {} (measured){ratio}.", code(run), milliseconds(measured)));
    }
    sentences.join(" ")
}

/// What is asked of the model, on one line of plain text.
pub(super) fn workload(workload: &WorkloadProfile) -> String {
    let mut parts = Vec::new();
    if workload.seq_len > 0 {
        let image = grouped(workload.image_tokens);
        let kinds = if workload.image_tokens > 0 { format!(" ({image} image)") } else { String::new() };
        parts.push(count(workload.seq_len, "prompt token") + &kinds);
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

/// How weights and cache are stored, on one line; absent where that is as everything else.
pub(super) fn stored(model: &ModelSpec, workload: &WorkloadProfile) -> Option<String> {
    let quantisation = &workload.quantisation;
    let weights = quantisation.weights.map(|weights| {
        let scales = match quantisation.group {
            Some(group) => format!("a scale for every {group}"),
            None => "a scale for every row".to_owned(),
        };
        let zero = if quantisation.zero_points { " and a zero point" } else { "" };
        let gemms = match quantisation.activations {
            Some(activations) => format!("GEMMs in {activations}"),
            None => format!("GEMMs in {}", workload.dtype),
        };
        format!("decoder weights in {weights}, {scales}{zero}, {gemms}")
    });
    let kv = quantisation.kv.map(|kv| format!("KV cache in {kv}"));
    let parts: Vec<_> = weights.or_else(|| model.quantisation.clone()).into_iter().chain(kv).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// How many devices share the model, where that is not one, as in front of a device's name.
pub(super) fn device_count(workload: &WorkloadProfile) -> String {
    let parallel = &workload.parallel;
    if parallel.is_single() {
        return String::new();
    }
    let sizes = [("tensor", parallel.tensor), ("expert", parallel.expert), ("pipeline", parallel.pipeline)];
    let sizes: Vec<_> = sizes.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name} {n}")).collect();
    format!("{} ({}) x ", grouped(parallel.devices()), sizes.join(", "))
}

/// How many sequences of the workload's length fit, on one line; absent without a KV cache.
pub(super) fn sequences(view: &AnalyticView<'_>) -> Option<String> {
    let need = &view.report.memory;
    let (fit, each) = (need.sequences_that_fit?, need.kv_bytes_per_token?);
    let (fit, tokens) = (count(fit, "sequence"), count(view.sequence_tokens, "token"));
    Some(format!("{fit} of {tokens} fit next to weights and activations; the KV cache takes {each} per token"))
}

/// How attention is computed.
pub(super) fn attention(kind: AttentionKind) -> &'static str {
    match kind {
        AttentionKind::Eager => "eager",
        AttentionKind::Flash => "flash",
    }
}

/// What the times are, in a clause.
pub(super) fn meaning(report: &AnalyticReport) -> String {
    let launch = report.device.launch_us.map(|time| milliseconds(time / 1e3));
    let launch = launch.map(|time| format!(", plus {time} to launch each operation")).unwrap_or_default();
    format!("roofline times at the device's peak rates{launch}")
}

fn times(view: &AnalyticView<'_>) -> String {
    let report = view.report;
    let total = milliseconds(report.predicted_total_time_ms);
    let mut text = format!("**The roofline time on {} is {total}", prose(&report.device.name));
    if let Some(prediction) = view.prediction {
        let first = milliseconds(prediction.ttft_ms);
        match (prediction.time_per_output_token_ms, prediction.decode_tokens_per_second) {
            (Some(step), Some(rate)) => {
                let steps = count(report.workload.decode_steps, "decode step");
                let (step, rate) = (milliseconds(step), tokens_per_second(rate));
                text += &format!(": {first} to the first token, then {steps} of {step} ({rate})");
            }
            _ => text += ", and nothing is decoded",
        }
    }
    text + ".**"
}

fn stages(view: &AnalyticView<'_>) -> Option<String> {
    let clause = |name: &str| {
        let stage = view.stages.iter().find(|stage| stage.name == name)?;
        let (time, bound) = (percent(stage.time_share), prose(&stage.cost.bound));
        Some(format!("{} takes {time} of the time and is {bound}-bound", code(name)))
    };
    let clauses: Vec<_> = ["prefill", "decode"].into_iter().filter_map(clause).collect();
    (!clauses.is_empty()).then(|| clauses.join("; ") + ".")
}

fn work(view: &AnalyticView<'_>) -> Option<String> {
    let work = view.work?;
    let (flops, bytes) = (work.flops, work.bytes);
    Some(match work.prefill {
        None => format!("It does {flops} and moves {bytes}."),
        Some((of_flops, of_bytes)) => format!(
            "Prefill does {} of the {flops} and moves {} of the {bytes}; decode does the rest.",
            percent(of_flops),
            percent(of_bytes)
        ),
    })
}

fn modules(view: &AnalyticView<'_>) -> Option<String> {
    let named = |role: &ModuleRole| format!("{} ({})", code(&role.name), percent(role.time_share));
    let names: Vec<_> = view.modules.iter().take(NAMED_MODULES).map(named).collect();
    let (last, others) = names.split_last()?;
    let list = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    Some(format!("Most of the time is in {list}."))
}

#[cfg(test)]
mod tests {
    use analysis::view::analytic;

    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn a_model_that_decodes_nothing_has_no_decode_in_its_paragraph() {
        let mut report = sample::report();
        report.stages.retain(|name, _| name == "prefill");
        report.devices[0].time_per_output_token_ms = None;
        insta::assert_snapshot!(paragraph(&analytic(&report)), @"
        **The roofline time on NVIDIA H200 is 92.0 ms, and nothing is decoded.** `prefill` takes 6.7% of the time and is compute-bound. It does 3.41 TFLOP and moves 11.0 GB. Most of the time is in `lm_head` (36.9%), `model.layers.*.mlp.experts` (32.6%) and `model.layers.*.self_attn` (15.2%).
        ");
    }

    #[test]
    fn a_measured_run_is_named_beside_the_prediction() {
        let mut report = sample::report();
        report.profile_run_id = Some("20251115-120000".to_owned());
        report.measured_total_time_ms = Some(920.0);
        report.predicted_vs_measured_ratio = Some(0.1);
        let text = paragraph(&analytic(&report));
        let end = "Run `20251115-120000` took 920 ms (measured), predicted over measured 0.100.";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_launch_cost_is_part_of_what_the_times_mean() {
        let mut report = sample::report();
        assert_eq!(meaning(&report), "roofline times at the device's peak rates");
        report.device.launch_us = Some(5.0);
        assert_eq!(
            meaning(&report),
            "roofline times at the device's peak rates, plus 5.00 us to launch each operation"
        );
    }
}
