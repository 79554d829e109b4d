//! The forecast of a pass: its kernels one behind the other, and the launches between them.

use std::collections::BTreeMap;

use meter::OpRecord;
use network::Module;
use types::{AttentionKind, Contribution, ExecutionMode, Hardware, LaunchCost, Nanos};

use crate::estimator::Basis;
use crate::kernels::{fuses, kernels};
use crate::prior;
use crate::replay::{Launched, replay};
use crate::times::{Operation, Times};
use crate::{Family, ForecastError, OpShape};

/// What a pass may take below and above the sum of its kernels, beside what each of them errs by: a framework launches some
/// more, and others, than the model says. Set so that it holds the passes of decoders measured on an H200.
const MODEL_ERROR: [f64; 2] = [0.1, 0.3];

/// Errors of one calibration go the same way to this part; the rest cancels between shapes.
const SHARED_ERROR: f64 = 0.3;

/// Least and most that launches may cost as a share of what was measured. On the shared host of an H200, eager decode steps
/// took 0.8 to 3.8 times what launches of a small decoder had just been timed at.
const LAUNCH_MEASURED: [f64; 2] = [0.6, 3.5];

/// The same where the cost is assumed.
const LAUNCH_ASSUMED: [f64; 2] = [0.4, 3.0];

/// Contributions that are named.
const NAMED: usize = 3;

/// How a model is run.
pub(crate) struct Framework<'a> {
    pub(crate) times: &'a Times<'a>,
    pub(crate) mode: ExecutionMode,
    pub(crate) attention: AttentionKind,
    pub(crate) launch: Launches,
}

/// What launches cost, and between which shares of it.
#[derive(Clone, Copy)]
pub(crate) struct Launches {
    pub(crate) cost: LaunchCost,
    bounds: [f64; 2],
}

impl Launches {
    /// As measured, or as assumed of such a device.
    pub(crate) fn new(measured: Option<LaunchCost>, hardware: &Hardware) -> Self {
        match measured {
            Some(cost) => Self { cost, bounds: LAUNCH_MEASURED },
            None => Self { cost: assumed_launch(hardware), bounds: LAUNCH_ASSUMED },
        }
    }
}

/// A processor runs operations as function calls.
fn assumed_launch(hardware: &Hardware) -> LaunchCost {
    let is_gpu = !hardware.nvml_names.is_empty() || hardware.compute_capability.is_some();
    if is_gpu { prior::LAUNCH } else { LaunchCost { eager_us: 0.0, graph_us: 0.0, synchronise_us: 0.0 } }
}

/// One operation in the forecast of a pass.
pub(crate) struct TimedOp {
    pub(crate) module: Module,
    pub(crate) name: &'static str,
    /// What it adds, its waits included; microseconds.
    pub(crate) added: f64,
    pub(crate) device: f64,
}

/// A pass, or all decode steps.
#[derive(Default)]
pub(crate) struct PassForecast {
    pub(crate) ops: Vec<TimedOp>,
    /// Sum of counts and widths by shape: errors of one shape go together.
    widths: BTreeMap<Operation, [f64; 2]>,
    pub(crate) device: f64,
    pub(crate) calibrated: f64,
    pub(crate) kernels: f64,
    pub(crate) far: bool,
    /// Total with launches as cheap, and as dear, as they may be.
    launch_bounds: [f64; 2],
}

impl PassForecast {
    /// Adds a pass, `weight` times; its attention sees `more` keys than were metered.
    pub(crate) fn add(
        &mut self,
        records: &[&OpRecord],
        more: u64,
        weight: f64,
        framework: &Framework<'_>,
    ) -> Result<(), ForecastError> {
        let Framework { times, mode, launch, .. } = *framework;
        let host = if mode == ExecutionMode::Graph { 0.0 } else { launch.cost.eager_us };
        let (mut launched, mut owners) = (Vec::new(), Vec::new());
        let mut before_fuses = false;
        let mut groups = Vec::new();
        for record in records {
            let fusable = mode == ExecutionMode::Compiled && fuses(&record.op);
            for group in kernels(record, more, framework.attention, mode, fusable && before_fuses) {
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

    /// The whole time.
    pub(crate) fn total(&self) -> f64 {
        self.ops.iter().map(|op| op.added).sum()
    }

    /// Time in which the device waits for launches.
    pub(crate) fn gaps(&self) -> f64 {
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

    /// Time of the kernels, with its bounds.
    pub(crate) fn device_range(&self) -> [f64; 3] {
        let [below, above] = self.device_widths();
        [self.device, (self.device - below).max(0.0), self.device + above]
    }

    /// The whole time and `extra`, with its bounds.
    pub(crate) fn range(&self, extra: f64) -> [f64; 3] {
        let (total, [below, above]) = (self.total() + extra, self.widths());
        [total, (total - below).max(0.0), total + above]
    }

    /// Its largest parts.
    pub(crate) fn contributions(&self) -> Vec<Contribution> {
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

fn label(shape: &OpShape, record: &OpRecord) -> &'static str {
    match shape.family {
        Family::Elementwise => record.op.name(),
        family => family.name(),
    }
}

/// Whole nanoseconds.
pub(crate) fn nanos(microseconds: f64) -> Nanos {
    Nanos::new((microseconds * 1e3).round() as i64)
}
