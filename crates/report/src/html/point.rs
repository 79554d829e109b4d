//! Points of the roofline: stages, modules and operators with their modelled work, kernels and regions with what was counted.

use types::PeakUsed;
use types::view::RunView;

use super::documents::Documents;
use crate::pages::run::operators::OperatorSums;

/// Points of a kind drawn, those with most time first.
const POINTS: usize = 60;

/// Points below this share of the time only stretch the axes.
const LEAST_SHARE: f64 = 0.002;

/// What a point stands for; those that come last are drawn on top.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Operator,
    Module,
    Kernel,
    Region,
    Stage,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::Operator, Self::Module, Self::Kernel, Self::Region, Self::Stage];

    /// Its class in the style, which is also its key.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Operator => "p-operator",
            Self::Module => "p-module",
            Self::Kernel => "p-kernel",
            Self::Region => "p-region",
            Self::Stage => "p-stage",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operators by shape",
            Self::Module => "modules",
            Self::Kernel => "kernels, counted",
            Self::Region => "regions, counted",
            Self::Stage => "stages",
        }
    }

    /// What its share of the time is of.
    pub(super) const fn whole(self) -> &'static str {
        match self {
            Self::Operator => "of the operators' time",
            Self::Module => "of the time in stages",
            Self::Kernel => "of the kernel time of its stage",
            Self::Region => "of the profiled kernel time",
            Self::Stage => "of the run",
        }
    }
}

/// A point beneath the roof.
pub(super) struct Point {
    pub(super) name: String,
    /// FLOPs per byte.
    pub(super) intensity: f64,
    /// FLOP/s.
    pub(super) rate: f64,
    /// FLOP/s of the roof that it lies beneath.
    pub(super) roof: f64,
    /// Its share of the time, which is its size.
    pub(super) weight: Option<f64>,
    pub(super) kind: Kind,
}

/// Every point of a run, those that are drawn on top last.
pub(super) fn points(run: &RunView<'_>, documents: &Documents<'_>, peaks: &[&PeakUsed]) -> Vec<Point> {
    let highest = peaks.iter().map(|peak| peak.flops.get()).fold(0.0, f64::max);
    let mut points = operators(run, peaks);
    points.extend(modules(run));
    points.extend(counted(documents, highest));
    points.extend(stages(run));
    points
}

fn stages(run: &RunView<'_>) -> Vec<Point> {
    let used = &run.metrics.utilisation;
    let point = |view: &types::view::StageView<'_>| {
        let done = used.work_per_stage.get(&view.stage.name)?;
        Some(Point {
            name: view.stage.name.to_string(),
            intensity: done.flops_matrix.get() as f64 / done.bytes.get() as f64,
            rate: view.stage.mfu? * used.peak.as_ref()?.flops.get(),
            roof: used.peak.as_ref()?.flops.get(),
            weight: view.run_share,
            kind: Kind::Stage,
        })
    };
    run.stages.iter().filter_map(point).collect()
}

/// Each beneath the roof of its element type.
fn operators(run: &RunView<'_>, peaks: &[&PeakUsed]) -> Vec<Point> {
    let own = |dtype| peaks.iter().find(|peak| dtype == Some(peak.dtype)).map(|peak| peak.flops.get());
    let of_run = run.metrics.utilisation.peak.as_ref().map(|peak| peak.flops.get());
    let sums = OperatorSums::of(run.metrics);
    let point = |group: &types::ShapeGroup| {
        let bytes = group.bytes?.get() as f64;
        let dtype = group.dtype.map(|dtype| format!(" in {dtype}")).unwrap_or_default();
        Some(Point {
            name: format!("{} {:?}{dtype}", group.name, group.shapes),
            intensity: group.flops_matrix.get() as f64 / bytes,
            rate: group.flops_per_second?.get(),
            roof: own(group.dtype).or(of_run)?,
            weight: sums.shape_share(group),
            kind: Kind::Operator,
        })
    };
    largest(run.metrics.breakdown.operator_groups.by_shape.iter().filter_map(point).collect())
}

/// Modules of all layers together, or one by one where they are not summed.
fn modules(run: &RunView<'_>) -> Vec<Point> {
    let modules = if run.module_kinds.is_empty() {
        run.metrics.breakdown.modules.iter().collect()
    } else {
        run.module_kinds.clone()
    };
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let whole: f64 = top.filter_map(|view| view.profiled_ns.or(view.stage.wall_ns)).map(|time| time.get() as f64).sum();
    let roof = run.metrics.utilisation.peak.as_ref().map(|peak| peak.flops.get());
    let point = |module: &types::ModuleSummary| {
        let (work, time) = (module.work?, module.measured_ns?.get() as f64);
        Some(Point {
            name: format!("{} ({}), {}", module.path, module.class, module.stage),
            intensity: work.flops_matrix.get() as f64 / work.bytes.get() as f64,
            rate: work.flops_matrix.get() as f64 / (time / 1e9),
            roof: roof?,
            weight: (whole > 0.0).then(|| (time / whole).min(1.0)),
            kind: Kind::Module,
        })
    };
    largest(modules.into_iter().filter(|module| !module.path.is_empty()).filter_map(point).collect())
}

/// Kernels and regions whose counters were read.
fn counted(documents: &Documents<'_>, roof: f64) -> Vec<Point> {
    let kernels = documents.kernels.map(|report| report.sampled.as_slice()).unwrap_or_default();
    let kernels = kernels.iter().filter_map(|kernel| {
        let counted = kernel.counted.as_ref()?;
        Some(Point {
            name: match kernel.stage {
                Some(stage) => format!("{}, {stage}", kernel.short_name),
                None => kernel.short_name.clone(),
            },
            intensity: counted.arithmetic_intensity?.get(),
            rate: counted.flops_per_second?.get(),
            roof,
            weight: kernel.stage_share,
            kind: Kind::Kernel,
        })
    });
    let regions = documents.regions.map(|report| report.regions.as_slice()).unwrap_or_default();
    let whole = documents.regions.and_then(|report| report.totals.as_ref()?.total_ns_inclusive);
    let regions = regions.iter().filter_map(|region| {
        let roofline = region.roofline.as_ref()?;
        Some(Point {
            name: region.path.clone(),
            intensity: roofline.flops_per_byte?,
            rate: roofline.flops_per_second?.get(),
            roof,
            weight: whole.map(|whole| (roofline.time_ns.get() as f64 / whole.get().max(1) as f64).min(1.0)),
            kind: Kind::Region,
        })
    });
    largest(kernels.collect()).into_iter().chain(regions.take(POINTS)).collect()
}

/// Those with most time, of what has enough to be seen.
fn largest(mut points: Vec<Point>) -> Vec<Point> {
    points.retain(|point| point.weight.is_none_or(|weight| weight >= LEAST_SHARE));
    points.sort_by(|one, other| other.weight.unwrap_or_default().total_cmp(&one.weight.unwrap_or_default()));
    points.truncate(POINTS);
    points
}
