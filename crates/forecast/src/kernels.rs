//! Which kernels a framework launches for an operation.
//!
//! Matrix work here, the rest in [`crate::eager`]. Compiled code fuses neighbouring elementwise kernels into one.

use types::{AttentionKind, ExecutionMode, Op};

use crate::attention;
use crate::call::Call;
use crate::eager::{Experts, eager};
use crate::shape::Kernels;
use crate::{Family, OpShape};

/// How a framework runs a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) mode: ExecutionMode,
    pub(crate) attention: AttentionKind,
    pub(crate) experts: Experts,
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

/// Whether `op` lays out anew what `before` left laid out already: fused attention writes positions before heads.
pub(crate) fn is_laid_out(before: Option<&Op>, op: &Op, kind: AttentionKind) -> bool {
    matches!(op, Op::Copy) && before.is_some_and(|before| attention::is_fused(before, kind))
}

/// The kernels of `call`. `more` is how many keys its attention sees beyond those recorded; `fused` that compiled code
/// has put it into the kernel before.
pub(crate) fn kernels(
    call: &Call<'_>,
    more: u64,
    Style { attention: kind, mode, experts }: Style,
    fused: bool,
) -> Vec<Kernels> {
    let dtype = call.dtype;
    let one = |shape: OpShape| vec![Kernels { shape, count: 1.0 }];
    match call.op {
        Op::Linear | Op::MatMulTransposed => {
            let n = call.output.shape.last().max(1);
            let m = (call.output.shape.elements() / n).max(1);
            let k = call.inputs.first().map_or(1, |x| x.shape.last()).max(1);
            let grouped = mode == ExecutionMode::Compiled || experts == Experts::Grouped;
            match &call.spread {
                Some(_) => vec![spread(call, [m, n, k], grouped)],
                None => one(OpShape::gemm(dtype, [m, n, k])),
            }
        }
        Op::Conv2d { .. } => {
            // As the GEMM it is computed by: outputs times channels times window.
            let channels = call.dim(1, 0);
            let m = (call.output.shape.elements() / channels).max(1);
            one(OpShape::gemm(dtype, [m, channels, call.dim(1, 1) * call.dim(1, 2) * call.dim(1, 3)]))
        }
        Op::Attention { .. } | Op::LatentAttention { .. } => attention::attention(call, more, kind, mode),
        // Caches of a fixed size, which a graph needs, are written in place.
        Op::CacheAppend if mode == ExecutionMode::Graph => {
            vec![Kernels { shape: OpShape::elementwise(dtype, call.bytes / 2.0), count: 2.0 }]
        }
        _ if fused => Vec::new(),
        _ if mode == ExecutionMode::Compiled => one(OpShape::elementwise(dtype, call.bytes)),
        _ => eager(call, experts),
    }
}

/// A GEMM spread over experts: one for each where code loops over them, a grouped one otherwise.
fn spread(call: &Call<'_>, [m, n, k]: [u64; 3], grouped: bool) -> Kernels {
    let touched = call.touched();
    if grouped {
        let sizes = vec![m as f64, n as f64, k as f64, touched.min(m as f64)];
        return Kernels { shape: OpShape { family: Family::GroupedGemm, dtype: call.dtype, sizes }, count: 1.0 };
    }
    let rows = ((m as f64 / touched).round() as u64).max(1);
    Kernels { shape: OpShape::gemm(call.dtype, [rows, n, k]), count: touched }
}
