//! The forecast of a pass: its kernels one behind the other, and the launches between them.

use std::collections::BTreeMap;

use meter::Message;
use network::Module;
use types::{Contribution, ExecutionMode, FamilyForecast, Nanos, Stage};

use crate::ForecastError;
use crate::call::Call;
use crate::collective::collective;
use crate::estimator::{Basis, Estimate};
use crate::kernels::{Style, fuses, is_laid_out, kernels};
use crate::launch::Launches;
use crate::replay::{Block, Launched, blocks, replay};
use crate::times::{Operation, Times};

/// What a pass may take below and above the sum of its kernels, beside what each of them errs by: a framework launches some
/// more, and others, than the model says. Set so that it holds the passes of decoders measured on an H200.
const MODEL_ERROR: [f64; 2] = [0.1, 0.3];

/// Errors of one calibration go the same way to this part; the rest cancels between shapes.
pub(crate) const SHARED_ERROR: f64 = 0.3;

/// Contributions that are named.
const NAMED: usize = 3;

/// How a model is run.
pub(crate) struct Framework<'a> {
    pub(crate) times: &'a Times<'a>,
    pub(crate) style: Style,
    pub(crate) launch: Launches,
}

/// One operation of a pass.
#[derive(Clone, Copy)]
pub(crate) struct PassOp<'a> {
    pub(crate) call: Call<'a>,
    /// Where it belongs; absent in sums.
    pub(crate) module: Option<Module>,
    /// How many layers do it.
    pub(crate) repeats: u64,
}

/// One operation in the forecast of a pass.
pub(crate) struct TimedOp {
    pub(crate) module: Module,
    pub(crate) name: &'static str,
    /// Family of its kernels: `gemm`, `attention`, `communication` or `other`.
    pub(crate) family: &'static str,
    /// What it adds, its waits included; microseconds.
    pub(crate) added: f64,
    pub(crate) device: f64,
}

/// Kernels of one operation and shape.
struct Group<'a> {
    op: PassOp<'a>,
    name: &'static str,
    family: &'static str,
    estimate: Estimate,
    key: Operation,
    count: f64,
    compute_bound: bool,
}

/// A pass, or all decode steps.
#[derive(Default)]
pub(crate) struct PassForecast {
    pub(crate) ops: Vec<TimedOp>,
    /// Sum of counts and widths by shape: errors of one shape go together.
    widths: BTreeMap<Operation, [f64; 2]>,
    /// Widths of what devices send to each other, which err together.
    sent_widths: [f64; 2],
    pub(crate) device: f64,
    pub(crate) calibrated: f64,
    pub(crate) kernels: f64,
    pub(crate) far: bool,
    /// The whole time.
    pub(crate) total: f64,
    /// Total with launches as cheap, and as dear, as they may be.
    launch_bounds: [f64; 2],
}

