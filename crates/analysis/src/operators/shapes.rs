//! Framework operators by name and shapes: what each shape took on the device, and how far that is from the roofline. No
//! model is needed for it.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{NameId, OperatorKind, OperatorSignature, SignatureId};
use types::{Bytes, DType, Flops, Hardware, Nanos, ShapeGroup};

use super::recorded_work::{RecordedWork, dtype, work};
use crate::evidence::PlacedTimeline;
use crate::kernel::{self, Family};

/// What calls of one operator on one set of shapes add up to.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    host: Nanos,
    device: Nanos,
    /// Calls that launched device work; a call inside a graph capture, or one whose kernels were not recorded, did none.
    ran: u128,
    /// Element type by the names of their kernels.
    of_kernels: KernelType,
}

/// The element type that the kernels of some calls have.
#[derive(Clone, Copy, Default)]
enum KernelType {
    /// No kernel tells.
    #[default]
    Untold,
    /// All that tell have this one.
    One(DType),
    /// They differ.
    Several,
}

impl KernelType {
    fn and(self, other: Option<DType>) -> Self {
        match (self, other) {
            (Self::Untold, Some(dtype)) => Self::One(dtype),
            (Self::One(one), Some(dtype)) if one != dtype => Self::Several,
            (known, _) => known,
        }
    }

    fn known(self) -> Option<DType> {
        match self {
            Self::One(dtype) => Some(dtype),
            Self::Untold | Self::Several => None,
        }
    }
}

/// How far device work is from its roofline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WorkRoofline {
    /// Roofline time as a share of the recorded time.
    pub(crate) share: f64,
    /// Whether compute sets it, and not memory.
    pub(crate) compute: bool,
}

/// Name, shapes, element type and work of a group of calls.
type Key<'a> = (&'a str, &'a [Vec<u64>], Option<DType>, Option<(Flops, Bytes)>);

