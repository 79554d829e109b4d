//! The forecast of a metered workload: kernels of every operation, their times, and the launches between them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use meter::{OpRecord, Prediction};
use network::{Model, Module, Repetition};
use types::{
    AnalyticReport, Contribution, DType, DeviceCalibration, ExecutionMode, Forecast, ForecastRange, ForecastTime,
    Hardware, LaunchCost, ModeForecast, Nanos, Origin, Stage, Workload,
};

use crate::estimator::{Basis, Estimate};
use crate::kernels::{fuses, kernels};
use crate::prior;
use crate::replay::{Launched, replay};
use crate::{Estimator, Family, ForecastError, OpShape};

/// Mode of the forecasts beside stages and modules: what a framework does unless told otherwise.
const USUAL: ExecutionMode = ExecutionMode::Eager;

/// Time in which a device that multiplies reaches its power limit, microseconds: half of the slowdown is there after it.
const POWER_US: f64 = 100_000.0;

/// What a pass may take below and above the sum of its kernels, beside what each of them errs by: a framework launches some
/// more, and others, than the model says. Set so that it holds the passes of decoders measured on an H200.
const MODEL_ERROR: [f64; 2] = [0.1, 0.3];

/// Errors of one calibration go the same way to this part; the rest cancels between shapes.
const SHARED_ERROR: f64 = 0.3;

/// Least and most that launches may cost as a share of what was measured: code around a model differs from the modules
/// that were timed.
const LAUNCH_MEASURED: [f64; 2] = [0.7, 1.5];

/// The same where the cost is assumed: slow hosts take four times as long as fast ones.
const LAUNCH_ASSUMED: [f64; 2] = [0.4, 3.0];

/// Contributions that are named.
const NAMED: usize = 3;

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

/// An operation: its family, element type and shape.
type Operation = (Family, DType, Vec<u64>);

/// Shapes and their times, each estimated once.
struct Times<'a> {
    hardware: &'a Hardware,
    estimator: Option<Estimator<'a>>,
    known: RefCell<HashMap<Operation, Estimate>>,
    sustained: f64,
}

/// One operation in the forecast of a pass.
struct TimedOp {
    module: Module,
    name: &'static str,
    /// What it adds, its waits included; microseconds.
    added: f64,
    device: f64,
}

/// A pass, or all decode steps.
#[derive(Default)]
struct PassForecast {
    ops: Vec<TimedOp>,
    /// Sum of counts and widths by shape: errors of one shape go together.
    widths: BTreeMap<(Family, DType, Vec<u64>), [f64; 2]>,
    device: f64,
    calibrated: f64,
    kernels: f64,
    far: bool,
    /// Total with launches as cheap, and as dear, as they may be.
    launch_bounds: [f64; 2],
}

/// What launches cost, and between which shares of it.
#[derive(Clone, Copy)]
struct Launches {
    cost: LaunchCost,
    bounds: [f64; 2],
}

