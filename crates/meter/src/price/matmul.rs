//! `y = a b^T`, batched, where both operands are computed values.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y[n, m, o] = sum over k of a[n, m, k] * b[n, o, k]",
    text: "Batch * M * O dot products of length K, two FLOPs for each multiply-add.",
    source: "torch.utils.flop_counter bmm counts the same",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let [a, b] = [&call.inputs[0], &call.inputs[1]];
    let rank = a.shape.rank();
    let (M, K, O) = (dim(a, rank - 2), dim(a, rank - 1), dim(b, rank - 2));
    let B = elements(a) / (M * K).max(1);
    streamed(call, [term!(FlopsMatrix, [B, M, K, O], 2 * B * M * K * O)])
}

#[cfg(test)]
mod tests {
    use types::{Flops, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn the_relative_rows_of_one_global_sam_block_cost_what_the_flop_counter_counted() {
        // 64 rows, 12 heads times 64 columns, head width 64, 64 keys: 2 * 64 * 768 * 64 * 64 = 402,653,184 FLOPs.
        // Rows and columns of 4 global blocks and 8 windowed ones add up to the counted 4,907,139,072.
        let global = cost(Op::MatMulTransposed, &[activation([64, 768, 64]), activation([64, 64, 64])]);
        assert_eq!(global.flops_matrix, Flops::new(402_653_184));
        let windowed = cost(Op::MatMulTransposed, &[activation([14, 4200, 64]), activation([14, 14, 64])]);
        let all = global.flops_matrix * 8 + windowed.flops_matrix * 16;
        assert_eq!(all, Flops::new(4_907_139_072));
    }

    #[test]
    fn an_empty_inner_dimension_costs_nothing() {
        let cost = cost(Op::MatMulTransposed, &[activation([2, 3, 0]), activation([2, 4, 0])]);
        assert_eq!(cost.flops_matrix, Flops::ZERO);
    }
}
