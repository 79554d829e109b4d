//! Two-dimensional convolution.

use candle_core::{Device, Result, Tensor};

use super::floats::TensorData;
use crate::kernel::conv2d::{Convolution, conv2d as run};

/// `x [N, C, Y, X]`, `weight [O, C, ky, kx]`, optional `bias [O]`.
pub(super) fn conv2d(inputs: &[&Tensor], stride: usize, padding: usize, dims: &[usize]) -> Result<Tensor> {
    let (_, channels, high, wide) = inputs[0].dims4()?;
    let (outputs, _, down, across) = inputs[1].dims4()?;
    let sizes = Convolution {
        channels,
        image: [high, wide],
        kernel: [down, across],
        stride,
        padding,
        outputs,
        output: [dims[2], dims[3]],
    };
    let held: Vec<TensorData<'_>> = inputs.iter().map(|input| TensorData::new(input)).collect();
    let (x, weight) = (held[0].in_order()?, held[1].in_order()?);
    let bias = held.get(2).map(|bias| bias.in_order()).transpose()?;
    Tensor::from_vec(run(&x, &weight, bias.as_deref(), sizes), dims, &Device::Cpu)
}
