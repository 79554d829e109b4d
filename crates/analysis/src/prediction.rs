//! A prediction beside the run that measured the same workload.

use std::collections::BTreeMap;

use types::{AnalyticReport, Facts, MeasuredPart, Metrics, PartKind, Remark, Stage, WorkloadProfile};

use crate::statistics::describe;

/// The report with what the run measured of its workload; as it was where the run has no such input. Also what is wrong where the
/// roofline time is above what was measured.
pub fn beside_run(mut report: AnalyticReport, metrics: &Metrics) -> (AnalyticReport, Option<Remark>) {
    let Some(measured) = measured_total(metrics, &report.workload) else { return (report, None) };
    report.profile_run_id = Some(metrics.run.id.clone());
    report.measured_total_time_ms = Some(measured);
    report.forecast_vs_measured_ratio =
        report.forecast_total.forecast_ns.map(|forecast| forecast.get() as f64 / 1e6 / measured);
    let ratio = report.predicted_total_time_ms / measured;
    report.predicted_vs_measured_ratio = (ratio <= 1.0).then_some(ratio);
    report.measured_parts = parts(&report, metrics);
    let wrong = Remark::new("prediction.above-measured", Facts::new().with("ratio", ratio));
    (report, (ratio > 1.0).then_some(wrong))
}

/// Families that GEMMs run as, in the names of profiles.
const GEMMS: [&str; 3] = ["gemm", "gemv", "moe"];

/// Stages, modules and kernel families that the run measured and the report predicts.
fn parts(report: &AnalyticReport, metrics: &Metrics) -> Vec<MeasuredPart> {
    let mut parts = Vec::new();
    let sizes = [report.workload.seq_len, report.workload.decode_steps, report.workload.batch];
    for (name, stage) in &report.stages {
        let Some(known) = Stage::ALL.into_iter().find(|stage| stage.name() == name) else { continue };
        let forecast = stage.forecast.forecast_ns.map(|time| time.as_millis());
        let measured = median(metrics, sizes, known).filter(|_| stage.passes > 0);
        parts.extend(measured.map(|measured| part(PartKind::Stage, name, measured, Some(stage.time_ms), forecast)));
    }
    let mut modules: BTreeMap<&str, f64> = BTreeMap::new();
    for module in metrics.breakdown.modules.iter().filter(|_| is_one_pass(report, metrics)) {
        *modules.entry(&module.path).or_default() += module.measured_ns.map_or(0.0, |time| time.as_millis());
    }
    for module in &report.module_metrics {
        let Some(measured) = modules.get(module.module_id.as_str()).filter(|time| **time > 0.0) else { continue };
        let forecast = module.forecast.forecast_ns.map(|time| time.as_millis());
        parts.push(part(PartKind::Module, &module.module_id, *measured, Some(module.total_time_ms), forecast));
    }
    parts.extend(families(report, metrics));
    parts
}

/// Whether what was traced is the workload once: sums over several would be no time of it.
fn is_one_pass(report: &AnalyticReport, metrics: &Metrics) -> bool {
    match (&metrics.times.steps, report.workload.decode_steps) {
        (Some(steps), count) if count > 0 => steps.list.len() as u64 == count,
        (_, 0) => metrics.times.stages.iter().any(|stage| stage.name == Stage::Prefill && stage.instances == 1),
        _ => false,
    }
}

fn families(report: &AnalyticReport, metrics: &Metrics) -> Vec<MeasuredPart> {
    let mut sums: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for kernel in &metrics.breakdown.kernels {
        // Vision runs inside prefill.
        let stage = match kernel.stage {
            Some(Stage::Decode) => "decode",
            Some(_) => "prefill",
            None => continue,
        };
        let family = match kernel.family.as_str() {
            family if GEMMS.contains(&family) => "gemm",
            "attention" => "attention",
            "communication" => "communication",
            _ => "other",
        };
        *sums.entry((stage, family)).or_default() += kernel.total_ns.as_millis();
    }
    let forecasts = report.forecast.iter().flat_map(|forecast| &forecast.kernel_families);
    let beside = |row: &types::FamilyForecast| {
        let measured = sums.get(&(row.stage.as_str(), row.family.as_str())).filter(|time| **time > 0.0)?;
        let part = part(PartKind::KernelFamily, &row.family, *measured, None, Some(row.device_ns.as_millis()));
        Some(MeasuredPart { stage: Some(row.stage.clone()), ..part })
    };
    forecasts.filter(|_| is_one_pass(report, metrics)).filter_map(beside).collect()
}