/// Puts the forecast beside the roofline in `report`.
pub fn forecast(report: &mut AnalyticReport, subject: &Subject<'_>) -> Result<(), ForecastError> {
    let estimator = subject.calibration.map(|stored| Estimator::new(stored, subject.hardware)).transpose()?;
    let sustained = subject.calibration.and_then(|stored| stored.sustained).unwrap_or(1.0).max(1.0);
    let times = Times { hardware: subject.hardware, estimator, known: RefCell::default(), sustained };
    let launch = subject.calibration.and_then(|stored| stored.launch);
    let mut modes = Vec::new();
    let mut notes: Vec<String> = subject.note.map(str::to_owned).into_iter().collect();
    let (mut share, mut far) = (0.0, false);
    for mode in [ExecutionMode::Eager, ExecutionMode::Compiled, ExecutionMode::Graph] {
        let launches = match launch {
            Some(cost) => Launches { cost, bounds: LAUNCH_MEASURED },
            None => Launches { cost: assumed_launch(subject.hardware), bounds: LAUNCH_ASSUMED },
        };
        let prefill = prefill(subject, &times, mode, launches)?;
        let decode = decode(subject, &times, mode, launches)?;
        if mode == USUAL {
            let device = prefill.device + decode.device;
            share = if device > 0.0 { (prefill.calibrated + decode.calibrated) / device } else { 0.0 };
            far = prefill.far || decode.far;
            lay_beside(report, subject, &prefill, &decode);
        }
        modes.push(summary(mode, &prefill, &decode, subject, launches.cost));
    }
    if launch.is_none() {
        notes.push("the cost of launches was not measured: it is assumed".to_owned());
    }
    if far {
        notes.push("some shapes lie more than two octaves outside those measured".to_owned());
    }
    let measured = share >= CALIBRATED && launch.is_some();
    report.forecast = Some(Forecast {
        origin: if measured { Origin::Modelled } else { Origin::Assumed },
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

/// A processor runs operations as function calls.
fn assumed_launch(hardware: &Hardware) -> LaunchCost {
    let is_gpu = !hardware.nvml_names.is_empty() || hardware.compute_capability.is_some();
    if is_gpu { prior::LAUNCH } else { LaunchCost { eager_us: 0.0, graph_us: 0.0, synchronise_us: 0.0 } }
}

fn prefill(
    subject: &Subject<'_>,
    times: &Times<'_>,
    mode: ExecutionMode,
    launch: Launches,
) -> Result<PassForecast, ForecastError> {
    let mut sum = PassForecast::default();
    let records: Vec<&OpRecord> = subject.prediction.prefill.ops.iter().collect();
    sum.add(&records, 0, 1.0, subject.workload, times, mode, launch)?;
    Ok(sum)
}

/// All steps, by Simpson's rule over the first, the middle and the last: times are smooth in the length of the cache.
fn decode(
    subject: &Subject<'_>,
    times: &Times<'_>,
    mode: ExecutionMode,
    launch: Launches,
) -> Result<PassForecast, ForecastError> {
    let mut sum = PassForecast::default();
    let Some(decode) = &subject.prediction.decode else { return Ok(sum) };
    let records: Vec<&OpRecord> = decode.ops.iter().map(|op| &op.record).collect();
    let (steps, last) = (decode.steps as f64, decode.steps.saturating_sub(1));
    let parts: &[(u64, f64)] = match last {
        0 => &[(0, 1.0)],
        _ => &[(0, 1.0 / 6.0), (last / 2, 4.0 / 6.0), (last, 1.0 / 6.0)],
    };
    for (step, weight) in parts {
        sum.add(&records, *step, weight * steps, subject.workload, times, mode, launch)?;
    }
    Ok(sum)
}

impl PassForecast {
    /// Adds a pass, `weight` times.
    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        records: &[&OpRecord],
        more: u64,
        weight: f64,
        workload: &Workload,
        times: &Times<'_>,
        mode: ExecutionMode,
        launch: Launches,
    ) -> Result<(), ForecastError> {
        let host = if mode == ExecutionMode::Graph { 0.0 } else { launch.cost.eager_us };
        let (mut launched, mut owners) = (Vec::new(), Vec::new());
        let mut before_fuses = false;
        let mut groups = Vec::new();
        for record in records {
            let fusable = mode == ExecutionMode::Compiled && fuses(&record.op);
            for group in kernels(record, more, workload.attention, mode, fusable && before_fuses) {
                let (estimate, key) = times.of(&group.shape)?;
                groups.push((*record, group, estimate, key));
            }
            before_fuses = fusable;
        }
        let whole: f64 = groups.iter().map(|(_, group, estimate, _)| estimate.microseconds * group.count).sum();
        let slower = times.sustained(whole);
        for (record, group, estimate, key) in groups {
            let slower = if group.shape.is_compute_bound(times.hardware)? { slower } else { 1.0 };
            let estimate = estimate.times(slower);
            let device = estimate.microseconds * group.count;
            let count = group.count * weight;
            self.device += device * weight;
            self.kernels += count;
            self.far |= estimate.basis == Basis::Extrapolated;
            if estimate.basis != Basis::Assumed {
                self.calibrated += device * weight;
            }
            let width = self.widths.entry(key).or_default();
            width[0] += (estimate.microseconds - estimate.low) * count;
            width[1] += (estimate.high - estimate.microseconds) * count;
            launched.push(Launched { device_us: device, host_us: host * group.count });
            owners.push((record.module, label(&group.shape, record), device));
        }
        if let Some(first) = launched.first_mut().filter(|_| mode == ExecutionMode::Graph) {
            first.host_us = launch.cost.eager_us;
        }
        for (bound, share) in self.launch_bounds.iter_mut().zip(launch.bounds) {
            let scaled = launched.iter().map(|kernel| Launched { host_us: kernel.host_us * share, ..*kernel });
            *bound += replay(scaled).iter().sum::<f64>() * weight;
        }
        for (added, (module, name, device)) in replay(launched).into_iter().zip(owners) {
            self.ops.push(TimedOp { module, name, added: added * weight, device: device * weight });
        }
        Ok(())
    }

    fn total(&self) -> f64 {
        self.ops.iter().map(|op| op.added).sum()
    }

    fn gaps(&self) -> f64 {
        self.ops.iter().map(|op| op.added - op.device).sum::<f64>().max(0.0)
    }

    /// Half-widths of the device time below and above: shapes err alone, and all of them a little together.
    fn device_widths(&self) -> [f64; 2] {
        [0, 1].map(|side| {
            let together: f64 = self.widths.values().map(|width| width[side]).sum();
            let alone = self.widths.values().map(|width| width[side] * width[side]).sum::<f64>().sqrt();
            alone.max(SHARED_ERROR * together).max(MODEL_ERROR[side] * self.device)
        })
    }

    /// The same with what launches may cost.
    fn widths(&self) -> [f64; 2] {
        let device = self.device_widths();
        [0, 1].map(|side| device[side] + (self.launch_bounds[side] - self.total()).abs())
    }

    fn device_range(&self) -> [f64; 3] {
        let [below, above] = self.device_widths();
        [self.device, (self.device - below).max(0.0), self.device + above]
    }

    fn range(&self, extra: f64) -> [f64; 3] {
        let (total, [below, above]) = (self.total() + extra, self.widths());
        [total, (total - below).max(0.0), total + above]
    }

    fn contributions(&self) -> Vec<Contribution> {
        let total = self.total();
        let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
        for op in &self.ops {
            *parts.entry(op.name).or_default() += op.device;
        }
        parts.insert("launch gaps", self.gaps());
        let mut parts: Vec<_> = parts.into_iter().filter(|(_, time)| *time > 0.0 && total > 0.0).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named = parts.into_iter().take(NAMED);
        let contribution = |(name, time): (&str, f64)| Contribution {
            name: name.to_owned(),
            time_ns: nanos(time),
            share: (time / total).clamp(0.0, 1.0),
        };
        named.map(contribution).collect()
    }
}

impl Times<'_> {
    /// How many times as long GEMMs take in a pass of so many microseconds as in a burst.
    fn sustained(&self, whole: f64) -> f64 {
        1.0 + (self.sustained - 1.0) * whole / (whole + POWER_US)
    }

    #[allow(clippy::type_complexity)]
    fn of(&self, shape: &OpShape) -> Result<(Estimate, (Family, DType, Vec<u64>)), ForecastError> {
        let key = (shape.family, shape.dtype, shape.sizes.iter().map(|size| size.to_bits()).collect::<Vec<_>>());
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok((*known, key));
        }
        let estimate = self.estimate(shape)?;
        self.known.borrow_mut().insert(key.clone(), estimate);
        Ok((estimate, key))
    }

    /// From the calibration, or from the nearest thing it has.
    fn estimate(&self, shape: &OpShape) -> Result<Estimate, ForecastError> {
        let Some(estimator) = &self.estimator else { return prior::assume(shape, self.hardware) };
        if estimator.knows(shape.family, shape.dtype) {
            return estimator.estimate(shape);
        }
        // Kernels that only move memory take as long in any element type.
        if matches!(shape.family, Family::Elementwise | Family::Copy) {
            let other = DType::ALL.into_iter().find(|dtype| estimator.knows(shape.family, *dtype));
            if let Some(dtype) = other {
                return estimator.estimate(&OpShape { dtype, ..shape.clone() });
            }
        }
        // Half-precision types run at one rate.
        let twin = match shape.dtype {
            DType::Bf16 => Some(DType::Fp16),
            DType::Fp16 => Some(DType::Bf16),
            _ => None,
        };
        match twin.filter(|dtype| estimator.knows(shape.family, *dtype)) {
            Some(dtype) => estimator.estimate(&OpShape { dtype, ..shape.clone() }),
            None => prior::assume(shape, self.hardware),
        }
    }
}

fn label(shape: &OpShape, record: &OpRecord) -> &'static str {
    match shape.family {
        Family::Elementwise => record.op.name(),
        family => family.name(),
    }
}

fn nanos(microseconds: f64) -> Nanos {
    Nanos::new((microseconds * 1e3).round() as i64)
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
