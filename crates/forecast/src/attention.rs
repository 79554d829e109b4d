//! Kernels of attention: fused over a prompt or a cache, under a mask, or written out as eager code does.

use types::{AttentionKind, ExecutionMode, Op};

use crate::call::Call;
use crate::shape::Kernels;
use crate::{Family, OpShape};

/// Sizes of an attention.
struct Sizes {
    batch: u64,
    heads: u64,
    kv_heads: u64,
    queries: u64,
    keys: u64,
    width: u64,
}

/// Whether `op` is attention in one kernel.
pub(crate) fn is_fused(op: &Op, kind: AttentionKind) -> bool {
    match op {
        Op::Attention { fused, .. } => *fused || kind != AttentionKind::Eager,
        Op::LatentAttention { .. } => true,
        _ => false,
    }
}

/// The kernels of attention `call`, which sees `more` keys than were metered; nothing for other operations.
pub(crate) fn attention(call: &Call<'_>, more: u64, kind: AttentionKind, mode: ExecutionMode) -> Vec<Kernels> {
    let dtype = call.dtype;
    let dim = |input: usize, index: usize| call.dim(input, index);
    let cached = |input: usize| call.inputs.get(input).map_or(dtype, |keys| keys.dtype).bits();
    let one = |shape: OpShape| Kernels { shape, count: 1.0 };
    let (causal, detail) = match call.op {
        Op::Attention { causal, detail, .. } => (*causal, detail),
        Op::LatentAttention { causal, .. } => {
            // Keys are the latent vector and its rotated part, values the vector alone.
            let sizes = Sizes {
                batch: dim(0, 0),
                heads: dim(0, 1),
                kv_heads: 1,
                queries: dim(0, 2),
                keys: dim(2, 2) + more,
                width: dim(0, 3) + dim(1, 3) / 2,
            };
            return vec![one(sizes.fused(*causal, cached(2), 0, dtype))];
        }
        _ => return Vec::new(),
    };
    // Cross-attention sees a source, which does not grow.
    let (queries, keys) = (dim(0, 2), dim(1, 2) + if causal { more } else { 0 });
    // PyTorch leaves a mask away only where no key is outside the window.
    let window = detail.window.filter(|window| *window <= keys);
    let held = if queries == 1 { window.unwrap_or(keys) } else { keys };
    let sizes =
        Sizes { batch: dim(0, 0), heads: dim(0, 1), kv_heads: dim(1, 1), queries, keys: held, width: dim(0, 3) };
    let bytes = |heads: u64| (sizes.batch * heads * held * sizes.width) as f64 * cached(1) as f64 / 8.0;
    let moving =
        |family: Family, count: f64, bytes: f64| Kernels { shape: OpShape::moving(family, dtype, bytes), count };
    let mut launched = Vec::new();
    if mode == ExecutionMode::Eager && causal && queries < keys {
        // Eager caches grow by concatenation: keys and values are each read and written whole. A full window has lost its
        // first position, so that what is left of it is a part of a tensor.
        let family = if window.is_some() { Family::ConcatenateStrided } else { Family::Concatenate };
        launched.push(moving(family, 2.0, 2.0 * bytes(sizes.kv_heads)));
    }
    let written_out = !is_fused(call.op, kind);
    let masked = window.is_some() && mode != ExecutionMode::Compiled;
    if !written_out && !masked {
        let window = if queries == 1 { window.unwrap_or(0) } else { 0 };
        launched.push(one(sizes.fused(causal && window == 0, cached(1), window, dtype)));
        return launched;
    }
    // Only kernels without a mask share keys between heads: here keys and values are repeated, in memory unless there is
    // one head of them.
    if sizes.kv_heads > 1 && sizes.kv_heads < sizes.heads {
        launched.push(moving(Family::Strided, 2.0, 2.0 * bytes(sizes.heads)));
    }
    if written_out {
        launched.extend(sizes.written_out(causal, bytes(sizes.heads), dtype));
    } else {
        launched.push(one(sizes.masked(dtype)));
    }
    launched
}

impl Sizes {
    /// As the family that was measured: causal over a prompt, or one position over a cache. Attention that is not causal
    /// does the work of a causal one over a longer prompt.
    fn fused(&self, causal: bool, cache_bits: u64, window: u64, dtype: types::DType) -> OpShape {
        let (queries, keys) = (self.queries as f64, self.keys as f64);
        let (family, length) = if self.queries == 1 {
            (Family::GenerationAttention, keys)
        } else {
            let pairs = if causal { queries * (keys - queries / 2.0) } else { queries * keys };
            (Family::ContextAttention, (2.0 * pairs).sqrt().max(1.0).round())
        };
        let heads = [self.batch, self.heads, self.kv_heads.min(self.heads), self.width].map(|size| size as f64);
        let sizes = vec![heads[0], length, heads[1], heads[2], heads[3], cache_bits as f64, window as f64];
        OpShape { family, dtype, sizes }
    }

    fn masked(&self, dtype: types::DType) -> OpShape {
        let kv_heads = if self.kv_heads == 1 { 1 } else { self.heads };
        let sizes = [self.batch, self.queries, self.keys, self.heads, kv_heads, self.width];
        OpShape { family: Family::MaskedAttention, dtype, sizes: sizes.map(|size| size as f64).to_vec() }
    }

    /// Scores, their scale and mask, the softmax in single precision and the sum over values; `cached` bytes of keys.
    fn written_out(&self, causal: bool, cached: f64, dtype: types::DType) -> Vec<Kernels> {
        let rows = self.batch * self.heads * self.queries;
        let scores = (rows * self.keys) as f64;
        let element = dtype.bits() as f64 / 8.0;
        let moving = |family: Family, bytes: f64| Kernels { shape: OpShape::moving(family, dtype, bytes), count: 1.0 };
        // One query of every head multiplies no matrices: keys are read once, and the time is theirs.
        let product = |[n, k]: [u64; 2]| match self.queries {
            1 => moving(Family::Elementwise, cached + scores * element),
            _ => Kernels { shape: OpShape::gemm(dtype, [rows, n, k]), count: 1.0 },
        };
        let mut kernels = vec![product([self.keys, self.width]), moving(Family::Elementwise, 2.0 * element * scores)];
        if causal && self.queries > 1 {
            kernels.push(moving(Family::Strided, 2.0 * element * scores));
        }
        let softmax = OpShape::rows(Family::Reduce, rows as f64, 2.0 * self.keys as f64);
        kernels.extend([
            moving(Family::Cast, (element + 4.0) * scores),
            Kernels { shape: softmax, count: 1.0 },
            moving(Family::Elementwise, (element + 4.0) * scores),
            product([self.width, self.keys]),
        ]);
        kernels
    }
}
