//! Normalisations.

use candle_core::{D, Device, Result, Tensor};

use super::floats::TensorData;
use crate::kernel::norm;

pub(super) fn layer_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    let [x, weight] = [0, 1].map(|index| TensorData::new(inputs[index]));
    let bias = match inputs.get(2) {
        Some(bias) => TensorData::new(bias).in_order()?.into_owned(),
        None => vec![0.0; weight.in_order()?.len()],
    };
    let y = norm::layer_norm(&x.in_order()?, &weight.in_order()?, &bias, epsilon as f32);
    Tensor::from_vec(y, inputs[0].dims(), &Device::Cpu)
}

/// With a unit offset the factor is one more than the weight, without a weight it is one.
pub(super) fn rms_norm(inputs: &[&Tensor], epsilon: f64, unit_offset: bool) -> Result<Tensor> {
    let x = TensorData::new(inputs[0]);
    let mut weight = match inputs.get(1) {
        Some(weight) => TensorData::new(weight).in_order()?.into_owned(),
        None => vec![1.0; inputs[0].dim(D::Minus1)?],
    };
    if unit_offset {
        weight.iter_mut().for_each(|weight| *weight += 1.0);
    }
    Tensor::from_vec(norm::rms_norm(&x.in_order()?, &weight, epsilon as f32), inputs[0].dims(), &Device::Cpu)
}

/// Over the channels of `[N, C, Y, X]`.
pub(super) fn channel_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    let (_, _, rows, columns) = inputs[0].dims4()?;
    let [x, weight, bias] = [0, 1, 2].map(|index| TensorData::new(inputs[index]));
    let (weight, bias) = (weight.in_order()?, bias.in_order()?);
    let y = norm::channel_norm(&x.in_order()?, rows * columns, &weight, &bias, epsilon as f32);
    Tensor::from_vec(y, inputs[0].dims(), &Device::Cpu)
}

/// With fixed statistics, folded into one scale and one shift for each channel.
pub(super) fn batch_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    let [x, weight, bias, mean, variance] = [inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]];
    let scale = (weight / (variance + epsilon)?.sqrt()?)?;
    let shift = (bias - (mean * &scale)?)?;
    let channels = weight.elem_count();
    let folded = |tensor: &Tensor| tensor.reshape((1, channels, 1, 1));
    x.broadcast_mul(&folded(&scale)?)?.broadcast_add(&folded(&shift)?)
}
