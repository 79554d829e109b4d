//! Rotary positions.

use candle_core::{Device, Result, Tensor};

use super::floats::Held;
use crate::kernel::rotary::rotary as run;

/// Rotates the halves of `x [B, H, S, D]` against each other, the first position being `offset`.
pub(super) fn rotary(x: &Tensor, theta: f64, offset: u64) -> Result<Tensor> {
    x.dims4()?;
    let held = Held::new(x);
    let rotated = run(held.floats()?.rows().view(), theta as f32, offset as usize);
    Tensor::from_vec(rotated, x.dims(), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_turn_by_the_angle_of_their_position_in_any_layout() {
        let x = Tensor::randn(0f32, 1.0, (2, 5, 3, 8), &Device::Cpu).unwrap();
        let turned = x.transpose(1, 2).unwrap();
        let found = rotary(&turned, 10_000.0, 7).unwrap();
        let mut cosines = Vec::new();
        let mut sines = Vec::new();
        for position in 7..12 {
            for pair in 0..4 {
                let angle = position as f32 / 10_000f32.powf(pair as f32 / 4.0);
                cosines.push(angle.cos());
                sines.push(angle.sin());
            }
        }
        let table = |values: Vec<f32>| Tensor::from_vec(values, (5, 4), &Device::Cpu).unwrap();
        let wanted =
            candle_nn::rotary_emb::rope(&turned.contiguous().unwrap(), &table(cosines), &table(sines)).unwrap();
        let worst = (found - wanted).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(worst < 1e-6, "off by {worst}");
    }
}
