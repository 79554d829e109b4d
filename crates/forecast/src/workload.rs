//! The forecast of a metered workload: kernels of every operation, their times, and the launches between them.

use std::collections::HashMap;

use meter::{OpRecord, Prediction};
use network::{Model, Module, Repetition};
use types::{
    AnalyticReport, DeviceCalibration, ExecutionMode, Forecast, ForecastRange, ForecastTime, Hardware, LaunchCost,
    ModeForecast, Origin, Stage, Workload,
};

use crate::ForecastError;
use crate::call::Call;
use crate::eager::Experts;
use crate::kernels::Style;
use crate::launch::Launches;
use crate::pass::{Framework, PassForecast, PassOp, TimedOp, nanos};
use crate::times::Times;

/// Mode of the forecasts beside stages and modules: what a framework does unless told otherwise.
const USUAL: ExecutionMode = ExecutionMode::Eager;

/// Below this share of calibrated time a forecast is called assumed.
const CALIBRATED: f64 = 0.8;

/// Said of a model on several devices.
const SENT: &str = "communication between devices was not measured: assumes 80% of the catalogue's link bandwidth and \
                    the latencies NCCL assumes";

/// What a forecast is about.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The network.
    pub model: &'a Model,
    /// The workload.
    pub workload: &'a Workload,
    /// What it costs.
    pub prediction: &'a Prediction,
    /// The device.
    pub hardware: &'a Hardware,
    /// Its calibration, where there is one that applies.
    pub calibration: Option<&'a DeviceCalibration>,
    /// Why there is none, where that is worth saying.
    pub note: Option<&'a str>,
}

/// Puts the forecast beside the roofline in `report`.
pub fn forecast(report: &mut AnalyticReport, subject: &Subject<'_>) -> Result<(), ForecastError> {
    let times = Times::new(subject.hardware, subject.calibration)?;
    let measured = subject.calibration.and_then(|stored| stored.launch);
    let launch = Launches::new(measured, subject.hardware);
    let (mut modes, mut kernel_families) = (Vec::new(), Vec::new());
    let mut notes: Vec<String> = subject.note.map(str::to_owned).into_iter().collect();
    let (mut share, mut far) = (0.0, false);
    for mode in [ExecutionMode::Eager, ExecutionMode::Compiled, ExecutionMode::Graph] {
        let style =
            Style { mode, attention: subject.workload.attention, experts: experts(subject.model, subject.hardware) };
        let framework = Framework { times: &times, style, launch };
        let prefill = prefill(subject, &framework)?;
        let decode = decode(subject, &framework)?;
        if mode == USUAL {
            let device = prefill.device + decode.device;
            share = if device > 0.0 { (prefill.calibrated + decode.calibrated) / device } else { 0.0 };
            far = prefill.far || decode.far;
            lay_beside(report, subject, &prefill, &decode);
            kernel_families = prefill.families(Stage::Prefill);
            kernel_families.extend(decode.families(Stage::Decode));
        }
        modes.push(summary(mode, &prefill, &decode, subject, launch.cost));
    }
    if measured.is_none() {
        notes.push("launch cost was not measured; it is assumed".to_owned());
    }
    if let Some(plan) = measured.and_then(|cost| cost.plan_us) {
        notes.push(format!(
            "sequence lengths are assumed to have been seen before: in eager mode, the first attention over a new \
             length costs the host {:.0} ms more",
            plan / 1e3
        ));
    }
    if !subject.prediction.prefill.messages.is_empty() {
        notes.push(SENT.to_owned());
    }
    if far {
        notes.push("some shapes are more than two octaves outside the measured ones".to_owned());
    }
    report.forecast = Some(Forecast {
        origin: origin(share, measured.is_some()),
        basis: basis_of_share(subject.calibration, share),
        calibrated_share: share,
        mode: USUAL,
        memory_bytes: report.memory.total_bytes,
        modes,
        kernel_families,
        notes,
    });
    Ok(())
}

