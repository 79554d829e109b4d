//! Which kernels a framework launches for an operation.
//!
//! Counts are those of PyTorch's eager operators as published model code calls them: a normalisation written out in Python
//! is several kernels, a linear layer one. Compiled code fuses neighbouring elementwise kernels into one.

use meter::OpRecord;
use types::{AttentionKind, ExecutionMode, Op};

use crate::{Family, OpShape};

/// Kernels of one shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kernels {
    pub(crate) shape: OpShape,
    /// How many are launched, one behind the other.
    pub(crate) count: f64,
}

/// Whether compiled code fuses this operation with its neighbours.
pub(crate) fn fuses(op: &Op) -> bool {
    !matches!(
        op,
        Op::Linear
            | Op::MatMulTransposed
            | Op::Conv2d { .. }
            | Op::Attention { .. }
            | Op::LatentAttention { .. }
            | Op::Embedding
            | Op::TopK { .. }
            | Op::Dispatch { .. }
            | Op::Combine { .. }
    )
}

/// The kernels of `record`. `more` is how many keys its attention sees beyond those recorded; `fused` that compiled code
/// has put it into the kernel before.
pub(crate) fn kernels(
    record: &OpRecord,
    more: u64,
    attention: AttentionKind,
    mode: ExecutionMode,
    fused: bool,
) -> Vec<Kernels> {
    let dtype = record.price.matrix_dtype;
    let dim = |input: usize, index: usize| {
        record.inputs.get(input).and_then(|spec| spec.shape.dims().get(index).copied()).unwrap_or(1).max(1)
    };
    let one = |shape: OpShape| vec![Kernels { shape, count: 1.0 }];
    let bytes = record.cost.bytes.total().as_f64();
    match &record.op {
        Op::Linear | Op::MatMulTransposed => {
            let n = record.output.shape.last().max(1);
            let m = (record.output.shape.elements() / n).max(1);
            let k = record.inputs.first().map_or(1, |x| x.shape.last()).max(1);
            match &record.spread {
                Some(spread) => experts(spread.distinct() / spread.devices.max(1) as f64, [m, n, k], dtype, mode),
                None => one(OpShape::gemm(dtype, [m, n, k])),
            }
        }
        Op::Conv2d { .. } => {
            // As the GEMM it is computed by: outputs times channels times window.
            let channels = dim(1, 0);
            let m = (record.output.shape.elements() / channels).max(1);
            one(OpShape::gemm(dtype, [m, channels, dim(1, 1) * dim(1, 2) * dim(1, 3)]))
        }
        Op::Attention { causal, fused: asked, detail, .. } => {
            let ([batch, heads, queries, width], kv_heads) = ([dim(0, 0), dim(0, 1), dim(0, 2), dim(0, 3)], dim(1, 1));
            let keys = dim(1, 2) + more;
            if attention == AttentionKind::Eager && !asked {
                let rows = batch * heads * queries;
                let scores = (rows * keys) as f64 * record.output.dtype.bits() as f64 / 8.0;
                // Mask, softmax in single precision and the cast back each read and write the scores.
                return vec![
                    Kernels { shape: OpShape::gemm(dtype, [rows, keys, width]), count: 1.0 },
                    Kernels { shape: OpShape::elementwise(dtype, 2.0 * scores), count: 3.0 },
                    Kernels { shape: OpShape::gemm(dtype, [rows, width, keys]), count: 1.0 },
                ];
            }
            let cache = record.inputs.get(1).map_or(dtype, |keys| keys.dtype);
            let window = detail.window.filter(|window| *window < keys).unwrap_or(0);
            let mut launched = Vec::new();
            if mode == ExecutionMode::Eager && queries < keys {
                // Eager caches grow by concatenation: keys and values are each read and written whole.
                let held = if window > 0 { window } else { keys };
                let whole = (batch * kv_heads * held * width) as f64 * cache.bits() as f64 / 8.0;
                launched.push(Kernels { shape: OpShape::elementwise(dtype, 2.0 * whole), count: 2.0 });
            }
            // PyTorch masks a window over a prompt: every pair is computed.
            let (causal, window) = if queries > 1 && window > 0 { (false, 0) } else { (*causal, window) };
            let heads = [batch, heads, kv_heads, width];
            launched.extend(one(attend(heads, [queries, keys], causal, cache.bits(), window, dtype)));
            launched
        }
        Op::LatentAttention { causal, .. } => {
            let [batch, heads, queries, latent] = [dim(0, 0), dim(0, 1), dim(0, 2), dim(0, 3)];
            let keys = dim(2, 2) + more;
            // Keys are the latent vector and its rotated part, values the vector alone.
            let width = latent + dim(1, 3) / 2;
            let cache = record.inputs.get(2).map_or(dtype, |keys| keys.dtype);
            one(attend([batch, heads, 1, width], [queries, keys], *causal, cache.bits(), 0, dtype))
        }
        _ if fused => Vec::new(),
        op => {
            let count = if mode == ExecutionMode::Compiled { 1.0 } else { eager_kernels(op) };
            vec![Kernels { shape: OpShape::elementwise(dtype, bytes), count }]
        }
    }
}

/// Attention as the family that was measured: causal over a prompt, or one position over a cache. Attention that is not
/// causal does the work of a causal one over a longer prompt.
fn attend(
    [batch, heads, kv_heads, width]: [u64; 4],
    [queries, keys]: [u64; 2],
    causal: bool,
    cache_bits: u64,
    window: u64,
    dtype: types::DType,
) -> OpShape {
    let (queries_f, keys_f) = (queries as f64, keys as f64);
    let (family, length) = if queries == 1 {
        (Family::GenerationAttention, keys_f)
    } else {
        let pairs = if causal { queries_f * (keys_f - queries_f / 2.0) } else { queries_f * keys_f };
        (Family::ContextAttention, (2.0 * pairs).sqrt().max(1.0).round())
    };
    let sizes = [batch as f64, length, heads as f64, kv_heads.min(heads) as f64, width as f64];
    OpShape { family, dtype, sizes: sizes.into_iter().chain([cache_bits as f64, window as f64]).collect() }
}

/// A GEMM spread over experts: one for each in eager code, a grouped one otherwise.
fn experts(touched: f64, [m, n, k]: [u64; 3], dtype: types::DType, mode: ExecutionMode) -> Vec<Kernels> {
    let touched = touched.max(1.0).round();
    if mode == ExecutionMode::Compiled {
        let sizes = vec![m as f64, n as f64, k as f64, touched.min(m as f64)];
        return vec![Kernels { shape: OpShape { family: Family::GroupedGemm, dtype, sizes }, count: 1.0 }];
    }
    let rows = ((m as f64 / touched).round() as u64).max(1);
    vec![Kernels { shape: OpShape::gemm(dtype, [rows, n, k]), count: touched }]
}

/// Kernels of an operation that is no GEMM, in eager code.
fn eager_kernels(op: &Op) -> f64 {
    match op {
        // Cast, square, mean, sum, root, product, cast back, product.
        Op::RmsNorm { .. } => 8.0,
        Op::ChannelNorm { .. } => 8.0,
        // Two halves, a negation, a concatenation, two products, a sum.
        Op::Rotary { .. } => 5.0,
        Op::CacheAppend => 2.0,
        Op::Softcap { .. } => 3.0,
        Op::ClampedGate { .. } => 6.0,
        Op::LimitGroups { .. } => 8.0,
        Op::TopK { .. } => 2.0,
        Op::Dispatch { .. } => 3.0,
        Op::Combine { .. } => 3.0,
        Op::RelativePositions { .. } => 3.0,
        _ => 1.0,
    }
}
