//! What matters most, in a paragraph: how long, in which stage, bound by what, in which modules.

use types::{
    AnalyticReport, AttentionKind, DevicePrediction, LogitsKind, ModelSpec, Origin, StageCost, WorkloadProfile,
};

use super::modules::ModuleRole;
use super::{modules, stages};
use crate::render::text::{capital, code, prose};
use crate::words::number::{count, grouped, milliseconds, percent, share, tokens_per_second};

/// Modules named in the paragraph.
const NAMED_MODULES: usize = 3;

/// What a reader must know before the first number: what is left out, and what a forecast is worth.
pub(super) fn caveats(report: &AnalyticReport) -> Vec<String> {
    report.caveats.iter().map(|caveat| caveat.text.clone()).chain(of_forecast(report)).collect()
}

/// What a forecast is worth.
pub(crate) fn of_forecast(report: &AnalyticReport) -> Vec<String> {
    let forecast = report.forecast.as_ref();
    let assumed = forecast.filter(|forecast| forecast.origin == Origin::Assumed);
    let assumed =
        assumed.map(|forecast| format!("The forecast rests mostly on assumptions: {}.", prose(&forecast.basis)));
    let notes = forecast.into_iter().flat_map(|forecast| &forecast.notes);
    assumed.into_iter().chain(notes.map(|note| capital(&prose(note)) + ".")).collect()
}

/// The prediction that the report's own times belong to.
pub(super) fn prediction(report: &AnalyticReport) -> Option<&DevicePrediction> {
    report.devices.iter().find(|prediction| prediction.device.id == report.device.id)
}

/// The paragraph, as Markdown.
pub(crate) fn paragraph(report: &AnalyticReport) -> String {
    let mut sentences = vec![times(report)];
    sentences.extend(stage_shares(report));
    sentences.extend(work(report));
    sentences.extend(longest_modules(report));
    if let (Some(run), Some(measured)) = (&report.profile_run_id, report.measured_total_time_ms) {
        let ratio = report.predicted_vs_measured_ratio.map(|ratio| format!("; predicted over measured is {ratio:.3}"));
        let ratio = ratio.unwrap_or_default();
        sentences.push(format!("Run {} took {} (measured){ratio}.", code(run), milliseconds(measured)));
    }
    sentences.join(" ")
}

/// Whether the model generates tokens: an encoder keeps nothing for another pass.
pub(super) fn generates(report: &AnalyticReport) -> bool {
    report.memory.kv_bytes.get() > 0
}

/// The workload on one line of plain text.
pub(crate) fn workload(report: &AnalyticReport) -> String {
    let workload = &report.workload;
    let mut parts = Vec::new();
    if workload.seq_len > 0 && generates(report) {
        let image = grouped(workload.image_tokens);
        let kinds = if workload.image_tokens > 0 { format!(" ({image} image)") } else { String::new() };
        parts.push(count(workload.seq_len, "prompt token") + &kinds);
        parts.push(format!("{} new", grouped(workload.max_new_tokens)));
    } else if workload.seq_len > 0 {
        parts.push(count(workload.seq_len, "token"));
    }
    parts.push(format!("batch {}", grouped(workload.batch)));
    parts.push(workload.dtype.to_string());
    if workload.seq_len > 0 {
        parts.push(format!("{} attention", attention(workload.attention)));
    }
    if workload.seq_len > 0 && generates(report) {
        let logits = match workload.logits {
            LogitsKind::All => "all logits",
            LogitsKind::Last => "last logits",
        };
        parts.push(logits.to_owned());
    }
    parts.join(", ")
}

