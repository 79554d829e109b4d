//! Normalisations.

use candle_core::{Result, Tensor};

pub(super) fn layer_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    candle_nn::ops::layer_norm(&inputs[0].contiguous()?, inputs[1], inputs[2], epsilon as f32)
}

pub(super) fn rms_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    candle_nn::ops::rms_norm(&inputs[0].contiguous()?, inputs[1], epsilon as f32)
}

/// Over the channels of `[N, C, Y, X]`: done with channels last, where a row is one place.
pub(super) fn channel_norm(inputs: &[&Tensor], epsilon: f64) -> Result<Tensor> {
    let rows = inputs[0].permute([0, 2, 3, 1])?.contiguous()?;
    let normed = candle_nn::ops::layer_norm(&rows, inputs[1], inputs[2], epsilon as f32)?;
    normed.permute([0, 3, 1, 2])?.contiguous()
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