/// How published code runs the experts of `model`. DeepSeek-OCR comes with its own, which loops; so does a processor.
pub(crate) fn experts(model: &Model, hardware: &Hardware) -> Experts {
    let is_gpu = !hardware.nvml_names.is_empty() || hardware.compute_capability.is_some();
    if matches!(model, Model::DeepseekOcr(_)) || !is_gpu { Experts::Looped } else { Experts::Grouped }
}

/// What forecasts rest on.
pub fn basis(calibration: Option<&DeviceCalibration>) -> String {
    match calibration {
        None => "70% of the matrix peak, 80% of the bandwidth; not calibrated".to_owned(),
        Some(stored) => {
            let points: usize = stored.groups.iter().map(|group| group.points.len()).sum();
            let day = stored.measured_at.get(..10).unwrap_or(&stored.measured_at);
            format!("calibration of {} ({points} points, {day})", stored.device)
        }
    }
}

/// The same with the share of the device time that it covers.
fn basis_of_share(calibration: Option<&DeviceCalibration>, share: f64) -> String {
    let covers = calibration.map(|_| format!(", which covers {:.0}% of the device time", share * 100.0));
    basis(calibration) + &covers.unwrap_or_default()
}

/// How a forecast was obtained, by the share of the device time that is calibrated.
pub(crate) fn origin(share: f64, launches_measured: bool) -> Origin {
    if share >= CALIBRATED && launches_measured { Origin::Modelled } else { Origin::Assumed }
}

fn recorded(record: &OpRecord) -> PassOp<'_> {
    PassOp { call: Call::from(record), module: Some(record.module), repeats: 1 }
}

fn prefill(subject: &Subject<'_>, framework: &Framework<'_>) -> Result<PassForecast, ForecastError> {
    let mut sum = PassForecast::default();
    let pass = &subject.prediction.prefill;
    let ops: Vec<PassOp<'_>> = pass.ops.iter().map(recorded).collect();
    sum.add(&ops, &pass.messages, 0, 1.0, framework)?;
    Ok(sum)
}

/// All steps, by Simpson's rule over the first, the middle and the last: times are smooth in the length of the cache.
fn decode(subject: &Subject<'_>, framework: &Framework<'_>) -> Result<PassForecast, ForecastError> {
    let mut sum = PassForecast::default();
    let Some(decode) = &subject.prediction.decode else { return Ok(sum) };
    let ops: Vec<PassOp<'_>> = decode.ops.iter().map(|op| recorded(&op.record)).collect();
    for (step, weight) in steps(decode.steps) {
        sum.add(&ops, &decode.first.messages, step, weight, framework)?;
    }
    Ok(sum)
}

/// Steps that stand for all of them, and for how many each.
pub(crate) fn steps(count: u64) -> Vec<(u64, f64)> {
    let (all, last) = (count as f64, count.saturating_sub(1));
    match last {
        0 => vec![(0, all)],
        _ => vec![(0, all / 6.0), (last / 2, all * 4.0 / 6.0), (last, all / 6.0)],
    }
}

fn time([value, low, high]: [f64; 3]) -> ForecastTime {
    ForecastTime {
        forecast_ns: Some(nanos(value)),
        forecast_low_ns: Some(nanos(low)),
        forecast_high_ns: Some(nanos(high)),
    }
}

/// From microseconds.
pub(crate) fn milliseconds(time: [f64; 3]) -> ForecastRange {
    let [value, low, high] = time.map(|time| time / 1e3);
    ForecastRange { value, low, high }
}