impl PassForecast {
    /// Adds a pass, `weight` times; its attention sees `more` keys than were metered.
    pub(crate) fn add(
        &mut self,
        ops: &[PassOp<'_>],
        messages: &[Message],
        more: u64,
        weight: f64,
        framework: &Framework<'_>,
    ) -> Result<(), ForecastError> {
        let Framework { style: Style { mode, .. }, launch, .. } = *framework;
        let host = if mode == ExecutionMode::Graph { 0.0 } else { launch.cost.eager_us };
        let groups = self.timed(ops, more, weight, framework)?;
        let mut launched: Vec<(Launched, u64)> = groups
            .iter()
            .map(|group| {
                let kernel =
                    Launched { device_us: group.estimate.microseconds * group.count, host_us: host * group.count };
                (kernel, group.op.repeats)
            })
            .collect();
        let mut owners: Vec<_> = groups.iter().map(|group| (group.op.module, group.name, group.family)).collect();
        for message in messages {
            let sent = collective(message, framework.times.hardware);
            let (device_us, count) = (sent.microseconds, message.count as f64);
            self.device += device_us * count * weight;
            self.kernels += count * weight;
            self.sent_widths[0] += (device_us - sent.low) * count * weight;
            self.sent_widths[1] += (sent.high - device_us) * count * weight;
            launched.push((Launched { device_us: device_us * count, host_us: host * count }, 1));
            owners.push((Some(message.module), message.collective.name(), "communication"));
        }
        if let Some((first, _)) = launched.first_mut().filter(|_| mode == ExecutionMode::Graph) {
            first.host_us = launch.cost.eager_us;
        }
        // Sums have no modules: what repeats is replayed as a block.
        let in_blocks = ops.iter().any(|op| op.module.is_none());
        let whole = |share: f64| {
            let scaled = launched
                .iter()
                .map(|(kernel, repeats)| (Launched { host_us: kernel.host_us * share, ..*kernel }, *repeats));
            if in_blocks {
                Block::total(&blocks(scaled))
            } else {
                replay(scaled.map(|(kernel, _)| kernel)).iter().sum::<f64>()
            }
        };
        for (bound, share) in self.launch_bounds.iter_mut().zip(launch.bounds) {
            *bound += whole(share) * weight;
        }
        if in_blocks {
            self.total += whole(1.0) * weight;
            return Ok(());
        }
        let added = replay(launched.iter().map(|(kernel, _)| *kernel));
        for ((added, (kernel, _)), (module, name, family)) in added.into_iter().zip(&launched).zip(owners) {
            self.total += added * weight;
            let device = kernel.device_us * weight;
            self.ops.extend(module.map(|module| TimedOp { module, name, family, added: added * weight, device }));
        }
        Ok(())
    }

    /// Kernels of `ops` with their times, added to the sums.
    fn timed<'a>(
        &mut self,
        ops: &[PassOp<'a>],
        more: u64,
        weight: f64,
        framework: &Framework<'_>,
    ) -> Result<Vec<Group<'a>>, ForecastError> {
        let Framework { times, style, .. } = *framework;
        let (mut before, mut before_fuses) = (None, false);
        let mut groups: Vec<Group<'a>> = Vec::with_capacity(2 * ops.len());
        for op in ops {
            let call = &op.call;
            if is_laid_out(before.replace(call.op), call.op, style.attention) {
                continue;
            }
            let fusable = style.mode == ExecutionMode::Compiled && fuses(call.op);
            for kernels in kernels(call, more, style, fusable && before_fuses) {
                let (estimate, key) = times.of(&kernels.shape)?;
                let name = if kernels.shape.family.moves() { call.op.name() } else { kernels.shape.family.name() };
                let compute_bound = kernels.shape.is_compute_bound(times.hardware)?;
                let family = kernels.shape.family.kernels();
                groups.push(Group { op: *op, name, family, estimate, key, count: kernels.count, compute_bound });
            }
            before_fuses = fusable;
        }
        let time = |group: &Group<'_>| group.estimate.microseconds * group.count * group.op.repeats as f64;
        let slower = times.sustained(groups.iter().map(time).sum());
        for group in &mut groups {
            if group.compute_bound {
                group.estimate = group.estimate.times(slower);
            }
            let estimate = group.estimate;
            let count = group.count * group.op.repeats as f64 * weight;
            let device = estimate.microseconds * count;
            self.device += device;
            self.kernels += count;
            self.far |= estimate.basis == Basis::Extrapolated;
            if estimate.basis != Basis::Assumed {
                self.calibrated += device;
            }
            let width = self.widths.entry(group.key).or_default();
            width[0] += (estimate.microseconds - estimate.low) * count;
            width[1] += (estimate.high - estimate.microseconds) * count;
        }
        Ok(groups)
    }

    /// Time in which the device waits for launches.
    pub(crate) fn gaps(&self) -> f64 {
        (self.total - self.device).max(0.0)
    }

    /// Half-widths of the device time below and above: shapes err alone, and all of them a little together.
    fn device_widths(&self) -> [f64; 2] {
        [0, 1].map(|side| {
            let together: f64 = self.widths.values().map(|width| width[side]).sum();
            let alone = self.widths.values().map(|width| width[side] * width[side]).sum::<f64>().sqrt();
            let kernels = alone.max(SHARED_ERROR * together).max(MODEL_ERROR[side] * self.device);
            kernels + self.sent_widths[side]
        })
    }

    /// The same with what launches may cost.
    fn widths(&self) -> [f64; 2] {
        let device = self.device_widths();
        [0, 1].map(|side| device[side] + (self.launch_bounds[side] - self.total).abs())
    }

    /// Time of the kernels, with its bounds.
    pub(crate) fn device_range(&self) -> [f64; 3] {
        let [below, above] = self.device_widths();
        [self.device, (self.device - below).max(0.0), self.device + above]
    }

    /// The whole time and `extra`, with its bounds.
    pub(crate) fn range(&self, extra: f64) -> [f64; 3] {
        let (total, [below, above]) = (self.total + extra, self.widths());
        [total, (total - below).max(0.0), total + above]
    }

    /// Device time by family of kernels.
    pub(crate) fn families(&self, stage: Stage) -> Vec<FamilyForecast> {
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for op in &self.ops {
            *sums.entry(op.family).or_default() += op.device;
        }
        let of = |(family, time): (&str, f64)| FamilyForecast {
            stage: stage.name().to_owned(),
            family: family.to_owned(),
            device_ns: nanos(time),
        };
        sums.into_iter().map(of).collect()
    }

    /// Its largest parts.
    pub(crate) fn contributions(&self) -> Vec<Contribution> {
        let total = self.total;
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

/// Whole nanoseconds.
pub(crate) fn nanos(microseconds: f64) -> Nanos {
    Nanos::new((microseconds * 1e3).round() as i64)
}
