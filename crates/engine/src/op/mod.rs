//! How each operation is computed: one file per kind, one line per operation in the table below.

mod attention;
mod conv2d;
mod interpolate;
mod layout;
mod norm;
mod rotary;
pub(crate) mod routing;

use candle_core::{D, DType as CandleType, Result, Tensor};
use types::{ActivationKind, DType, Op, Spec};

/// The candle type an element type is computed in; `None` where it cannot be.
pub(crate) fn candle_type(dtype: DType) -> Option<CandleType> {
    Some(match dtype {
        DType::Fp64 => CandleType::F64,
        DType::Fp32 | DType::Tf32 => CandleType::F32,
        DType::Fp16 => CandleType::F16,
        DType::Bf16 => CandleType::BF16,
        DType::Int64 => CandleType::I64,
        DType::Uint8 | DType::Bool => CandleType::U8,
        DType::Fp8 | DType::Fp4 | DType::Int32 | DType::Int8 | DType::Int4 => return None,
    })
}

/// Does `op`, whose output is known to be `output`.
pub(crate) fn compute(op: Op, inputs: &[&Tensor], output: Spec) -> Result<Tensor> {
    let dims: Vec<usize> = output.shape.dims().iter().map(|size| *size as usize).collect();
    match op {
        Op::Linear => linear(inputs, &dims),
        Op::MatMulTransposed => inputs[0].contiguous()?.matmul(&inputs[1].t()?.contiguous()?),
        Op::Conv2d { stride, padding } => conv2d::conv2d(inputs, stride as usize, padding as usize, &dims),
        Op::LayerNorm { epsilon } => norm::layer_norm(inputs, epsilon),
        Op::ChannelNorm { epsilon } => norm::channel_norm(inputs, epsilon),
        Op::BatchNorm { epsilon } => norm::batch_norm(inputs, epsilon),
        Op::RmsNorm { epsilon } => norm::rms_norm(inputs, epsilon),
        Op::Attention { causal, scale, .. } => attention::attention(inputs, causal, scale),
        Op::Embedding => inputs[1].index_select(&inputs[0].flatten_all()?, 0)?.reshape(dims),
        Op::Rotary { theta, offset } => rotary::rotary(inputs[0], theta, offset),
        Op::Activation(kind) => activation(kind, inputs[0]),
        Op::Add => inputs[0].broadcast_add(inputs[1]),
        Op::Multiply => inputs[0].broadcast_mul(inputs[1]),
        Op::Softmax => candle_nn::ops::softmax_last_dim(&inputs[0].contiguous()?),
        Op::TopK { k } => {
            let order = inputs[0].contiguous()?.arg_sort_last_dim(false)?;
            order.narrow(D::Minus1, 0, k as usize)?.contiguous()?.to_dtype(CandleType::I64)
        }
        Op::Reshape(_) => inputs[0].reshape(dims),
        Op::Permute(order) => {
            let order: Vec<usize> = order.dims().iter().map(|dim| *dim as usize).collect();
            inputs[0].permute(order)
        }
        Op::Slice { dim, start, length } => inputs[0].narrow(dim as usize, start as usize, length as usize),
        Op::Expand(_) => inputs[0].expand(dims),
        Op::Copy => inputs[0].contiguous(),
        Op::Concat { dim } => layout::concat(inputs, dim as usize),
        Op::Pad { dim, after } => inputs[0].pad_with_zeros(dim as usize, 0, after as usize),
        Op::Interpolate { kind, size } => interpolate::interpolate(inputs[0], kind, size),
        Op::RelativePositions { queries, keys } => layout::relative_positions(inputs[0], queries, keys),
        Op::GlobalAveragePool => inputs[0].mean((2, 3)),
        Op::Cast(dtype) => match candle_type(dtype) {
            Some(dtype) => inputs[0].to_dtype(dtype),
            None => candle_core::bail!("{dtype} cannot be computed in"),
        },
        Op::ReplaceRows => layout::replace_rows(inputs),
        Op::Dispatch { .. } | Op::Combine { .. } | Op::CacheAppend => {
            candle_core::bail!("{} is done by the backend, not by an operation", op.name())
        }
    }
}

/// `x [.., I]` times `weight [O, I]` transposed, plus `bias [O]`.
fn linear(inputs: &[&Tensor], dims: &[usize]) -> Result<Tensor> {
    let (x, weight) = (inputs[0], inputs[1]);
    let features = x.dim(D::Minus1)?;
    let rows = x.reshape(((), features))?.contiguous()?;
    let product = rows.matmul(&weight.t()?)?;
    let product = match inputs.get(2) {
        Some(bias) => product.broadcast_add(bias)?,
        None => product,
    };
    product.reshape(dims)
}

fn activation(kind: ActivationKind, x: &Tensor) -> Result<Tensor> {
    match kind {
        ActivationKind::Gelu => x.gelu_erf(),
        ActivationKind::QuickGelu => x * candle_nn::ops::sigmoid(&(x * 1.702)?)?,
        ActivationKind::Silu => x.silu(),
        ActivationKind::Relu => x.relu(),
    }
}
