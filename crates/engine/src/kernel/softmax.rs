//! Softmax of rows.

use super::math::exp;
use super::{filled, fold, vectorised};

/// Over rows of `width`.
pub(crate) fn softmax(x: &[f32], width: usize) -> Vec<f32> {
    filled(x.len(), width, |start, piece| {
        piece.copy_from_slice(&x[start..start + piece.len()]);
        vectorised(
            #[inline(always)]
            || {
                for row in piece.chunks_exact_mut(width.max(1)) {
                    let largest = largest(row);
                    let factor = 1.0 / exponentials(row, largest);
                    row.iter_mut().for_each(|value| *value *= factor);
                }
            },
        );
    })
}

/// The largest of a row; minus infinity when it is empty.
#[inline(always)]
pub(crate) fn largest(row: &[f32]) -> f32 {
    fold(row, f32::NEG_INFINITY, larger, larger)
}

/// Without the library's care for NaN, which costs it the vector registers.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// Replaces every value by `e^(value - largest)` and gives back their sum.
#[inline(always)]
pub(crate) fn exponentials(row: &mut [f32], largest: f32) -> f32 {
    for value in row.iter_mut() {
        *value = exp(*value - largest);
    }
    fold(
        row,
        0.0,
        #[inline(always)]
        |sum, value| sum + value,
        |a, b| a + b,
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, worst};
    use super::*;

    #[test]
    fn rows_equal_the_definition_and_sum_to_one() {
        for width in [1, 7, 64, 100] {
            let values: Vec<f32> = numbers(width * 500, 3).into_iter().map(|value| value * 20.0).collect();
            let by_definition = |row: &[f32]| {
                let all: Vec<f64> = row.iter().map(|value| f64::from(*value).exp()).collect();
                let sum: f64 = all.iter().sum();
                all.into_iter().map(move |value| (value / sum) as f32)
            };
            let wanted: Vec<f32> = values.chunks(width).flat_map(by_definition).collect();
            let found = softmax(&values, width);
            assert!(worst(&found, &wanted) < 1e-6, "{width}");
            assert!(found.chunks(width).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
        }
    }
}
