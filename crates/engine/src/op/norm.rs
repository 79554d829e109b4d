//! Normalisations.

use crate::compute_error::Result;
use crate::kernel::norm;
use crate::tensor::Tensor;

pub(super) fn layer_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    let [x, weight] = [inputs[0].in_order()?, inputs[1].in_order()?];
    let bias = match inputs.get(2) {
        Some(bias) => bias.in_order()?,
        None => vec![0.0; weight.len()].into(),
    };
    Tensor::new(norm::layer_norm(&x, &weight, &bias, epsilon as f32), inputs[0].dims())
}

/// With a unit offset the factor is one more than the weight, without a weight it is one.
pub(super) fn rms_norm(inputs: &[&Tensor], epsilon: f64, unit_offset: bool) -> Result<Tensor> {
    let mut weight = match inputs.get(1) {
        Some(weight) => weight.in_order()?,
        None => vec![1.0; inputs[0].width()].into(),
    };
    if unit_offset {
        weight.to_mut().iter_mut().for_each(|weight| *weight += 1.0);
    }
    Tensor::new(norm::rms_norm(&inputs[0].in_order()?, &weight, epsilon as f32), inputs[0].dims())
}

/// Over the channels of `[N, C, Y, X]`.
pub(super) fn channel_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    let [_, _, rows, columns] = inputs[0].sizes()?;
    let [x, weight, bias] = [inputs[0].in_order()?, inputs[1].in_order()?, inputs[2].in_order()?];
    Tensor::new(norm::channel_norm(&x, rows * columns, &weight, &bias, epsilon as f32), inputs[0].dims())
}

/// With fixed statistics, folded into one scale and one shift for each channel.
pub(super) fn batch_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    let [_, channels, rows, columns] = inputs[0].sizes()?;
    let [x, weight, bias] = [inputs[0].in_order()?, inputs[1].in_order()?, inputs[2].in_order()?];
    let (mean, variance) = (inputs[3].in_order()?, inputs[4].in_order()?);
    let scale: Vec<f32> = weight.iter().zip(&*variance).map(|(w, v)| w / (v + epsilon as f32).sqrt()).collect();
    let shift: Vec<f32> = (0..channels).map(|at| bias[at] - mean[at] * scale[at]).collect();
    Tensor::new(norm::scale_and_shift(&x, rows * columns, &scale, &shift), inputs[0].dims())
}
