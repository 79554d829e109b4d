//! Convolutions.

use crate::compute_error::Result;
use crate::kernel::conv2d::{Convolution, conv2d as run};
use crate::tensor::Tensor;

/// `x [N, C, Y, X]`, `weight [O, C, ky, kx]`, optional `bias [O]`.
pub(super) fn conv2d(inputs: &[&Tensor], stride: usize, padding: usize, dims: &[usize]) -> Result<Tensor> {
    let [_, channels, high, wide] = inputs[0].sizes()?;
    let [outputs, _, down, across] = inputs[1].sizes()?;
    let sizes = Convolution {
        channels,
        image: [high, wide],
        kernel: [down, across],
        stride,
        padding: [padding; 2],
        outputs,
        output: [dims[2], dims[3]],
    };
    convolve(inputs, sizes, dims)
}

/// `x [N, C, X]`, `weight [O, C, kx]`, optional `bias [O]`.
pub(super) fn conv1d(inputs: &[&Tensor], stride: usize, padding: usize, dims: &[usize]) -> Result<Tensor> {
    let [_, channels, wide] = inputs[0].sizes()?;
    let [outputs, _, across] = inputs[1].sizes()?;
    let (image, kernel, padding, output) = ([1, wide], [1, across], [0, padding], [1, dims[2]]);
    convolve(inputs, Convolution { channels, image, kernel, stride, padding, outputs, output }, dims)
}

fn convolve(inputs: &[&Tensor], sizes: Convolution, dims: &[usize]) -> Result<Tensor> {
    let bias = inputs.get(2).map(|bias| bias.in_order()).transpose()?;
    Tensor::new(run(&inputs[0].in_order()?, &inputs[1].in_order()?, bias.as_deref(), sizes), dims)
}
