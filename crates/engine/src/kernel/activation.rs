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

/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`.
pub(crate) fn gelu_tanh(x: &[f32]) -> Vec<f32> {
    // (1 + tanh(y)) / 2 is sigmoid(2 y).
    const FACTOR: f32 = 2.0 * std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::FRAC_1_SQRT_2;
    map(
        x,
        #[inline(always)]
        |x| x * sigmoid(FACTOR * (x + 0.044_715 * x * x * x)),
    )
}

/// `1 / (1 + exp(-x))`.
pub(crate) fn logistic(x: &[f32]) -> Vec<f32> {
    map(x, sigmoid)
}

/// `x * factor`.
pub(crate) fn scale(x: &[f32], factor: f32) -> Vec<f32> {
    map(
        x,
        #[inline(always)]
        |x| x * factor,
    )
}

/// `limit * tanh(x / limit)`.
pub(crate) fn softcap(x: &[f32], limit: f32) -> Vec<f32> {
    map(x, |x| limit * (x / limit).tanh())
}

/// Gate and up values alternating: `(up + 1) * gate * sigmoid(alpha * gate)`, clamped.
pub(crate) fn clamped_gate(x: &[f32], limit: f32, alpha: f32) -> Vec<f32> {
    filled(x.len() / 2, 1, |start, piece| {
        for (y, pair) in piece.iter_mut().zip(x[2 * start..].chunks_exact(2)) {
            let (gate, up) = (pair[0].min(limit), pair[1].clamp(-limit, limit));
            *y = (up + 1.0) * gate * sigmoid(alpha * gate);
        }
    })
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
pub(crate) fn squared_relu(x: &[f32]) -> Vec<f32> {
    relu(x).into_iter().map(|value| value * value).collect()
}

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
    use super::super::tests::{numbers, worst};
    use super::*;

    /// The integral of the bell curve, by Simpson's rule.
    fn error_function(x: f64) -> f64 {
        let steps = 200;
        let step = x / f64::from(steps);
        let weight = |index: i32| if index == 0 || index == steps { 1.0 } else { f64::from(2 + index % 2 * 2) };
        let sum: f64 = (0..=steps).map(|index| weight(index) * (-(step * f64::from(index)).powi(2)).exp()).sum();
        sum * step / 3.0 * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn activations_equal_their_definitions() {
        let values: Vec<f32> = numbers(40_003, 1).into_iter().map(|value| value * 5.0).collect();
        let by = |function: fn(f64) -> f64| -> Vec<f32> {
            values.iter().map(|value| function(f64::from(*value)) as f32).collect()
        };
        assert!(worst(&gelu(&values), &by(|x| 0.5 * x * (1.0 + error_function(x * 0.5f64.sqrt())))) < 2e-6);
        let tanh =
            |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh());
        assert!(worst(&gelu_tanh(&values), &by(tanh)) < 2e-6);
        assert!(worst(&silu(&values), &by(|x| x / (1.0 + (-x).exp()))) < 2e-6);
        assert!(worst(&quick_gelu(&values), &by(|x| x / (1.0 + (-1.702 * x).exp()))) < 2e-6);
        assert!(worst(&logistic(&values), &by(|x| 1.0 / (1.0 + (-x).exp()))) < 1e-6);
        assert_eq!(relu(&values), by(|x| x.max(0.0)));
    }
}
