//! Rotary positions.

use candle_core::{Result, Tensor};

/// Rotates the halves of `x [B, H, S, D]` against each other, the first position being `offset`.
pub(super) fn rotary(x: &Tensor, theta: f64, offset: u64) -> Result<Tensor> {
    let (_, _, length, width) = x.dims4()?;
    let half = width / 2;
    let mut cosines = Vec::with_capacity(length * half);
    let mut sines = Vec::with_capacity(length * half);
    for position in 0..length {
        for pair in 0..half {
            // Angles in single precision, as published: long prompts otherwise drift from the reference.
            let frequency = 1.0 / (theta as f32).powf((2 * pair) as f32 / width as f32);
            let angle = (offset as usize + position) as f32 * frequency;
            cosines.push(angle.cos());
            sines.push(angle.sin());
        }
    }
    let table = |values: Vec<f32>| Tensor::from_vec(values, (length, half), x.device())?.to_dtype(x.dtype());
    candle_nn::rotary_emb::rope(&x.contiguous()?, &table(cosines)?, &table(sines)?)
}
