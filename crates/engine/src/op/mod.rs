//! How each operation is computed: one file per kind, one line per operation in the table below.
//!
//! Activations are single precision. Weights are that or stored in half the bytes; what multiplies or looks up rows reads
//! them as they are stored, everything else widens them first. What takes time has a kernel of its own; the rest is the
//! tensor library's.

mod attention;
mod conv2d;
mod distance_bias;
mod floats;
mod index_positions;
mod interpolate;
mod layout;
mod norm;
mod rotary;
pub(crate) mod routing;

use candle_core::{D, DType as CandleType, Device, Result, Tensor};
use types::{ActivationKind, Chosen, DType, InterpolationKind, Op, RotaryLayout, RotaryScaling, Spec};

use self::floats::TensorData;
use crate::kernel::runs::View;
use crate::kernel::{activation, broadcast, linear, matmul, softmax};

/// The candle type an element type is computed in; `None` where it cannot be.
pub(crate) fn candle_type(dtype: DType) -> Option<CandleType> {
    Some(match dtype {
        DType::Fp64 => CandleType::F64,
        DType::Fp32 | DType::Tf32 => CandleType::F32,
        DType::Fp16 => CandleType::F16,
        DType::Bf16 => CandleType::BF16,
        DType::Int64 => CandleType::I64,
        DType::Uint8 | DType::Bool => CandleType::U8,
        DType::Fp8 | DType::Fp4 | DType::Int32 => return None,
        DType::Int8 | DType::Int4 | DType::Int2 | DType::Int1 => return None,
    })
}

/// Why `op` is not computed here; absent where it is.
pub(crate) fn refusal(op: &Op) -> Option<String> {
    let what = match op {
        Op::Rotary { form, .. } => match (form.layout, form.scaling) {
            (_, RotaryScaling::Other(name)) => return Some(format!("rotary scaling `{name}` can only be modelled")),
            (RotaryLayout::Sections, _) => "rotary positions in time, rows and columns",
            (RotaryLayout::Grid, _) => "rotary positions of an image's patches",
            (RotaryLayout::Halves | RotaryLayout::Interleaved, _) => return None,
        },
        Op::LatentAttention { .. } => "attention with latent vectors",
        Op::SelectiveScan => "first-generation state-space layers",
        Op::Attention { detail, .. } if detail.chosen == Chosen::Elsewhere => {
            "sparse attention over positions chosen by another layer"
        }
        Op::CompressPositions { .. } | Op::AttendEntries { .. } | Op::IndexEntries { .. } => "compressed attention",
        Op::CollapseStreams | Op::MixStreams { .. } => "hyper-connections",
        Op::AddRows => "features for the first decoder layers",
        Op::Interpolate { kind: InterpolationKind::Bilinear, .. } => "bilinear position tables",
        _ => return None,
    };
    Some(format!("{what} can only be modelled"))
}

/// Does `op`, whose output is known to be `output`.
pub(crate) fn compute(op: Op, inputs: &[&Tensor], output: Spec) -> Result<Tensor> {
    if let Some(why) = refusal(&op) {
        candle_core::bail!("{why}");
    }
    let dims: Vec<usize> = output.shape.dims().iter().map(|size| *size as usize).collect();
    match op {
        Op::Linear => linear(inputs, &dims),
        Op::MatMulTransposed => matmul_transposed(inputs, &dims),
        Op::Conv2d { stride, padding } => conv2d::conv2d(inputs, stride as usize, padding as usize, &dims),
        Op::LayerNorm { epsilon } => norm::layer_norm(inputs, epsilon),
        Op::ChannelNorm { epsilon } => norm::channel_norm(inputs, epsilon),
        Op::RmsNorm { epsilon, unit_offset } => norm::rms_norm(inputs, epsilon, unit_offset),
        Op::Attention { causal, scale, detail, .. } => attention::attention(inputs, causal, scale, detail),
        Op::Embedding => layout::embedding(inputs[0], inputs[1], &dims),
        Op::Rotary { theta, offset, form } => rotary::rotary(inputs[0], theta, offset, form),
        Op::Activation(kind) => activation(kind, inputs[0]),
        Op::Add => join(inputs, &dims, broadcast::add),
        Op::Multiply => join(inputs, &dims, broadcast::multiply),
        Op::Scale { factor } => each(inputs[0], dims, |x| activation::scale(x, factor as f32)),
        Op::Softcap { limit } => each(inputs[0], dims, |x| activation::softcap(x, limit as f32)),
        Op::ClampedGate { limit, alpha } => {
            each(inputs[0], dims, |x| activation::clamped_gate(x, limit as f32, alpha as f32))
        }
        Op::Softmax => {
            let held = TensorData::new(inputs[0]);
            Tensor::from_vec(softmax::softmax(&held.in_order()?, inputs[0].dim(D::Minus1)?), dims, &Device::Cpu)
        }
        Op::Copy => layout::copy(inputs[0]),
        Op::Pad { dim, after } => layout::pad(inputs[0], dim as usize, after as usize, &dims),
        Op::Reshape(_) => inputs[0].reshape(dims),
        Op::Permute(order) => {
            let order: Vec<usize> = order.dims().iter().map(|dim| *dim as usize).collect();
            inputs[0].permute(order)
        }
        Op::Slice { dim, start, length } => inputs[0].narrow(dim as usize, start as usize, length as usize),
        Op::Expand(_) => inputs[0].expand(dims),
        _ => {
            let wide = inputs.iter().map(|input| widened(input)).collect::<Result<Vec<_>>>()?;
            rare(op, &wide.iter().collect::<Vec<_>>())
        }
    }
}

