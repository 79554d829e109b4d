//! A run as its pages show it.

use std::collections::BTreeMap;

use types::view::{DeviceTimeView, EngineStepsView, NextStep, RunView, StageView};
use types::{
    BytesPerSecond, CopyTime, Count, DeviceTime, Metrics, Nanos, QualityCounter, RunKindName, Severity, Stage,
    StageSummary, StepBasis, StepBatch, StepLabel, StepSummary,
};

use crate::numbered;

use super::{commands, cost_centres, findings, kernels, mean, serving, share, takeaways, time_share, tries};

/// Share of the device's time outside of stages from which marking it is worth the trouble.
const UNPLACED: f64 = 0.02;
/// Says why stages have no utilisation.
const NO_UTILISATION: &str = "stages_without_utilisation";
/// Says that launches have no kernels.
const CUT_OFF: &str = "launches_cut_off";

/// The view of a run.
pub fn run(metrics: &Metrics) -> RunView<'_> {
    let stages: Vec<_> = metrics.times.stages.iter().map(|stage| stage_view(metrics, stage)).collect();
    let totals = &metrics.times.totals;
    let profiled =
        metrics.conditions.trace.as_ref().and_then(|facts| facts.traced_pass.as_ref()).and_then(|pass| pass.wall_ns);
    let mut module_kinds: Vec<_> = metrics.breakdown.module_kinds.iter().collect();
    module_kinds.sort_by_key(|kind| std::cmp::Reverse(kind.exclusive_ns));
    let warnings = metrics.conclusions.findings.iter().filter(|finding| finding.severity > Severity::Info);
    let mut warning_rules: Vec<_> = warnings.map(|finding| finding.rule.as_str()).collect();
    warning_rules.dedup();
    RunView {
        metrics,
        takeaways: takeaways::takeaways(metrics, &stages),
        forward_pass_ms: forward_pass(metrics),
        device_time: metrics.breakdown.device_time.iter().map(device_time).collect(),
        engine_steps: engine_steps(metrics),
        serving: serving::serving(metrics),
        busy_share: busy_share(metrics, totals.gpu_busy_ns, totals.wall_ns),
        profiled_busy_share: totals.gpu_busy_ns.zip(profiled).and_then(|(busy, wall)| time_share(busy, wall)),
        kernels: kernels::kernels(metrics),
        cost_centres: cost_centres::cost_centres(metrics),
        module_kinds,
        findings: findings::findings(metrics),
        largest_savings: findings::largest_savings(metrics),
        warning_rules,
        data_warnings: metrics.conclusions.quality.iter().filter(|counter| counter.severity > Severity::Info).collect(),
        utilisation_missing: metrics.conclusions.quality.iter().find(|counter| counter.counter == NO_UTILISATION),
        tries: tries::tries(metrics),
        next_steps: next_steps(metrics),
        commands: commands::commands(metrics),
        disturbed: crate::disturbed::share(&metrics.conditions),
        disturbance_causes: crate::disturbed::causes(&metrics.conditions),
        stages,
    }
}

fn device_time(time: &DeviceTime) -> DeviceTimeView<'_> {
    let of = |part: Nanos| time_share(part, time.span_ns);
    let rate = |copy: &CopyTime| {
        let seconds = copy.ns.get() as f64 / 1e9;
        share(copy.bytes?.as_f64(), seconds).map(BytesPerSecond::new)
    };
    DeviceTimeView {
        time,
        busy: of(time.busy_ns),
        compute: of(time.compute_ns),
        communication_exposed: of(time.communication_exposed_ns),
        copies_exposed: of(time.copies_exposed_ns),
        idle: of(time.idle_ns),
        causes: time.idle.iter().map(|idle| (idle, of(idle.ns))).collect(),
        copies: time.copies.iter().map(|copy| (copy, rate(copy))).collect(),
    }
}

fn engine_steps(metrics: &Metrics) -> Vec<EngineStepsView> {
    let annotated = metrics.times.steps.iter().filter(|steps| steps.basis == StepBasis::EngineAnnotations);
    let mut groups: BTreeMap<(bool, Option<StepLabel>, String), Vec<&StepSummary>> = BTreeMap::new();
    for step in annotated.flat_map(|steps| &steps.list) {
        // Steps of one label are told together, whatever their batch.
        let name = if step.label.is_some() { String::new() } else { numbered::kind(&step.name) };
        groups.entry((step.label.is_none(), step.label, name)).or_default().push(step);
    }
    let view = |((_, label, annotation), steps): ((bool, Option<StepLabel>, String), Vec<&StepSummary>)| {
        let sum = |of: fn(&StepBatch) -> Option<u64>| -> Option<u64> {
            let sum: Option<Count> = steps.iter().map(|step| step.batch.as_ref().and_then(of)).sum();
            sum.map(Count::get)
        };
        let tokens = sum(|batch| batch.tokens);
        let count = steps.len() as u64;
        let device_ns: Nanos = steps.iter().map(|step| step.device_ns).sum();
        let roofline: Option<Nanos> = steps.iter().map(|step| step.work?.roofline_ns).sum();
        EngineStepsView {
            label,
            annotation,
            steps: count,
            prompts: sum(|batch| Some(batch.context.sequences)),
            sequences: sum(|batch| Some(batch.generation.sequences)),
            tokens,
            device_ns,
            mean_ns: mean(device_ns, count),
            tokens_per_second: tokens.and_then(|tokens| tokens_per_second(metrics, label, tokens, &steps)),
            roofline_mean_ns: roofline.and_then(|roofline| mean(roofline, count)),
        }
    };
    groups.into_iter().map(view).collect()
}

