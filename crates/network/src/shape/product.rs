//! Matrix products and convolutions.

use types::Spec;

use super::{Made, activation, equal, rank, with_last};

pub(super) fn linear(inputs: &[Spec]) -> Made {
    let (x, weight) = (inputs[0], inputs[1].shape);
    equal("input features and weight columns", x.shape.last(), weight.last())?;
    if let Some(bias) = inputs.get(2) {
        equal("bias and weight rows", bias.shape.elements(), weight.dims()[0])?;
    }
    Ok(activation(with_last(x.shape, weight.dims()[0]), x.dtype))
}

pub(super) fn matmul_transposed(inputs: &[Spec]) -> Made {
    let (a, b) = (inputs[0].shape, inputs[1].shape);
    rank(1, &inputs[1], a.rank())?;
    let lead = a.rank().checked_sub(2).ok_or("operands must be matrices")?;
    if a.dims()[..lead] != b.dims()[..lead] {
        return Err("leading dimensions differ".into());
    }
    equal("inner dimensions", a.last(), b.last())?;
    Ok(activation(with_last(a, b.dims()[lead]), inputs[0].dtype))
}

pub(super) fn conv2d(inputs: &[Spec], stride: u64, padding: u64) -> Made {
    let (x, weight) = (inputs[0].shape, inputs[1].shape);
    let (x, weight) = (x.dims(), weight.dims());
    equal("input channels and weight channels", x[1], weight[1])?;
    let side = |dim: usize| slid(x[dim], weight[dim], stride, padding);
    Ok(activation([x[0], weight[0], side(2)?, side(3)?], inputs[0].dtype))
}

pub(super) fn conv1d(inputs: &[Spec], stride: u64, padding: u64) -> Made {
    let (x, weight) = (inputs[0].shape, inputs[1].shape);
    let (x, weight) = (x.dims(), weight.dims());
    equal("input channels and weight channels", x[1], weight[1])?;
    Ok(activation([x[0], weight[0], slid(x[2], weight[2], stride, padding)?], inputs[0].dtype))
}

/// Places of a kernel that slides over a side.
fn slid(size: u64, kernel: u64, stride: u64, padding: u64) -> Result<u64, String> {
    let span = (size + 2 * padding).checked_sub(kernel).filter(|_| stride > 0);
    let span = span.ok_or_else(|| format!("a kernel of {kernel} does not fit {size} with padding {padding}"))?;
    Ok(span / stride + 1)
}