fn part(kind: PartKind, name: &str, measured: f64, roofline: Option<f64>, forecast: Option<f64>) -> MeasuredPart {
    MeasuredPart {
        kind,
        name: name.to_owned(),
        stage: None,
        measured_ms: measured,
        roofline_ms: roofline,
        forecast_ms: forecast,
        predicted_vs_measured_ratio: roofline.map(|time| time / measured).filter(|ratio| *ratio <= 1.0),
        forecast_vs_measured_ratio: forecast.map(|time| time / measured),
    }
}

/// Milliseconds of prefill and decode of the input that is this workload (as many tokens, steps and sequences), by medians.
pub fn measured_total(metrics: &Metrics, workload: &WorkloadProfile) -> Option<f64> {
    total(metrics, [workload.seq_len, workload.decode_steps, workload.batch])
}

fn total(metrics: &Metrics, sizes: [u64; 3]) -> Option<f64> {
    let decode = if sizes[1] == 0 { 0.0 } else { median(metrics, sizes, Stage::Decode)? };
    Some(median(metrics, sizes, Stage::Prefill)? + decode).filter(|measured| *measured > 0.0)
}

/// Milliseconds of a stage of the input with so many tokens, decode steps and sequences; absent where it was not measured.
fn median(metrics: &Metrics, [seq_len, decode_steps, batch]: [u64; 3], stage: Stage) -> Option<f64> {
    let input = metrics.conditions.inputs.iter().find(|input| {
        (input.prompt_tokens, input.generated_tokens.saturating_sub(1), input.batch) == (seq_len, decode_steps, batch)
    })?;
    let samples = metrics.times.samples.iter().filter(|sample| {
        sample.stage == stage && !sample.warmup && sample.input.as_deref().is_none_or(|name| name == input.name)
    });
    let times: Vec<f64> = samples.map(|sample| sample.wall_ns.get() as f64 / 1e6).collect();
    describe(&times).map(|statistics| statistics.median).filter(|time| *time > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, PlainRuns};
    use crate::sample::{page, timed};
    use crate::subject::Subject;

    #[test]
    fn the_time_is_median_prefill_and_decode_of_the_input_that_is_the_workload() {
        let samples = [(Stage::Prefill, 3_000_000), (Stage::Prefill, 9_000_000), (Stage::Prefill, 2_000_000)];
        let mut samples: Vec<_> = samples.map(|(stage, time)| timed(stage, "a", 0, time)).to_vec();
        samples.extend([timed(Stage::Decode, "a", 0, 1_000_000), timed(Stage::Prefill, "b", 0, 50_000_000)]);
        let subject = Subject { inputs: vec![page("b", 100, 1), page("a", 512, 9)], ..Subject::default() };
        let plain = PlainRuns { samples, ..PlainRuns::default() };
        let metrics = crate::metrics(&subject, &Evidence { plain: Some(plain), ..Evidence::default() });
        assert_eq!(total(&metrics, [512, 8, 1]), Some(4.0));
        assert_eq!(total(&metrics, [100, 0, 1]), Some(50.0));
        assert_eq!(total(&metrics, [512, 7, 1]), None, "another number of steps");
        assert_eq!(total(&metrics, [512, 8, 2]), None, "another batch");
    }

    #[test]
    fn ratios_are_of_what_was_measured_and_a_roofline_above_it_has_none() {
        let found = part(PartKind::Stage, "decode", 10.0, Some(4.0), Some(9.0));
        assert_eq!((found.predicted_vs_measured_ratio, found.forecast_vs_measured_ratio), (Some(0.4), Some(0.9)));
        let found = part(PartKind::Module, "lm_head", 10.0, Some(12.0), None);
        assert_eq!((found.predicted_vs_measured_ratio, found.forecast_vs_measured_ratio), (None, None));
    }
}
