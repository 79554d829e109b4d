//! Linear layers: few rows as dot products, many as a GEMM.

use half::bf16;
use rayon::prelude::*;

use super::dot::dots;
use super::matmul::{Matrix, Output, Threads, multiply};
use super::pages::room;
use super::{PIECE, filled};

/// Up to this many rows, reading the weights takes longer than multiplying, and rearranging them for a GEMM
/// would take longer still.
const FEW_ROWS: usize = 8;
/// Weights widened at a time, 4 MiB of single-precision numbers: they are multiplied while they are in the cache.
const WIDENED: usize = 1 << 20;

/// Weights `[outputs, inputs]`, as stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WeightSlice<'a> {
    Single(&'a [f32]),
    Brain(&'a [bf16]),
}

/// `x [rows, inputs]` times `weight [outputs, inputs]` transposed, plus `bias [outputs]`.
pub(crate) fn linear(x: &[f32], inputs: usize, weight: WeightSlice<'_>, bias: Option<&[f32]>) -> Vec<f32> {
    let rows = x.len() / inputs.max(1);
    if rows <= FEW_ROWS {
        let mut y = match weight {
            WeightSlice::Single(weight) => dots(x, weight, inputs),
            WeightSlice::Brain(weight) => dots(x, weight, inputs),
        };
        if let Some(bias) = bias {
            for row in y.chunks_exact_mut(bias.len()) {
                row.iter_mut().zip(bias).for_each(|(y, bias)| *y += bias);
            }
        }
        return y;
    }
    let outputs = match weight {
        WeightSlice::Single(weight) => weight.len() / inputs.max(1),
        WeightSlice::Brain(weight) => weight.len() / inputs.max(1),
    };
    // The GEMM adds to the bias, which spares a pass over the output.
    let mut y = filled(rows * outputs, outputs, |_, piece| {
        if let Some(bias) = bias {
            piece.chunks_exact_mut(outputs.max(1)).for_each(|row| row.copy_from_slice(bias));
        }
    });
    let x = Matrix::rows(x, inputs);
    let mut times = |weight: &[f32], from: usize| {
        let sizes = [rows, weight.len() / inputs, inputs];
        let weight = Matrix::rows(weight, inputs).transposed();
        multiply(sizes, 1.0, x, weight, (&mut y[from..], outputs), Output::Add, Threads::All);
    };
    match weight {
        WeightSlice::Single(weight) => times(weight, 0),
        WeightSlice::Brain(weight) => {
            let block = (WIDENED / inputs).max(1);
            for (index, weight) in weight.chunks(block * inputs).enumerate() {
                times(&widen(weight), index * block);
            }
        }
    }
    y
}

/// The same numbers in single precision.
pub(crate) fn widen(values: &[bf16]) -> Vec<f32> {
    filled(values.len(), 1, |start, piece| {
        for (wide, narrow) in piece.iter_mut().zip(&values[start..]) {
            *wide = f32::from_bits(u32::from(narrow.to_bits()) << 16);
        }
    })
}

/// The nearest numbers that take half the bytes.
pub(crate) fn narrow(values: &[f32]) -> Vec<bf16> {
    let mut narrow = room(values.len());
    values.par_iter().with_min_len(PIECE).map(|value| bf16::from_f32(*value)).collect_into_vec(&mut narrow);
    narrow
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, worst};
    use super::*;

    #[test]
    fn few_rows_and_many_give_the_same_in_both_types() {
        for (inputs, outputs) in [(64, 48), (33, 70), (300, 5000)] {
            let (x, weight, bias) = (numbers(20 * inputs, 1), numbers(outputs * inputs, 2), numbers(outputs, 3));
            let narrowed = narrow(&weight);
            let rounded = widen(&narrowed);
            let cases = [(WeightSlice::Single(&weight), &weight), (WeightSlice::Brain(&narrowed), &rounded)];
            for (stored, weight) in cases {
                let many = linear(&x, inputs, stored, Some(&bias));
                let by_row: Vec<f32> =
                    x.chunks(inputs).flat_map(|row| linear(row, inputs, stored, Some(&bias))).collect();
                assert!(worst(&many, &by_row) < 1e-3, "{inputs} {outputs}");
                let first: f32 = x[..inputs].iter().zip(weight.iter()).map(|(x, w)| x * w).sum();
                assert!((many[0] - first - bias[0]).abs() < 1e-3);
                let bare = linear(&x, inputs, stored, None);
                assert!((many[1] - bare[1] - bias[1]).abs() < 1e-4);
            }
        }
    }
}