/// One group per operator and shapes, of those that launched device work themselves; longest on the device first.
pub(crate) fn groups(timelines: &[PlacedTimeline<'_>], hardware: Option<&Hardware>) -> Vec<ShapeGroup> {
    let mut groups: BTreeMap<Key<'_>, Sum> = BTreeMap::new();
    for placed in timelines {
        for ((name, signature), sum) in sums(placed) {
            let name = placed.timeline.name(name);
            let recorded = placed.timeline.signatures.get(signature);
            let dtype = dtype(recorded).or(sum.of_kernels.known());
            let done = dtype.and_then(|dtype| work(name, recorded, dtype));
            let done = done.map(|RecordedWork { flops, bytes }| (flops, bytes));
            let all = groups.entry((name, recorded.shapes.as_slice(), dtype, done)).or_default();
            all.calls += sum.calls;
            all.host += sum.host;
            all.device += sum.device;
            all.ran += sum.ran;
        }
    }
    let mut rows: Vec<_> = groups.into_iter().map(|(key, sum)| row(key, sum, hardware)).collect();
    rows.sort_by_key(|group| std::cmp::Reverse(group.device_ns));
    rows
}

/// Sums of one timeline.
fn sums(placed: &PlacedTimeline<'_>) -> HashMap<(NameId, SignatureId), Sum> {
    let PlacedTimeline { timeline, attribution, .. } = *placed;
    let mut device = vec![Nanos::ZERO; timeline.operators.len()];
    for (place, (work, operator)) in timeline.work.iter().zip(&attribution.operator).enumerate() {
        if let Some(operator) = operator.filter(|_| !attribution.is_aside(place)) {
            device[operator as usize] += work.duration;
        }
    }
    let mut sums: HashMap<_, Sum> = HashMap::new();
    of_kernels(placed, &mut sums);
    for (operator, device) in timeline.operators.iter().zip(device) {
        let (OperatorKind::Framework, Some(signature)) = (operator.kind, operator.signature) else { continue };
        if attribution.asides.hold(timeline, operator.thread, operator.start) {
            continue;
        }
        let sum = sums.entry((operator.name, signature)).or_default();
        sum.calls += 1;
        sum.host += operator.duration;
        sum.device += device;
        sum.ran += u128::from(device > Nanos::ZERO);
    }
    sums.retain(|_, sum| sum.ran > 0);
    sums
}

/// Per work: its roofline time as a share of its time, and whether compute sets it: that of all calls of its operator on
/// those shapes.
pub(crate) fn roofline_of_work(placed: &PlacedTimeline<'_>, hardware: Option<&Hardware>) -> Vec<Option<WorkRoofline>> {
    let PlacedTimeline { timeline, attribution, .. } = *placed;
    let Some(hardware) = hardware else { return vec![None; timeline.work.len()] };
    let known: HashMap<(NameId, SignatureId), WorkRoofline> = sums(placed)
        .into_iter()
        .filter_map(|((name, signature), sum)| {
            let recorded = timeline.signatures.get(signature);
            let dtype = dtype(recorded).or(sum.of_kernels.known())?;
            let RecordedWork { flops, bytes } = work(timeline.name(name), recorded, dtype)?;
            let bytes = Bytes::new(u64::try_from(u128::from(bytes.get()) * sum.ran).ok()?);
            let flops = Flops::new(flops.get().saturating_mul(sum.ran));
            let (least, bound) = roofline(hardware, dtype, flops, bytes, sum.device)?;
            let share = least.get() as f64 / sum.device.get() as f64;
            Some(((name, signature), WorkRoofline { share, compute: bound == "compute" }))
        })
        .collect();
    let of_row = |operator: &Option<u32>| {
        let operator = &timeline.operators[(*operator)? as usize];
        known.get(&(operator.name, operator.signature?)).copied()
    };
    attribution.operator.iter().map(of_row).collect()
}

/// Element types from the matrix kernels of operators that were recorded without any: NVTX ranges have none.
fn of_kernels(placed: &PlacedTimeline<'_>, sums: &mut HashMap<(NameId, SignatureId), Sum>) {
    let PlacedTimeline { timeline, attribution, .. } = *placed;
    let lacks = |signature: &OperatorSignature| signature.types.is_empty() && !signature.shapes.is_empty();
    if !timeline.signatures.iter().any(|(_, signature)| lacks(signature)) {
        return;
    }
    let matrix = [Family::Gemm, Family::Attention, Family::Convolution];
    let told = |name: &str| Some(kernel::classify(name)).filter(|kind| matrix.contains(&kind.family))?.dtype;
    let told: Vec<Option<DType>> = timeline.names.iter().map(|(_, name)| told(name)).collect();
    for (work, operator) in timeline.work.iter().zip(&attribution.operator) {
        let Some(operator) = operator.map(|operator| &timeline.operators[operator as usize]) else { continue };
        let Some(signature) = operator.signature.filter(|place| lacks(timeline.signatures.get(*place))) else {
            continue;
        };
        let sum = sums.entry((operator.name, signature)).or_default();
        sum.of_kernels = sum.of_kernels.and(told[work.name.index()]);
    }
}

fn row((name, shapes, dtype, done): Key<'_>, sum: Sum, hardware: Option<&Hardware>) -> ShapeGroup {
    let seconds = sum.device.as_seconds();
    let flops = done.map_or(Flops::ZERO, |(flops, _)| Flops::new(flops.get().saturating_mul(sum.ran)));
    let bytes = done.and_then(|(_, bytes)| u64::try_from(u128::from(bytes.get()) * sum.ran).ok()).map(Bytes::new);
    let least = hardware
        .zip(dtype)
        .zip(bytes)
        .and_then(|((hardware, dtype), bytes)| roofline(hardware, dtype, flops, bytes, sum.device));
    // Arguments that are no tensors have no shape.
    let last = shapes.iter().rposition(|shape| !shape.is_empty()).map_or(0, |last| last + 1);
    ShapeGroup {
        name: name.to_owned(),
        shapes: shapes[..last].to_vec(),
        calls: sum.calls,
        total_ns: sum.host,
        bytes_allocated: None,
        flops_matrix: flops,
        flops_per_second: (flops > Flops::ZERO).then(|| flops / seconds),
        device_ns: Some(sum.device),
        dtype,
        bytes,
        bytes_per_second: bytes.map(|bytes| bytes / seconds),
        roofline_ns: least.map(|(time, _)| time),
        bound: least.map(|(_, bound)| bound.to_owned()),
        roofline_share: least.map(|(time, _)| time.get() as f64 / sum.device.get() as f64),
    }
}

/// Least time and what sets it; `None` where the device was faster. Then its caches held the operands, or the work is not
/// what the shapes say. GEMMs of single precision that outrun it ran as TF32.
fn roofline(
    hardware: &Hardware,
    dtype: DType,
    flops: Flops,
    bytes: Bytes,
    device: Nanos,
) -> Option<(Nanos, &'static str)> {
    let memory = bytes / hardware.bytes_per_second;
    let of = |dtype: DType| {
        let compute = flops / hardware.matrix_peak(dtype)?.flops;
        let bound = if compute >= memory { "compute" } else { "memory" };
        let least = if compute >= memory { compute } else { memory };
        let nanoseconds = (least.get() * 1e9).floor();
        (nanoseconds <= device.get() as f64).then_some((Nanos::new(nanoseconds as i64), bound))
    };
    of(dtype).or_else(|| (dtype == DType::Fp32).then(|| of(DType::Tf32)).flatten())
}
