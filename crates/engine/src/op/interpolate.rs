//! Resampling of position tables, as a matmul with a small matrix of weights.

use candle_core::{DType, Device, Result, Tensor};
use types::InterpolationKind;

use crate::cubic;

/// Resamples `[1, Y, X, C]` to `size`, or `[L, C]` to `size[0]` rows.
pub(super) fn interpolate(x: &Tensor, kind: InterpolationKind, size: [u64; 2]) -> Result<Tensor> {
    let dtype = x.dtype();
    let single = x.to_dtype(DType::F32)?;
    let resampled = match kind {
        InterpolationKind::Linear => {
            let (rows, _) = single.dims2()?;
            matrix(rows, size[0] as usize, linear_row, x.device())?.matmul(&single.contiguous()?)?
        }
        InterpolationKind::Bilinear => candle_core::bail!("bilinear position tables can only be modelled"),
        InterpolationKind::Bicubic => {
            let (n, high, wide, channels) = single.dims4()?;
            let [down, across] = [size[0] as usize, size[1] as usize];
            let over_rows = matrix(high, down, cubic_row, x.device())?;
            let over_columns = matrix(wide, across, cubic_row, x.device())?;
            let rows = single.contiguous()?.reshape((n, high, wide * channels))?;
            let rows = over_rows.broadcast_as((n, down, high))?.contiguous()?.matmul(&rows)?;
            let columns = rows.reshape((n * down, wide, channels))?;
            let columns = over_columns.broadcast_as((n * down, across, wide))?.contiguous()?.matmul(&columns)?;
            columns.reshape((n, down, across, channels))?
        }
    };
    resampled.to_dtype(dtype)
}

/// Weights `[out, in]` whose rows `fill` writes.
fn matrix(inputs: usize, outputs: usize, fill: fn(usize, usize, usize, &mut [f32]), device: &Device) -> Result<Tensor> {
    let mut weights = vec![0f32; inputs * outputs];
    for (row, weights) in weights.chunks_exact_mut(inputs).enumerate() {
        fill(row, inputs, outputs, weights);
    }
    Tensor::from_vec(weights, (outputs, inputs), device)
}

/// Two neighbours, pixel centres at halves, edges held.
fn linear_row(row: usize, inputs: usize, outputs: usize, weights: &mut [f32]) {
    let place = ((row as f32 + 0.5) * (inputs as f32 / outputs as f32) - 0.5).max(0.0);
    let first = (place as usize).min(inputs - 1);
    let second = (first + 1).min(inputs - 1);
    let part = place - first as f32;
    weights[first] += 1.0 - part;
    weights[second] += part;
}

/// The antialiased cubic kernel.
fn cubic_row(row: usize, inputs: usize, outputs: usize, weights: &mut [f32]) {
    let (first, taps) = cubic::taps(row, inputs, outputs);
    for (weight, tap) in weights[first..].iter_mut().zip(taps) {
        *weight = tap as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_every_output_sum_to_one() {
        for (inputs, outputs) in [(16, 4), (64, 40), (16, 20), (5, 5)] {
            for fill in [linear_row, cubic_row] {
                for row in 0..outputs {
                    let mut weights = vec![0f32; inputs];
                    fill(row, inputs, outputs, &mut weights);
                    let sum: f32 = weights.iter().sum();
                    assert!((sum - 1.0).abs() < 1e-5, "{inputs} to {outputs}, row {row}: {sum}");
                }
            }
        }
    }

    #[test]
    fn the_same_size_changes_nothing() {
        let x = Tensor::randn(0f32, 1.0, (1, 6, 6, 3), &Device::Cpu).unwrap();
        let same = interpolate(&x, InterpolationKind::Bicubic, [6, 6]).unwrap();
        let worst = (x - same).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(worst < 1e-6, "off by {worst}");
    }
}
