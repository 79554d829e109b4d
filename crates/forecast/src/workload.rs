//! The forecast of a metered workload: kernels of every operation, their times, and the launches between them.

use std::collections::HashMap;

use meter::{OpRecord, Prediction};
use network::{Model, Module, Repetition};
use types::{
    AnalyticReport, DeviceCalibration, ExecutionMode, Forecast, ForecastRange, ForecastTime, Hardware, LaunchCost,
    ModeForecast, Origin, Stage, Workload,
};

use crate::ForecastError;
use crate::pass::{Framework, Launches, PassForecast, TimedOp, nanos};
use crate::times::Times;

/// Mode of the forecasts beside stages and modules: what a framework does unless told otherwise.
const USUAL: ExecutionMode = ExecutionMode::Eager;

/// Below this share of calibrated time a forecast is called assumed.
const CALIBRATED: f64 = 0.8;

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
    let mut modes = Vec::new();
    let mut notes: Vec<String> = subject.note.map(str::to_owned).into_iter().collect();
    let (mut share, mut far) = (0.0, false);
    for mode in [ExecutionMode::Eager, ExecutionMode::Compiled, ExecutionMode::Graph] {
        let framework = Framework { times: &times, mode, attention: subject.workload.attention, launch };
        let prefill = prefill(subject, &framework)?;
        let decode = decode(subject, &framework)?;
        if mode == USUAL {
            let device = prefill.device + decode.device;
            share = if device > 0.0 { (prefill.calibrated + decode.calibrated) / device } else { 0.0 };
            far = prefill.far || decode.far;
            lay_beside(report, subject, &prefill, &decode);
        }
        modes.push(summary(mode, &prefill, &decode, subject, launch.cost));
    }
    if measured.is_none() {
        notes.push("the cost of launches was not measured: it is assumed".to_owned());
    }
    if far {
        notes.push("some shapes lie more than two octaves outside those measured".to_owned());
    }
    let is_calibrated = share >= CALIBRATED && measured.is_some();
    report.forecast = Some(Forecast {
        origin: if is_calibrated { Origin::Modelled } else { Origin::Assumed },
        basis: basis(subject.calibration, share),
        calibrated_share: share,
        mode: USUAL,
        memory_bytes: report.memory.total_bytes,
        modes,
        notes,
    });
    Ok(())
}

fn basis(calibration: Option<&DeviceCalibration>, share: f64) -> String {
    match calibration {
        None => "70% of the matrix peak, 80% of the bandwidth; not calibrated".to_owned(),
        Some(stored) => {
            let points: usize = stored.groups.iter().map(|group| group.points.len()).sum();
            format!(
                "calibration of {} ({points} points, {}), which covers {:.0}% of the device time",
                stored.device,
                stored.measured_at.get(..10).unwrap_or(&stored.measured_at),
                share * 100.0
            )
        }
    }
}

fn prefill(subject: &Subject<'_>, framework: &Framework<'_>) -> Result<PassForecast, ForecastError> {
    let mut sum = PassForecast::default();
    let records: Vec<&OpRecord> = subject.prediction.prefill.ops.iter().collect();
    sum.add(&records, 0, 1.0, framework)?;
    Ok(sum)
}

/// All steps, by Simpson's rule over the first, the middle and the last: times are smooth in the length of the cache.
fn decode(subject: &Subject<'_>, framework: &Framework<'_>) -> Result<PassForecast, ForecastError> {
    let mut sum = PassForecast::default();
    let Some(decode) = &subject.prediction.decode else { return Ok(sum) };
    let records: Vec<&OpRecord> = decode.ops.iter().map(|op| &op.record).collect();
    let (steps, last) = (decode.steps as f64, decode.steps.saturating_sub(1));
    let parts: &[(u64, f64)] = match last {
        0 => &[(0, 1.0)],
        _ => &[(0, 1.0 / 6.0), (last / 2, 4.0 / 6.0), (last, 1.0 / 6.0)],
    };
    for (step, weight) in parts {
        sum.add(&records, *step, weight * steps, framework)?;
    }
    Ok(sum)
}

fn time([value, low, high]: [f64; 3]) -> ForecastTime {
    ForecastTime {
        forecast_ns: Some(nanos(value)),
        forecast_low_ns: Some(nanos(low)),
        forecast_high_ns: Some(nanos(high)),
    }
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
    let range = |[value, low, high]: [f64; 3]| ForecastRange { value, low, high };
    let per_step = (steps > 0.0).then(|| range(rest.map(|time| time / steps / 1e3)));
    let batch = subject.workload.batch as f64;
    let rate = |time: f64| if time > 0.0 { batch / (time / 1e3) } else { 0.0 };
    ModeForecast {
        mode,
        total: time([0, 1, 2].map(|index| first[index] + rest[index])),
        ttft_ms: range(first.map(|time| time / 1e3)),
        time_per_output_token_ms: per_step,
        decode_tokens_per_second: per_step.map(|time| ForecastRange {
            value: rate(time.value),
            low: rate(time.high),
            high: rate(time.low),
        }),
        prefill_device_ms: range(prefill.device_range().map(|time| time / 1e3)),
        decode_device_ms: (steps > 0.0).then(|| range(decode.device_range().map(|time| time / steps / 1e3))),
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
    let total = [part(prefill_range, prefill.total()), part(decode_range, decode.total())];
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