/// Operations that take so little time that the tensor library may do them as it likes.
fn rare(op: Op, inputs: &[&Tensor]) -> Result<Tensor> {
    match op {
        Op::BatchNorm { epsilon } => norm::batch_norm(inputs, epsilon),
        Op::TopK { k } => {
            let order = inputs[0].contiguous()?.arg_sort_last_dim(false)?;
            order.narrow(D::Minus1, 0, k as usize)?.contiguous()?.to_dtype(CandleType::I64)
        }
        Op::LimitGroups { groups, keep, best } => routing::limit_groups(inputs[0], [groups, keep, best]),
        Op::Concat { dim } => layout::concat(inputs, dim as usize),
        Op::Interpolate { kind, size } => interpolate::interpolate(inputs[0], kind, size),
        Op::RelativePositions { queries, keys } => layout::relative_positions(inputs[0], queries, keys),
        Op::DistanceBias { queries, keys, furthest, both_ways } => {
            distance_bias::scores(inputs[0], [queries, keys], furthest, both_ways)
        }
        Op::Conv1d { stride, padding } => {
            let made = inputs[0].contiguous()?.conv1d(inputs[1], padding as usize, stride as usize, 1, 1)?;
            match inputs.get(2) {
                None => Ok(made),
                Some(bias) => made.broadcast_add(&bias.reshape((1, (), 1))?),
            }
        }
        Op::IndexPositions { keep } => index_positions::chosen(inputs, keep as usize),
        Op::GlobalAveragePool => inputs[0].mean((2, 3)),
        Op::Cast(dtype) => match candle_type(dtype) {
            Some(dtype) => inputs[0].to_dtype(dtype),
            None => candle_core::bail!("computing in {dtype} is not supported"),
        },
        Op::ReplaceRows => layout::replace_rows(inputs),
        _ => candle_core::bail!("{} is handled by the backend, not by an operation", op.name()),
    }
}

/// Itself, or in single precision what is stored in half the bytes.
fn widened(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dtype() == CandleType::BF16 { tensor.to_dtype(CandleType::F32) } else { Ok(tensor.clone()) }
}

/// `x [.., I]` times `weight [O, I]` transposed, plus `bias [O]`. Weights kept the other way round are laid out anew.
fn linear(inputs: &[&Tensor], dims: &[usize]) -> Result<Tensor> {
    if !inputs[1].is_contiguous() {
        let weight = inputs[1].contiguous()?;
        let mut turned = inputs.to_vec();
        turned[1] = &weight;
        return linear(&turned, dims);
    }
    let held: Vec<TensorData<'_>> = inputs.iter().map(|input| TensorData::new(input)).collect();
    let bias = held.get(2).map(|bias| bias.in_order()).transpose()?;
    let y = linear::linear(&held[0].in_order()?, inputs[1].dim(D::Minus1)?, held[1].stored()?, bias.as_deref());
    Tensor::from_vec(y, dims, &Device::Cpu)
}

/// `a [.., M, K]` times `b [.., N, K]` transposed.
fn matmul_transposed(inputs: &[&Tensor], dims: &[usize]) -> Result<Tensor> {
    let sizes = [inputs[0].dim(D::Minus2)?, inputs[1].dim(D::Minus2)?, inputs[0].dim(D::Minus1)?];
    let (a, b) = (TensorData::new(inputs[0]), TensorData::new(inputs[1]));
    Tensor::from_vec(matmul::batched(sizes, &a.in_order()?, &b.in_order()?), dims, &Device::Cpu)
}

fn join(inputs: &[&Tensor], dims: &[usize], run: fn(&[usize], View<'_>, View<'_>) -> Vec<f32>) -> Result<Tensor> {
    let wide = [inputs[0].broadcast_as(dims)?, inputs[1].broadcast_as(dims)?];
    let [a, b] = [TensorData::new(&wide[0]), TensorData::new(&wide[1])];
    Tensor::from_vec(run(dims, a.floats()?.view(), b.floats()?.view()), dims, &Device::Cpu)
}

/// What `run` makes of all elements, as `dims`.
fn each(x: &Tensor, dims: Vec<usize>, run: impl Fn(&[f32]) -> Vec<f32>) -> Result<Tensor> {
    let held = TensorData::new(x);
    Tensor::from_vec(run(&held.in_order()?), dims, &Device::Cpu)
}

fn activation(kind: ActivationKind, x: &Tensor) -> Result<Tensor> {
    let held = TensorData::new(x);
    let run = match kind {
        ActivationKind::Gelu => activation::gelu,
        ActivationKind::GeluTanh => activation::gelu_tanh,
        ActivationKind::Sigmoid => activation::logistic,
        ActivationKind::QuickGelu => activation::quick_gelu,
        ActivationKind::Silu => activation::silu,
        ActivationKind::Relu => activation::relu,
        ActivationKind::SquaredRelu => activation::squared_relu,
    };
    Tensor::from_vec(run(&held.in_order()?), x.dims(), &Device::Cpu)
}
