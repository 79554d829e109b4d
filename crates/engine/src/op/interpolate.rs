//! Resampling of position tables, as a matmul with a small matrix of weights.

use types::InterpolationKind;

use crate::compute_error::{ComputeError, Result};
use crate::cubic;
use crate::kernel::matmul::{Matrix, Output, Threads, multiply};
use crate::tensor::Tensor;

/// Resamples `[1, Y, X, C]` to `size`, or `[L, C]` to `size[0]` rows.
pub(super) fn interpolate(x: &Tensor, kind: InterpolationKind, size: [u64; 2]) -> Result<Tensor> {
    let [down, across] = size.map(|size| size as usize);
    let values = x.in_order()?;
    match kind {
        InterpolationKind::Linear => {
            let [rows, width] = x.sizes()?;
            Tensor::new(resampled(&values, [rows, down], width, linear_row), [down, width])
        }
        InterpolationKind::Bilinear => Err(ComputeError::new("bilinear position tables can only be modelled")),
        InterpolationKind::Bicubic => {
            let [n, high, wide, channels] = x.sizes()?;
            let rows = resampled(&values, [high, down], wide * channels, cubic_row);
            Tensor::new(resampled(&rows, [wide, across], channels, cubic_row), [n, down, across, channels])
        }
    }
}

/// Every `inputs` rows of `width` as `outputs` rows, with weights `[outputs, inputs]` whose rows `fill` writes.
fn resampled(
    x: &[f32],
    [inputs, outputs]: [usize; 2],
    width: usize,
    fill: fn(usize, usize, usize, &mut [f32]),
) -> Vec<f32> {
    let mut weights = vec![0f32; inputs * outputs];
    for (row, weights) in weights.chunks_exact_mut(inputs.max(1)).enumerate() {
        fill(row, inputs, outputs, weights);
    }
    let blocks = x.chunks_exact((inputs * width).max(1));
    let mut y = vec![0f32; blocks.len() * outputs * width];
    for (x, y) in blocks.zip(y.chunks_exact_mut((outputs * width).max(1))) {
        let (weights, x) = (Matrix::rows(&weights, inputs), Matrix::rows(x, width));
        multiply([outputs, width, inputs], 1.0, weights, x, (y, width), Output::Replace, Threads::All);
    }
    y
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
    use crate::tensor::tests::{random, worst};

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
        let x = random(&[1, 6, 6, 3], 1);
        let same = interpolate(&x, InterpolationKind::Bicubic, [6, 6]).unwrap();
        assert!(worst(&same, &x) < 1e-6);
    }

    #[test]
    fn rows_between_two_are_mixed_from_both() {
        let x = Tensor::new(vec![0f32, 10., 4., 30.], [2, 2]).unwrap();
        let wide = interpolate(&x, InterpolationKind::Linear, [4, 0]).unwrap();
        assert_eq!(*wide.in_order().unwrap(), [0., 10., 1., 15., 3., 25., 4., 30.]);
    }
}
