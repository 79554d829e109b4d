//! How each operation is computed: one file per kind, one line per operation in the table below.
//!
//! Activations are single precision. Weights are that or stored in half the bytes; what multiplies or looks up rows reads
//! them as they are stored, everything else widens them first.

mod attention;
mod convolution;
mod distance_bias;
mod index_positions;
mod interpolate;
mod layout;
mod norm;
mod rotary;
pub(crate) mod routing;

use types::{ActivationKind, Chosen, DType, InterpolationKind, Op, RotaryLayout, RotaryScaling, Spec};

use crate::compute_error::{ComputeError, Result};
use crate::kernel::runs::View;
use crate::kernel::{activation, broadcast, linear, matmul, norm as kernel_norm, softmax};
use crate::tensor::Tensor;

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
        Op::Activation(ActivationKind::Xielu) => "an activation with learned factors",
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
        return Err(ComputeError::new(why));
    }
    let dims: Vec<usize> = output.shape.dims().iter().map(|size| *size as usize).collect();
    match op {
        Op::Linear => linear(inputs, &dims),
        Op::MatMulTransposed => matmul_transposed(inputs, &dims),
        Op::Conv2d { stride, padding } => convolution::conv2d(inputs, stride as usize, padding as usize, &dims),
        Op::Conv1d { stride, padding } => convolution::conv1d(inputs, stride as usize, padding as usize, &dims),
        Op::LayerNorm { epsilon } => norm::layer_norm(inputs, epsilon),
        Op::ChannelNorm { epsilon } => norm::channel_norm(inputs, epsilon),
        Op::BatchNorm { epsilon } => norm::batch_norm(inputs, epsilon),
        Op::RmsNorm { epsilon, unit_offset } => norm::rms_norm(inputs, epsilon, unit_offset),
        Op::Attention { causal, scale, detail, .. } => attention::attention(inputs, causal, scale, detail),
        Op::IndexPositions { keep } => index_positions::chosen(inputs, keep as usize),
        Op::Embedding => layout::embedding(inputs[0], inputs[1], &dims),
        Op::ReplaceRows => layout::replace_rows(inputs),
        Op::RelativePositions { queries, keys } => layout::relative_positions(inputs[0], queries, keys, &dims),
        Op::DistanceBias { queries, keys, furthest, both_ways } => {
            distance_bias::scores(inputs[0], [queries, keys], furthest, both_ways)
        }
        Op::Rotary { theta, offset, form } => rotary::rotary(inputs[0], theta, offset, form),
        Op::Interpolate { kind, size } => interpolate::interpolate(inputs[0], kind, size),
        Op::TopK { k } => routing::top(inputs[0], k as usize, &dims),
        Op::LimitGroups { groups, keep, best } => routing::limit_groups(inputs[0], [groups, keep, best]),
        Op::Activation(kind) => each(inputs[0], dims, activation(kind)?),
        Op::Add => join(inputs, &dims, broadcast::add),
        Op::Multiply => join(inputs, &dims, broadcast::multiply),
        Op::Scale { factor } => each(inputs[0], dims, |x| activation::scale(x, factor as f32)),
        Op::Softcap { limit } => each(inputs[0], dims, |x| activation::softcap(x, limit as f32)),
        Op::ClampedGate { limit, alpha } => {
            each(inputs[0], dims, |x| activation::clamped_gate(x, limit as f32, alpha as f32))
        }
        Op::Softmax => each(inputs[0], dims, |x| softmax::softmax(x, inputs[0].width())),
        Op::GlobalAveragePool => {
            let places = inputs[0].dims()[2..].iter().product();
            each(inputs[0], dims, |x| kernel_norm::means(x, places))
        }
        Op::Cast(DType::Fp32) => each(inputs[0], dims, |x| x.to_vec()),
        Op::Cast(dtype) => Err(ComputeError::new(format!("computing in {dtype} is not supported"))),
        Op::Copy => layout::copy(inputs[0]),
        Op::Concat { dim } => layout::concat(inputs, dim as usize, &dims),
        Op::Pad { dim, .. } => layout::pad(inputs[0], dim as usize, &dims),
        Op::Reshape(_) => inputs[0].reshape(dims),
        Op::Permute(order) => {
            let order: Vec<usize> = order.dims().iter().map(|dim| *dim as usize).collect();
            inputs[0].permute(&order)
        }
        Op::Slice { dim, start, length } => inputs[0].slice(dim as usize, start as usize, length as usize),
        Op::Expand(_) => inputs[0].expand(&dims),
        _ => Err(ComputeError::new(format!("{} is handled by the backend, not by an operation", op.name()))),
    }
}

/// `x [.., I]` times `weight [O, I]` transposed, plus `bias [O]`. Weights kept the other way round are laid out anew.
fn linear(inputs: &[&Tensor], dims: &[usize]) -> Result<Tensor> {
    let weight = inputs[1].contiguous();
    let bias = inputs.get(2).map(|bias| bias.in_order()).transpose()?;
    Tensor::new(linear::linear(&inputs[0].in_order()?, weight.width(), weight.stored()?, bias.as_deref()), dims)
}

/// `a [.., M, K]` times `b [.., N, K]` transposed.
fn matmul_transposed(inputs: &[&Tensor], dims: &[usize]) -> Result<Tensor> {
    let [.., m, n] = dims else { return Err(ComputeError::new(format!("{dims:?} is not the shape of matrices"))) };
    let (a, b) = (inputs[0].in_order()?, inputs[1].in_order()?);
    Tensor::new(matmul::batched([*m, *n, inputs[0].width()], &a, &b), dims)
}

fn join(inputs: &[&Tensor], dims: &[usize], run: fn(&[usize], View<'_>, View<'_>) -> Vec<f32>) -> Result<Tensor> {
    let [a, b] = [inputs[0].expand(dims)?, inputs[1].expand(dims)?];
    Tensor::new(run(dims, a.floats()?.view(), b.floats()?.view()), dims)
}

/// What `run` makes of all elements, as `dims`.
fn each(x: &Tensor, dims: Vec<usize>, run: impl Fn(&[f32]) -> Vec<f32>) -> Result<Tensor> {
    Tensor::new(run(&x.in_order()?), dims)
}

/// What is done to each element.
type Elementwise = fn(&[f32]) -> Vec<f32>;

fn activation(kind: ActivationKind) -> Result<Elementwise> {
    Ok(match kind {
        ActivationKind::Gelu => activation::gelu,
        ActivationKind::GeluTanh => activation::gelu_tanh,
        ActivationKind::Sigmoid => activation::logistic,
        ActivationKind::QuickGelu => activation::quick_gelu,
        ActivationKind::Silu => activation::silu,
        ActivationKind::Relu => activation::relu,
        ActivationKind::SquaredRelu => activation::squared_relu,
        ActivationKind::Xielu => return Err(ComputeError::new("xielu is not computed")),
    })
}