/// Tokens per second of wall time. Steps that make up a stage have its rate, so that a run has one figure for each.
fn tokens_per_second(metrics: &Metrics, label: Option<StepLabel>, tokens: u64, steps: &[&StepSummary]) -> Option<f64> {
    // Steps whose kernels were cut off are longer than they seem.
    let is_cut = |counter: &QualityCounter| counter.counter == CUT_OFF && counter.severity == Severity::Error;
    if metrics.conclusions.quality.iter().any(is_cut) {
        return None;
    }
    let rates = &metrics.times.throughput;
    let wall: Nanos = steps.iter().map(|step| step.wall_ns).sum();
    match label {
        Some(StepLabel::Prefill) => rates.prefill_tokens_per_second,
        Some(StepLabel::Decode) => rates.decode_tokens_per_second,
        _ => share(tokens as f64 * 1e9, wall.get() as f64),
    }
}

fn stage_view<'a>(metrics: &'a Metrics, stage: &'a StageSummary) -> StageView<'a> {
    let of = |part: Option<Nanos>, whole: Option<Nanos>| time_share(part?, whole?);
    let variance = &metrics.times.variance;
    let pass = metrics.conditions.trace.as_ref().and_then(|facts| facts.traced_pass.as_ref());
    let profiled_ns = pass.and_then(|pass| pass.stages.get(&stage.name)).copied();
    StageView {
        stage,
        times: metrics.times.aggregates.stage_ms.get(&stage.name),
        run_share: of(stage.wall_ns, metrics.times.totals.wall_ns),
        busy_share: busy_share(metrics, stage.gpu_busy_ns, stage.wall_ns),
        efficiency: of(stage.speed_of_light_ns, stage.wall_ns),
        repeat_cv: variance.repeat_cv_per_stage.get(&stage.name).copied().flatten(),
        input_cv: variance.input_cv_per_stage.get(&stage.name).copied().flatten(),
        profiled_ns,
        profiled_busy_share: of(stage.gpu_busy_ns, profiled_ns),
    }
}

/// Busy times of several devices are summed, so there is as much time as there are devices.
fn busy_share(metrics: &Metrics, busy: Option<Nanos>, wall: Option<Nanos>) -> Option<f64> {
    share(busy?.get() as f64, wall?.get() as f64 * metrics.devices.len().max(1) as f64)
}

fn forward_pass(metrics: &Metrics) -> Option<f64> {
    let generates = metrics.conditions.inputs.iter().any(|input| input.generated_tokens > 0);
    let prefill = metrics.times.aggregates.stage_ms.get(&Stage::Prefill)?;
    (!generates && !metrics.conditions.inputs.is_empty()).then_some(prefill.median)
}

fn next_steps(metrics: &Metrics) -> Vec<NextStep<'_>> {
    let open = metrics.conclusions.quality.iter().find(|counter| counter.counter == NO_UTILISATION);
    let timed = metrics.times.stages.iter().filter(|stage| stage.wall_ns.is_some()).count() as u64;
    let stages = |open: u64| (open < timed).then_some((open, timed));
    let utilisation =
        open.map(|counter| NextStep::Utilisation { remedy: &counter.remedy, stages: stages(counter.value) });
    let mut steps: Vec<_> = utilisation.into_iter().collect();
    let Some(coverage) = metrics.conditions.trace.as_ref().and_then(|facts| facts.coverage.as_ref()) else {
        return steps;
    };
    // Only a run that generates text has prefill and decode to mark, and an engine marks its own.
    let kind = metrics.conditions.trace.as_ref().and_then(|facts| facts.kind.as_ref());
    let generates = kind.is_none_or(|kind| matches!(kind.kind, RunKindName::Generation | RunKindName::Inference));
    if metrics.times.stages.is_empty() {
        steps.extend((generates || metrics.run.model.is_some()).then_some(NextStep::MarkStages));
    } else if !generates {
        return steps;
    } else if let Some(unplaced) = coverage.unattributed_share.filter(|unplaced| *unplaced > UNPLACED) {
        steps.push(NextStep::MarkRest(unplaced));
    }
    steps
}