fn summary(
    mode: ExecutionMode,
    prefill: &PassForecast,
    decode: &PassForecast,
    subject: &Subject<'_>,
    launch: LaunchCost,
) -> ModeForecast {
    let steps = subject.prediction.decode.as_ref().map_or(0, |decode| decode.steps) as f64;
    // The host looks at the token of each pass before it starts the next.
    let first = prefill.range(launch.synchronise_us);
    let rest = decode.range(launch.synchronise_us * steps);
    let per_step = (steps > 0.0).then(|| milliseconds(rest.map(|time| time / steps)));
    let batch = subject.workload.batch as f64;
    let rate = |time: f64| if time > 0.0 { batch / (time / 1e3) } else { 0.0 };
    ModeForecast {
        mode,
        total: time([0, 1, 2].map(|index| first[index] + rest[index])),
        ttft_ms: milliseconds(first),
        time_per_output_token_ms: per_step,
        decode_tokens_per_second: per_step.map(|time| ForecastRange {
            value: rate(time.value),
            low: rate(time.high),
            high: rate(time.low),
        }),
        prefill_device_ms: milliseconds(prefill.device_range()),
        decode_device_ms: (steps > 0.0).then(|| milliseconds(decode.device_range().map(|time| time / steps))),
        launch_gaps_ns: nanos(prefill.gaps() + decode.gaps()),
        kernels: (prefill.kernels + decode.kernels).round() as u64,
        prefill_contributions: prefill.contributions(),
        decode_contributions: decode.contributions(),
    }
}

/// Times of stages and modules.
fn lay_beside(report: &mut AnalyticReport, subject: &Subject<'_>, prefill: &PassForecast, decode: &PassForecast) {
    let blueprint = subject.model.blueprint();
    // A part is as sure as the pass it belongs to, whose range is summed once and not for every operation.
    let part = |[total, low, high]: [f64; 3], added: f64| {
        if total > 0.0 { [added, added * low / total, added * high / total] } else { [0.0; 3] }
    };
    let (prefill_range, decode_range) = (prefill.range(0.0), decode.range(0.0));
    let sum = |pass: &PassForecast, of: &dyn Fn(&TimedOp) -> bool| {
        part(pass.range(0.0), pass.ops.iter().filter(|op| of(op)).map(|op| op.added).sum())
    };
    let vision = |op: &TimedOp| blueprint.stage_of(op.module).filter(|stage| *stage != Stage::Prefill);
    for (name, stage) in &mut report.stages {
        stage.forecast = time(match name.as_str() {
            "decode" => sum(decode, &|_| true),
            "prefill" => sum(prefill, &|_| true),
            "prefill_text" => sum(prefill, &|op| vision(op).is_none()),
            "vision" => sum(prefill, &|op| vision(op).is_some()),
            name => sum(prefill, &|op| vision(op).is_some_and(|stage| stage.name() == name)),
        });
    }
    let mut by_module: HashMap<String, [f64; 3]> = HashMap::new();
    let at_prefill = prefill.ops.iter().map(|op| (prefill_range, op));
    for (range, op) in at_prefill.chain(decode.ops.iter().map(|op| (decode_range, op))) {
        let times = part(range, op.added);
        for id in ids(subject.model, op.module) {
            let sum = by_module.entry(id).or_default();
            sum.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        }
    }
    for row in &mut report.module_metrics {
        row.forecast = time(by_module.get(&row.module_id).copied().unwrap_or_default());
    }
    let total = [part(prefill_range, prefill.total), part(decode_range, decode.total)];
    report.forecast_total = time([0, 1, 2].map(|index| total[0][index] + total[1][index]));
}

/// Names in the report of a module and of everything around it.
fn ids(model: &Model, module: Module) -> Vec<String> {
    let blueprint = model.blueprint();
    let mut names = Vec::new();
    let mut next = module;
    while let Some(parent) = blueprint.module(next).parent {
        let alike = blueprint.module(parent).repetition == Some(Repetition::Parallel);
        names.push(if alike { "*" } else { blueprint.module(next).name.as_str() });
        next = parent;
    }
    names.reverse();
    let around = (1..=names.len()).map(|count| names[..count].join("."));
    ["(root)".to_owned()].into_iter().chain(around).collect()
}
