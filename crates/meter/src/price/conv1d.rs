//! One-dimensional convolution.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y[n, o, u] = sum over c, i of x[n, c, s u + i - p] * W[o, c, i] (+ bias[o])",
    text: "Each of P output elements is a dot product over C input channels and a kernel of w taps. Taps that fall on \
           padding are counted: kernels compute them.",
    source: "torch.utils.flop_counter convolution counts the same",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let weight = &call.inputs[1];
    let (C, w) = (dim(weight, 1), dim(weight, 2));
    let P = elements(&call.output);
    let mut terms = vec![term!(FlopsMatrix, [P, C, w], 2 * P * C * w)];
    if call.inputs.len() > 2 {
        terms.push(term!(FlopsVector, [P], P));
    }
    streamed(call, terms)
}

#[cfg(test)]
mod tests {
    use types::{Flops, Op};

    use crate::price::sample::{activation, cost, weight};

    #[test]
    fn a_small_convolution_worked_by_hand() {
        // 2 channels of 6 values, 3 kernels of 2 x 3 in steps of 2 with padding: 3 * 3 outputs of 6 multiply-adds.
        let op = Op::Conv1d { stride: 2, padding: 1 };
        let cost = cost(op, &[activation([1, 2, 6]), weight([3, 2, 3]), weight([3])]);
        assert_eq!((cost.flops_matrix, cost.flops_vector), (Flops::new(2 * 9 * 6), Flops::new(9)));
    }

    #[test]
    fn twice_the_batch_costs_twice_the_flops_and_no_batch_none() {
        let flops = |batch| {
            let op = Op::Conv1d { stride: 1, padding: 1 };
            cost(op, &[activation([batch, 80, 3000]), weight([384, 80, 3])]).flops_matrix
        };
        // The first convolution of Whisper tiny over 30 seconds.
        assert_eq!(flops(1), Flops::new(2 * 384 * 3000 * 80 * 3));
        assert_eq!((flops(2), flops(0)), (flops(1) * 2, Flops::ZERO));
    }
}
