//! Tables of what was counted, and of what the model says of the same work.

use types::{Bytes, CountedKernel, Flops, KernelReport, Metrics, ModelledKernel, SampledKernel, Spread};

use crate::render::Table;
use crate::render::text::{code, codes};
use crate::words::number::{UNKNOWN, exact_milliseconds, grouped, known, percent};

/// Difference between launches, relative to their mean, from which they are said to vary.
const VARIES: f64 = 0.01;
/// Operations of a kernel that are named.
const OPERATIONS: usize = 3;

/// What each kernel did to the device, counted.
pub(super) fn utilisation(report: &KernelReport) -> Table {
    let mut table = Table::new(
        "kernel | stage | grid x block | >launches | >time | >DRAM bytes | >DRAM rate | >DRAM, of peak | >L2 hits | >SM, of peak | >tensor cores \
         | >occupancy | >registers, shared memory | limited by",
    );
    for row in &report.sampled {
        let Some(counted) = &row.counted else { continue };
        table.row([
            code(&row.short_name),
            known(row.stage),
            shape(row),
            format!("{} of {}", grouped(counted.launches), grouped(row.calls)),
            spread(counted.time_ns, nanoseconds),
            spread(counted.dram_bytes, bytes),
            known(counted.dram_bytes_per_second),
            percent(counted.dram_share),
            percent(counted.l2_hit_share),
            percent(counted.sm_share),
            percent(counted.tensor_share),
            occupancy(counted),
            resources(counted),
            limits(counted),
        ]);
    }
    table
}

/// Where each kernel stands under the roofline, and how it compares with the model.
pub(super) fn roofline(report: &KernelReport) -> Table {
    let mut table = Table::new(
        "kernel | stage | >FLOPs | >FLOP/byte | >of roofline | roof | >modelled FLOPs | >modelled bytes \
         | >bytes counted / modelled | operations",
    );
    for row in &report.sampled {
        let (counted, modelled) = (row.counted.as_ref(), row.modelled.as_ref());
        if counted.is_none() && modelled.is_none() {
            continue;
        }
        table.row([
            code(&row.short_name),
            known(row.stage),
            known(counted.and_then(flops)),
            known(counted.and_then(|counted| counted.arithmetic_intensity).map(|value| format!("{:.1}", value.get()))),
            percent(counted.and_then(|counted| counted.roofline_share)),
            known(counted.and_then(|counted| counted.roofline_side.clone())),
            known(modelled.map(|modelled| modelled.flops)),
            known(modelled.map(|modelled| modelled.bytes)),
            known(modelled.and_then(|modelled| modelled.bytes_ratio).map(|ratio| format!("{ratio:.2}"))),
            known(modelled.map(operations)),
        ]);
    }
    table
}

/// FLOPs on tensor cores and vector units.
fn flops(counted: &CountedKernel) -> Option<Flops> {
    match (counted.flops_tensor, counted.flops_vector) {
        (Some(tensor), Some(vector)) => Some(tensor + vector),
        (tensor, vector) => tensor.or(vector),
    }
}

/// The operations of the model that a kernel does, the first of them by name.
pub(super) fn operations(modelled: &ModelledKernel) -> String {
    let (named, more) = modelled.operators.split_at(modelled.operators.len().min(OPERATIONS));
    if more.is_empty() { codes(named) } else { format!("{} and {} more", codes(named), more.len()) }
}

/// The chosen kernels as the timeline has them, for a run without counters.
pub(super) fn chosen(report: &KernelReport) -> Table {
    let mut table = Table::new("kernel | stage | grid x block | >calls | >total ms | >mean ms | >share of stage");
    for row in &report.sampled {
        table.row([
            code(&row.short_name),
            known(row.stage),
            shape(row),
            grouped(row.calls),
            exact_milliseconds(row.total_ns),
            exact_milliseconds(row.mean_ns),
            percent(row.stage_share),
        ]);
    }
    table
}

/// What each pass cost.
pub(super) fn passes(report: &KernelReport) -> Table {
    let mut table = Table::new("pass | tool | >time | >overhead | relative to | >on disk");
    for pass in &report.passes {
        table.row([
            pass.name.clone(),
            known(pass.tool.as_ref()),
            pass.wall_ns.to_string(),
            known(pass.overhead.map(|share| format!("{:+.1}%", share * 100.0))),
            known(pass.overhead_of.as_ref()),
            known((pass.bytes != Bytes::ZERO).then_some(pass.bytes)),
        ]);
    }
    table
}

/// How long the stages took in each pass that says so.
pub(super) fn stage_times(report: &KernelReport) -> Table {
    let mut table = Table::new("pass | stage | >fastest instance");
    for pass in &report.passes {
        for (stage, time) in &pass.stage_wall_ns {
            table.row([pass.name.clone(), stage.to_string(), time.to_string()]);
        }
    }
    table
}

/// How accurate the overheads are; absent where there was one plain run.
pub(super) fn noise(metrics: &Metrics) -> Option<String> {
    let spread = metrics.times.overhead.baseline_spread?;
    Some(format!("Two plain runs differ by {}; smaller overheads are noise.", percent(Some(spread))))
}

fn shape(row: &SampledKernel) -> String {
    let dims = |dims: [u32; 3]| match dims {
        [x, 1, 1] => grouped(x),
        [x, y, 1] => format!("{x}·{y}"),
        [x, y, z] => format!("{x}·{y}·{z}"),
    };
    format!("{} x {}", dims(row.grid), dims(row.block))
}

/// The mean, with the range where launches differ.
fn spread(spread: Option<Spread>, show: fn(f64) -> String) -> String {
    known(spread.map(|Spread { mean, min, max }| {
        if max - min > mean.abs() * VARIES {
            format!("{} ({} to {})", show(mean), show(min), show(max))
        } else {
            show(mean)
        }
    }))
}

fn nanoseconds(time: f64) -> String {
    types::Nanos::new(time.round() as i64).to_string()
}

fn bytes(bytes: f64) -> String {
    Bytes::new(bytes.round().max(0.0) as u64).to_string()
}

fn occupancy(counted: &CountedKernel) -> String {
    match (counted.occupancy_achieved, counted.occupancy_theoretical) {
        (None, None) => UNKNOWN.to_owned(),
        (achieved, most) => format!("{} of {}", percent(achieved), percent(most)),
    }
}

fn resources(counted: &CountedKernel) -> String {
    match (counted.registers_per_thread, counted.shared_bytes_per_block) {
        (None, None) => UNKNOWN.to_owned(),
        (registers, shared) => format!("{}, {}", known(registers), known(shared)),
    }
}

fn limits(counted: &CountedKernel) -> String {
    let occupancy = counted.occupancy_limiter.as_ref().map(|limit| format!("occupancy by {limit}"));
    [counted.bound.clone(), occupancy].into_iter().flatten().collect::<Vec<_>>().join("; ")
}