/// The model on one line of plain text.
pub(crate) fn model(model: &ModelSpec) -> String {
    let (id, class, parameters) = (&model.model_id, &model.model_variant, grouped(model.parameters.total));
    let active = model.parameters.active.map(|active| format!(", {} without idle experts", grouped(active)));
    let of = if model.part_of.is_some() { " in the decoder alone" } else { "" };
    format!("{id} ({class}), {parameters} parameters{of}{}", active.unwrap_or_default())
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
pub(crate) fn sequences(report: &AnalyticReport) -> Option<String> {
    let (need, workload) = (&report.memory, &report.workload);
    let (fit, each) = (need.sequences_that_fit?, need.kv_bytes_per_token?);
    let later = need.kv_bytes_per_token_later.map(|later| format!(", {later} once its windows are full"));
    let later = later.unwrap_or_default();
    let (fit, tokens) = (count(fit, "sequence"), count(workload.seq_len + workload.decode_steps, "token"));
    let takes = if each.get() == 0 {
        "the cache holds states, whose size does not depend on the length".to_owned()
    } else {
        format!("the KV cache takes {each} per token{later}")
    };
    Some(format!("{fit} of {tokens} fit next to weights and activations; {takes}"))
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

/// How long it takes at the device's peak rates, in bold.
pub(crate) fn times(report: &AnalyticReport) -> String {
    let total = milliseconds(report.predicted_total_time_ms);
    let mut text = format!("**The roofline time on {} is {total}", prose(&report.device.name));
    if let Some(prediction) = prediction(report) {
        let first = milliseconds(prediction.ttft_ms);
        match (prediction.time_per_output_token_ms, prediction.decode_tokens_per_second) {
            (Some(step), Some(rate)) => {
                let steps = count(report.workload.decode_steps, "decode step");
                let (step, rate) = (milliseconds(step), tokens_per_second(rate));
                text += &format!(": {first} to the first token, then {steps} of {step} ({rate})");
            }
            _ => text += "; nothing is decoded",
        }
    }
    text + ".**"
}

/// What each stage takes of that, and what limits it.
pub(crate) fn stage_shares(report: &AnalyticReport) -> Option<String> {
    let stages = stages::ordered(report);
    let clause = |name: &str| {
        let cost = stages.iter().find(|stage| stage.name == name)?.cost;
        let (time, bound) = (percent(share(cost.time_ms, report.predicted_total_time_ms)), prose(&cost.bound));
        Some(format!("{} takes {time} of the time and is {bound}-bound", code(name)))
    };
    let clauses: Vec<_> = ["prefill", "decode"].into_iter().filter_map(clause).collect();
    (!clauses.is_empty()).then(|| clauses.join("; ") + ".")
}

fn work(report: &AnalyticReport) -> Option<String> {
    let of = |stage: &StageCost| (stage.flops_matrix + stage.flops_vector, stage.bytes.total());
    let (prefill_flops, prefill_bytes) = of(report.stages.get("prefill")?);
    let Some(decode) = report.stages.get("decode").filter(|decode| decode.operations > 0) else {
        return Some(format!("Prefill does {prefill_flops} and moves {prefill_bytes}."));
    };
    let (flops, bytes) = (prefill_flops + of(decode).0, prefill_bytes + of(decode).1);
    Some(format!(
        "Prefill does {} of the {flops} and moves {} of the {bytes}; decode does the rest.",
        percent(share(prefill_flops.as_f64(), flops.as_f64())),
        percent(share(prefill_bytes.as_f64(), bytes.as_f64()))
    ))
}

/// The modules that take most of it.
pub(crate) fn longest_modules(report: &AnalyticReport) -> Option<String> {
    let part = |role: &ModuleRole| percent(share(role.time_ms, report.predicted_total_time_ms));
    let named = |role: &ModuleRole| format!("{} ({})", code(&role.name), part(role));
    let names: Vec<_> = modules::by_time(report, NAMED_MODULES).iter().take(NAMED_MODULES).map(named).collect();
    let (last, others) = names.split_last()?;
    let list = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    Some(format!("The longest modules are {list}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn a_model_that_decodes_nothing_has_no_decode_in_its_paragraph() {
        let mut report = sample::report();
        report.stages.retain(|name, _| name == "prefill");
        report.devices[0].time_per_output_token_ms = None;
        let mut page = crate::render::Page::new("");
        page.paragraph(&paragraph(&report));
        insta::assert_snapshot!(page.comment(), @"**The roofline time on NVIDIA H200 is 92.0 ms; nothing is decoded.** `prefill` takes 6.7% of the time and is compute-bound. Prefill does 3.41 TFLOP and moves 11.0 GB. The longest modules are `lm_head` (36.9%), `model.layers.*.mlp.experts` (32.6%) and `model.layers.*.self_attn` (15.2%).");
    }

    #[test]
    fn a_measured_run_is_named_beside_the_prediction() {
        let mut report = sample::report();
        report.profile_run_id = Some("20251115-120000".to_owned());
        report.measured_total_time_ms = Some(920.0);
        report.predicted_vs_measured_ratio = Some(0.1);
        let text = paragraph(&report);
        let end = "Run `20251115-120000` took 920 ms (measured); predicted over measured is 0.100.";
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
