//! Kernels that eager code launches for operations other than matrix work.
//!
//! As published model code writes them in PyTorch, read off torch profiler traces of transformers 5 on an H200: a
//! normalisation is a cast to single precision, a square, a mean and five more; a rotation cuts heads in halves.

use types::{DType, Op};

use crate::call::Call;
use crate::shape::Kernels;
use crate::{Family, OpShape};

/// Bytes of an element in single precision, which sums are made in.
const SINGLE: f64 = 4.0;

/// Kernels from positions to rows of a table of distances, in `compute_bias` of T5.
const DISTANCES: f64 = 20.0;

/// Kernels before the first layer: positions, angles of the rotation and their cosines, and what decides on a mask.
const BEFORE_LAYERS: f64 = 12.0;

/// Kernels that sort tokens by expert: copies, a count, a sum, and what marks the ends.
const SORTING: f64 = 10.0;

/// Bytes that stand for an element in a strided kernel: such kernels take their time by elements, whatever their type, and were
/// timed on two bytes read and two written.
const STRIDED: f64 = 4.0;

/// How the experts of a mixture are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Experts {
    /// One after the other, as code published with a checkpoint does.
    Looped,
    /// All at once, as transformers 5 does on a GPU.
    Grouped,
}

/// The eager kernels of `call`.
pub(crate) fn eager(call: &Call<'_>, experts: Experts) -> Vec<Kernels> {
    let dtype = call.output.dtype;
    let element = dtype.bits() as f64 / 8.0;
    let elements = call.output.shape.elements() as f64;
    let width = call.output.shape.last().max(1) as f64;
    let rows = (elements / width).max(1.0);
    let bytes = call.bytes;
    let of = |family: Family, count: f64, bytes: f64| Kernels { shape: OpShape::moving(family, dtype, bytes), count };
    let small = |count: f64| of(Family::Elementwise, count, 1.0);
    let whole = |bytes_each: f64, elements: f64| of(Family::Elementwise, 1.0, bytes_each * elements);
    let strided = |elements: f64| of(Family::Strided, 1.0, STRIDED * elements);
    let widen = |elements: f64| of(Family::Cast, 1.0, (element + SINGLE) * elements);
    let reduce = |rows: f64, width: f64| Kernels { shape: OpShape::rows(Family::Reduce, rows, width), count: 1.0 };
    let select = |rows: f64, width: f64| Kernels { shape: OpShape::rows(Family::Select, rows, width), count: 1.0 };
    // An operand that is the same for every row is repeated, unless there is one row.
    let by_width = |bytes_each: f64| if rows > 1.0 { strided(elements) } else { whole(bytes_each, elements) };
    match call.op {
        Op::RmsNorm { unit_offset, .. } => {
            let mut kernels = vec![
                widen(elements),
                whole(2.0 * SINGLE, elements),
                reduce(rows, width),
                // The epsilon and the root, of one number a row.
                of(Family::Elementwise, 2.0, 2.0 * SINGLE * rows),
                strided(elements),
                whole(element + SINGLE, elements),
            ];
            match unit_offset {
                false => kernels.push(by_width(2.0 * element)),
                // The weight is widened and gets its one at every call.
                true => kernels.extend([widen(width), small(1.0), by_width(2.0 * SINGLE)]),
            }
            kernels
        }
        // One kernel of its own, which reads and writes rows.
        Op::LayerNorm { .. } => vec![reduce(rows, width * element * 2.0 / SINGLE)],
        Op::ChannelNorm { .. } => vec![of(Family::Elementwise, 8.0, bytes)],
        // x * cos, the half that is turned, both halves joined, times sin, and the sum.
        Op::Rotary { .. } => {
            let joined = of(Family::ConcatenateStrided, 1.0, 2.0 * element * elements);
            let one_position = call.dim(0, 2) == 1;
            let sum = if one_position { whole(3.0 * element, elements) } else { strided(1.5 * elements) };
            vec![strided(elements), strided(elements / 2.0), joined, strided(elements), sum]
        }
        // A cache that holds something grows with the attention that reads it.
        Op::CacheAppend if call.dim(0, 2) == 1 => Vec::new(),
        Op::CacheAppend => vec![of(Family::ConcatenateStrided, 2.0, bytes / 2.0)],
        Op::Embedding => vec![of(Family::Strided, 1.0, bytes), small(BEFORE_LAYERS)],
        Op::Softmax => vec![widen(elements), reduce(rows, 2.0 * width), whole(element + SINGLE, elements)],
        Op::Softcap { .. } => vec![of(Family::Elementwise, 3.0, bytes)],
        Op::ClampedGate { .. } => vec![of(Family::Strided, 6.0, STRIDED * elements)],
        Op::LimitGroups { .. } => vec![select(rows, width), of(Family::Elementwise, 7.0, bytes)],
        Op::TopK { .. } => {
            let width = call.inputs.first().map_or(1, |x| x.shape.last()).max(1) as f64;
            vec![select(rows, width), small(1.0)]
        }
        Op::Dispatch { .. } => {
            let mut kernels = vec![select(1.0, rows.min(256.0)), small(SORTING), whole(2.0 * element, elements)];
            // Rows of experts elsewhere are blanked, and so are their results.
            kernels.extend((experts == Experts::Grouped).then(|| strided(elements)));
            kernels
        }
        Op::Combine { .. } => {
            let spread = call.inputs.first().map_or(elements, |x| x.shape.elements() as f64);
            let mut kernels = vec![strided(spread), whole(2.0 * element, spread), whole(element, spread), small(2.0)];
            if experts == Experts::Grouped {
                kernels.extend([whole(2.0 * element, spread), strided(spread)]);
            }
            kernels
        }
        Op::Activation(_) | Op::Multiply if call.spread.is_some() => inside_experts(call, experts, strided),
        Op::Cast(to) => {
            let from = call.inputs.first().map_or(*to, |x| x.dtype);
            match (from == *to, from == DType::Fp32) {
                (true, _) => Vec::new(),
                // Narrowing is a kernel from end to end, widening one that loads element by element.
                (_, true) => vec![of(Family::Elementwise, 1.0, bytes)],
                (_, false) => vec![of(Family::Cast, 1.0, bytes)],
            }
        }
        Op::Copy => vec![strided(elements)],
        Op::Concat { .. } => vec![of(Family::Concatenate, 1.0, bytes)],
        Op::RelativePositions { .. } => vec![of(Family::Elementwise, 3.0, bytes)],
        // Distances, their logarithms and their rows are whole numbers of eight bytes, then the rows are looked up.
        Op::DistanceBias { queries, keys, .. } => {
            let positions = 16.0 * (queries * keys) as f64;
            vec![of(Family::Elementwise, DISTANCES, positions), of(Family::Strided, 1.0, bytes)]
        }
        _ => vec![of(Family::Elementwise, 1.0, bytes)],
    }
}

/// Between the matrices of experts: one kernel for each where they are looped over; else over halves of one tensor, the first of
/// them behind the blanking of what other devices compute.
fn inside_experts(call: &Call<'_>, experts: Experts, strided: impl Fn(f64) -> Kernels) -> Vec<Kernels> {
    let elements = call.output.shape.elements() as f64;
    let dtype = call.output.dtype;
    match experts {
        Experts::Looped => {
            let touched = call.touched();
            vec![Kernels { shape: OpShape::elementwise(dtype, call.bytes / touched), count: touched }]
        }
        Experts::Grouped if matches!(call.op, Op::Multiply) => vec![strided(elements)],
        Experts::Grouped => {
            let copied = OpShape::elementwise(dtype, 4.0 * elements * dtype.bits() as f64 / 8.0);
            vec![Kernels { shape: copied, count: 1.0 }, strided(2.0 * elements), strided(elements)]
        }
    }
}
