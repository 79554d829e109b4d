//! The kernels of a step as serving engines launch them: projections of one input in one GEMM, neighbours fused.
//!
//! Read off traces of vLLM 0.24 on an H200: a layer of Llama is four GEMMs, one attention with the keys and values of all
//! sequences, two norms with the residual in them, one rotation, one write to the cache and one activation.

use std::collections::HashMap;

use meter::{OpRecord, Pass};
use network::{Blueprint, Module};
use types::{DType, Op, Spec};

use crate::call::Call;
use crate::kernels::{fuses, spread};
use crate::shape::Kernels;
use crate::{Family, ForecastError, OpShape};

/// Attention of some layers that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AttentionKind {
    pub(crate) dtype: DType,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) width: u64,
    pub(crate) cache_bits: u64,
    /// Positions that are seen at most; 0 for all.
    pub(crate) window: u64,
    /// How many layers do it.
    pub(crate) layers: f64,
}

/// What a step launches.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepKernels {
    /// Everything but attention and the head, in order.
    pub(crate) dense: Vec<Kernels>,
    /// Bytes of the matrices among them that are stored in fewer bits, as a share of those in the type of the arithmetic.
    pub(crate) stored: HashMap<usize, f64>,
    /// The matrix behind the last layer: its output and input width.
    pub(crate) head: Option<(DType, [u64; 2])>,
    pub(crate) attention: Vec<AttentionKind>,
}

/// Matrices so far that another may be joined with, by the module around them and what they read.
type Joinable = HashMap<(Option<Module>, Spec), usize>;

/// The kernels of `pass`, the logits of one position included.
pub(crate) fn step_kernels(pass: &Pass, blueprint: &Blueprint) -> Result<StepKernels, ForecastError> {
    let mut found = StepKernels::default();
    let mut joinable = Joinable::new();
    let (mut activated, mut fused, mut before) = (None, false, None);
    for (at, record) in pass.ops.iter().enumerate() {
        let call = Call::from(record);
        let element = call.output.dtype.bits() as f64 / 8.0;
        let elements = call.output.shape.elements() as f64;
        let of = |family: Family, bytes: f64| Kernels {
            shape: OpShape::moving(family, call.output.dtype, bytes),
            count: 1.0,
        };
        let chained = std::mem::replace(&mut fused, fuses(call.op)) && fused;
        let previous = before.replace(call.op.name());
        match call.op {
            Op::Attention { .. } | Op::LatentAttention { .. } => {
                joinable.clear();
                add(&mut found.attention, kind(&call));
            }
            Op::AttendEntries { .. } | Op::IndexEntries { .. } | Op::IndexPositions { .. } => {
                return Err(ForecastError::NotServed { op: call.op.name() });
            }
            Op::Linear | Op::MatMulTransposed => {
                // An activation without a product behind it, as in older models, is a kernel of its own.
                found.dense.extend(activated.take().map(|bytes| of(Family::Elementwise, bytes)));
                let key = (blueprint.module(record.module).parent, record.inputs[0]);
                let kernel = matrix(&call);
                match joinable.get(&key) {
                    Some(at) => found.dense[*at].shape.sizes[1] += kernel.shape.sizes[1],
                    None => {
                        joinable.insert(key, found.dense.len());
                        if let Some(share) = stored(record, &kernel) {
                            found.stored.insert(found.dense.len(), share);
                        }
                        found.dense.push(kernel);
                    }
                }
            }
            // What follows another rotation is in its kernel; pairs of positions are read and written once.
            Op::Rotary { .. } if previous == Some(call.op.name()) => grow(&mut found.dense, 2.0 * element * elements),
            Op::Rotary { .. } => found.dense.push(of(Family::Strided, 2.0 * element * elements)),
            Op::CacheAppend => {
                let written: f64 = record.inputs.iter().map(|input| input.shape.elements() as f64).sum();
                found.dense.push(of(Family::Strided, 2.0 * element * written));
            }
            // With the residual: two read, one of two written leaves the cache.
            Op::RmsNorm { .. } | Op::LayerNorm { .. } => found.dense.push(of(Family::Cast, 3.0 * element * elements)),
            Op::Add if pass.ops.get(at + 1).is_some_and(is_norm) => {}
            Op::Activation(_) => activated = Some(2.0 * element * elements),
            Op::Multiply => {
                joinable.clear();
                activated = None;
                found.dense.push(of(Family::Elementwise, 3.0 * element * elements));
            }
            Op::Copy | Op::Softmax => {}
            Op::TopK { .. } => {
                let (rows, width) = (call.dim(0, 0) as f64, record.inputs[0].shape.last() as f64);
                found.dense.push(Kernels { shape: OpShape::rows(Family::Select, rows, width), count: 1.0 });
            }
            // Tokens are sorted by expert in two small kernels, and gathered where they are read.
            Op::Dispatch { .. } => found.dense.push(Kernels { count: 2.0, ..of(Family::Strided, 1.0) }),
            Op::Combine { .. } => {
                let read: f64 = record.inputs.first().map_or(0.0, |input| input.shape.elements() as f64);
                found.dense.push(of(Family::Elementwise, element * (read + elements)));
            }
            _ if chained => {}
            _ => found.dense.push(of(Family::Elementwise, call.bytes)),
        }
    }
    let is_head = |record: &&OpRecord| matches!(record.op, Op::Linear | Op::MatMulTransposed);
    if pass.ops.last().as_ref().is_some_and(is_head)
        && let Some(Kernels { shape, .. }) = found.dense.pop()
    {
        found.head = Some((shape.dtype, [shape.sizes[1] as u64, shape.sizes[2] as u64]));
    }
    Ok(found)
}

