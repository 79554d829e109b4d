//! `y = x W^T + bias`.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y[r, o] = sum over i of x[r, i] * W[o, i] (+ bias[o])",
    text: "Each of R * O outputs is a dot product of length I: I multiplications and I additions, two FLOPs for each \
           multiply-add. A bias adds one addition per output, done by the vector unit. x and W are read once and y is \
           written once: a well-tiled GEMM keeps its operands on chip.",
    source: "Golub and Van Loan, Matrix Computations, section 1.1.11; torch.utils.flop_counter mm and addmm count the same",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let I = u128::from(call.inputs[0].shape.last());
    let O = u128::from(call.output.shape.last());
    let R = elements(&call.inputs[0]) / I.max(1);
    let mut terms = vec![term!(FlopsMatrix, [R, I, O], 2 * R * I * O)];
    if call.inputs.len() > 2 {
        terms.push(term!(FlopsVector, [R, O], R * O));
    }
    streamed(call, terms)
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{activation, cost, weight};

    #[test]
    fn a_small_product_worked_by_hand() {
        // 3 rows, 5 inputs, 7 outputs: 3 * 7 dot products of 5 multiply-adds = 210 FLOPs; 21 bias additions.
        // bf16: W 35 and bias 7 elements = 84 B, x 15 = 30 B, y 21 = 42 B.
        let cost = cost(Op::Linear, &[activation([3, 5]), weight([7, 5]), weight([7])]);
        assert_eq!(cost.flops_matrix, Flops::new(210));
        assert_eq!(cost.flops_vector, Flops::new(21));
        assert_eq!(cost.bytes.weights, Bytes::new(84));
        assert_eq!(cost.bytes.activations_in, Bytes::new(30));
        assert_eq!(cost.bytes.activations_out, Bytes::new(42));
    }

    #[test]
    fn the_head_of_deepseek_ocr_costs_what_the_flop_counter_counted() {
        let cost = cost(Op::Linear, &[activation([1, 286, 1280]), weight([129_280, 1280])]);
        assert_eq!(cost.flops_matrix, Flops::new(94_653_644_800));
    }

    #[test]
    fn twice_the_rows_cost_twice_the_flops_and_the_same_weights() {
        let once = cost(Op::Linear, &[activation([8, 16]), weight([4, 16])]);
        let twice = cost(Op::Linear, &[activation([16, 16]), weight([4, 16])]);
        assert_eq!(twice.flops_matrix, once.flops_matrix * 2);
        assert_eq!(twice.bytes.weights, once.bytes.weights);
    }

    #[test]
    fn no_rows_cost_no_flops() {
        assert_eq!(cost(Op::Linear, &[activation([0, 16]), weight([4, 16])]).flops_matrix, Flops::ZERO);
    }
}
