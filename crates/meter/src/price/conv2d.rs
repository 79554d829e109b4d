//! Two-dimensional convolution.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y[n, o, v, u] = sum over c, j, i of x[n, c, s v + j - p, s u + i - p] * W[o, c, j, i] (+ bias[o])",
    text: "Each of P output elements is a dot product over C input channels and a kernel of h * w taps. Taps that fall \
           on padding are counted: kernels compute them.",
    source: "torch.utils.flop_counter convolution counts the same",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let weight = &call.inputs[1];
    let (C, h, w) = (dim(weight, 1), dim(weight, 2), dim(weight, 3));
    let P = elements(&call.output);
    let mut terms = vec![term!(FlopsMatrix, [P, C, h, w], 2 * P * C * h * w)];
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
        // 1 image of 2 x 4 x 4, 3 kernels of 2 x 3 x 3, padding 1: 3 * 16 outputs of 18 multiply-adds = 1,728 FLOPs.
        let op = Op::Conv2d { stride: 1, padding: 1 };
        let cost = cost(op, &[activation([1, 2, 4, 4]), weight([3, 2, 3, 3])]);
        assert_eq!(cost.flops_matrix, Flops::new(1_728));
    }

    #[test]
    fn the_patches_of_a_1024_pixel_page_cost_what_the_flop_counter_counted() {
        let op = Op::Conv2d { stride: 16, padding: 0 };
        let cost = cost(op, &[activation([1, 3, 1024, 1024]), weight([768, 3, 16, 16]), weight([768])]);
        assert_eq!(cost.flops_matrix, Flops::new(4_831_838_208));
        assert_eq!(cost.flops_vector, Flops::new(64 * 64 * 768));
    }

    #[test]
    fn no_images_cost_nothing() {
        let op = Op::Conv2d { stride: 1, padding: 1 };
        assert_eq!(cost(op, &[activation([0, 2, 4, 4]), weight([3, 2, 3, 3])]).flops_matrix, Flops::ZERO);
    }
}
