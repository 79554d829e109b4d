//! Tables of what was counted, and of what the model says of the same work.

use types::{Bytes, CountedKernel, KernelReport, Metrics, ModelledKernel, PassRecord, SampledKernel, Spread};

use crate::markdown::code;
use crate::number::{UNKNOWN, grouped, percent};
use crate::profile::kernels::milliseconds;
use crate::profile::phrase::known;
use crate::table::{Column, Table};

/// Operations of a kernel that are named.
const OPERATIONS: usize = 3;

/// What each kernel did to the device, counted.
pub(super) fn utilisation(report: &KernelReport) -> Table<14> {
    let mut table = Table::new([
        Column::text("kernel"),
        Column::text("stage"),
        Column::text("grid x block"),
        Column::number("launches"),
        Column::number("time"),
        Column::number("DRAM bytes"),
        Column::number("DRAM rate"),
        Column::number("DRAM"),
        Column::number("L2 hits"),
        Column::number("SM"),
        Column::number("tensor"),
        Column::number("occupancy"),
        Column::number("registers, shared"),
        Column::text("limited by"),
    ]);
    for (row, counted) in counted(report) {
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
pub(super) fn roofline(report: &KernelReport) -> Table<10> {
    let mut table = Table::new([
        Column::text("kernel"),
        Column::text("stage"),
        Column::number("FLOPs"),
        Column::number("FLOP/byte"),
        Column::number("of roofline"),
        Column::text("roofline side"),
        Column::number("modelled FLOPs"),
        Column::number("modelled bytes"),
        Column::number("bytes counted / modelled"),
        Column::text("does"),
    ]);
    for row in &report.sampled {
        let (counted, modelled) = (row.counted.as_ref(), row.modelled.as_ref());
        if counted.is_none() && modelled.is_none() {
            continue;
        }
        let flops = counted.and_then(|counted| match (counted.flops_tensor, counted.flops_vector) {
            (Some(tensor), Some(vector)) => Some(tensor + vector),
            (tensor, vector) => tensor.or(vector),
        });
        table.row([
            code(&row.short_name),
            known(row.stage),
            known(flops),
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

/// The operations of the model that a kernel does, the first of them by name.
pub(super) fn operations(modelled: &ModelledKernel) -> String {
    let named: Vec<String> = modelled.operators.iter().take(OPERATIONS).map(|module| code(module)).collect();
    let more = modelled.operators.len().saturating_sub(OPERATIONS);
    if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
}

/// The chosen kernels as the timeline has them, for a run without counters.
pub(super) fn chosen(report: &KernelReport) -> Table<7> {
    let mut table = Table::new([
        Column::text("kernel"),
        Column::text("stage"),
        Column::text("grid x block"),
        Column::number("calls"),
        Column::number("total ms"),
        Column::number("mean ms"),
        Column::number("of stage"),
    ]);
    for row in &report.sampled {
        table.row([
            code(&row.short_name),
            known(row.stage),
            shape(row),
            grouped(row.calls),
            milliseconds(row.total_ns),
            milliseconds(row.mean_ns),
            percent(row.stage_share),
        ]);
    }
    table
}

/// What each pass cost.
pub(super) fn passes(report: &KernelReport) -> Table<6> {
    let mut table = Table::new([
        Column::text("pass"),
        Column::text("tool"),
        Column::number("time"),
        Column::number("overhead"),
        Column::text("of"),
        Column::number("on disk"),
    ]);
    for pass in &report.passes {
        table.row(pass_cells(pass));
    }
    table
}

/// How long the stages took in each pass that says so; absent where none does.
pub(super) fn stage_times(report: &KernelReport) -> Option<Table<3>> {
    let mut table = Table::new([Column::text("pass"), Column::text("stage"), Column::number("fastest")]);
    for pass in &report.passes {
        for (stage, time) in &pass.stage_wall_ns {
            table.row([pass.name.clone(), stage.to_string(), time.to_string()]);
        }
    }
    (!table.is_empty()).then_some(table)
}

/// How far the overheads can be believed; absent where the plain program ran once.
pub(super) fn how_sure(metrics: &Metrics) -> Option<String> {
    let spread = metrics.times.overhead.baseline_spread?;
    Some(format!("Two runs of the plain program lie {} apart; no overhead is surer than that", percent(Some(spread))))
}

pub(super) fn pass_cells(pass: &PassRecord) -> [String; 6] {
    [
        pass.name.clone(),
        known(pass.tool.clone()),
        pass.wall_ns.to_string(),
        pass.overhead.map_or(UNKNOWN.to_owned(), |share| format!("{:+.1}%", share * 100.0)),
        known(pass.overhead_of.clone()),
        if pass.bytes == Bytes::ZERO { UNKNOWN.to_owned() } else { pass.bytes.to_string() },
    ]
}

fn counted(report: &KernelReport) -> impl Iterator<Item = (&SampledKernel, &CountedKernel)> {
    report.sampled.iter().filter_map(|row| Some((row, row.counted.as_ref()?)))
}

fn shape(row: &SampledKernel) -> String {
    let dims = |dims: [u32; 3]| match dims {
        [x, 1, 1] => grouped(x),
        [x, y, 1] => format!("{x}·{y}"),
        [x, y, z] => format!("{x}·{y}·{z}"),
    };
    format!("{} x {}", dims(row.grid), dims(row.block))
}

/// The mean, and from where to where it goes where launches differ by more than a hundredth.
fn spread(spread: Option<Spread>, show: fn(f64) -> String) -> String {
    match spread {
        None => UNKNOWN.to_owned(),
        Some(Spread { mean, min, max }) if max - min > mean.abs() * 0.01 => {
            format!("{} ({} to {})", show(mean), show(min), show(max))
        }
        Some(Spread { mean, .. }) => show(mean),
    }
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
