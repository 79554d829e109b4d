//! Nonlinearities, element by element.

use super::math::{erf, sigmoid};
use super::{filled, vectorised};

/// `x / 2 * (1 + erf(x / sqrt 2))`.
pub(crate) fn gelu(x: &[f32]) -> Vec<f32> {
    map(
        x,
        #[inline(always)]
        |x| 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)),
    )
}

/// `x * sigmoid(1.702 x)`.
pub(crate) fn quick_gelu(x: &[f32]) -> Vec<f32> {
    map(
        x,
        #[inline(always)]
        |x| x * sigmoid(1.702 * x),
    )
}

/// `x * sigmoid(x)`.
pub(crate) fn silu(x: &[f32]) -> Vec<f32> {
    map(
        x,
        #[inline(always)]
        |x| x * sigmoid(x),
    )
}

/// `max(x, 0)`.
pub(crate) fn relu(x: &[f32]) -> Vec<f32> {
    map(
        x,
        #[inline(always)]
        |x| x.max(0.0),
    )
}

fn map(x: &[f32], function: impl Fn(f32) -> f32 + Sync) -> Vec<f32> {
    filled(x.len(), 1, |start, piece| {
        let x = &x[start..start + piece.len()];
        vectorised(
            #[inline(always)]
            || {
                for (y, x) in piece.iter_mut().zip(x) {
                    *y = function(*x);
                }
            },
        );
    })
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::super::tests::{numbers, worst};
    use super::*;

    #[test]
    fn activations_equal_the_tensor_librarys() {
        let values: Vec<f32> = numbers(40_003, 1).into_iter().map(|value| value * 5.0).collect();
        let tensor = Tensor::new(&values[..], &Device::Cpu).unwrap();
        let flat = |tensor: Tensor| tensor.to_vec1::<f32>().unwrap();
        assert!(worst(&gelu(&values), &flat(tensor.gelu_erf().unwrap())) < 2e-6);
        assert!(worst(&silu(&values), &flat(tensor.silu().unwrap())) < 2e-6);
        assert!(worst(&relu(&values), &flat(tensor.relu().unwrap())) == 0.0);
        let wanted: Vec<f32> = values.iter().map(|x| x / (1.0 + (-1.702 * x).exp())).collect();
        assert!(worst(&quick_gelu(&values), &wanted) < 2e-6);
    }
}