/// Below this share of the bytes, a matrix is stored in fewer bits; scales and biases come to a few percent.
const FEWER: f64 = 0.9;

/// Bytes of a matrix as it is stored, as a share of those in the type of the arithmetic, where they are fewer.
fn stored(record: &OpRecord, kernel: &Kernels) -> Option<f64> {
    let [_, n, k, experts @ ..] = kernel.shape.sizes.as_slice() else { return None };
    let elements = n * k * experts.first().copied().unwrap_or(1.0) * kernel.count;
    let share = record.cost.bytes.weights.as_f64() / (elements * kernel.shape.dtype.bits() as f64 / 8.0);
    (share > 0.0 && share < FEWER).then_some(share)
}

const fn is_norm(record: &OpRecord) -> bool {
    matches!(record.op, Op::RmsNorm { .. } | Op::LayerNorm { .. })
}

/// More bytes for the kernel launched last.
fn grow(kernels: &mut [Kernels], bytes: f64) {
    if let Some(last) = kernels.last_mut() {
        last.shape.sizes[0] += bytes;
    }
}

fn matrix(call: &Call<'_>) -> Kernels {
    let n = call.output.shape.last().max(1);
    let m = (call.output.shape.elements() / n).max(1);
    let k = call.inputs.first().map_or(1, |x| x.shape.last()).max(1);
    match call.spread {
        Some(_) => spread(call, [m, n, k], true),
        None => Kernels { shape: OpShape::gemm(call.dtype, [m, n, k]), count: 1.0 },
    }
}

fn kind(call: &Call<'_>) -> AttentionKind {
    let (keys, width, kv_heads, window) = match call.op {
        // Keys are the latent vector and its rotated part, values the vector alone.
        Op::LatentAttention { .. } => (2, call.dim(0, 3) + call.dim(1, 3) / 2, 1, 0),
        Op::Attention { detail, .. } => (1, call.dim(0, 3), call.dim(1, 1), detail.window.unwrap_or(0)),
        _ => (1, call.dim(0, 3), call.dim(1, 1), 0),
    };
    let cache_bits = call.inputs.get(keys).map_or(call.dtype, |keys| keys.dtype).bits();
    AttentionKind { dtype: call.dtype, heads: call.dim(0, 1), kv_heads, width, cache_bits, window, layers: 1.0 }
}

fn add(kinds: &mut Vec<AttentionKind>, kind: AttentionKind) {
    let alike = |known: &&mut AttentionKind| AttentionKind { layers: 1.0, ..**known } == kind;
    match kinds.iter_mut().find(alike) {
        Some(known) => known.layers += 1.0,
        None => kinds.push(kind),
    }
}
