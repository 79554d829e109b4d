//! Expert scores and the choice of the best.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, streamed};
use crate::term::{Term, term};

pub(super) const SOFTMAX: Derivation = Derivation {
    definition: "y = exp(x - max(x)) / sum(exp(x - max(x)))",
    text: "Five per element: maximum, subtraction, exponential, sum, division.",
    source: "counted from the definition",
};

pub(super) const TOP_K: Derivation = Derivation {
    definition: "indices of the k largest of each row",
    text: "k selections, each one comparison per element: an upper bound that real selections stay below, and \
           negligible either way.",
    source: "counted from the definition",
};

pub(super) const LIMIT_GROUPS: Derivation = Derivation {
    definition: "scores of experts outside the m best of g groups are masked; the score of a group is the sum of its n \
                 best",
    text: "n selections within every group, one comparison per score each; m selections among g groups for each token; \
           one choice per score.",
    source: "counted from the definition; DeepSeek-V3 technical report 2024, section 2.1.2",
};

pub(super) fn limit_groups(call: &Call<'_>, [groups, keep, best]: [u64; 3]) -> Vec<Term> {
    let (N, g, m, n) = (elements(&call.inputs[0]), u128::from(groups), u128::from(keep), u128::from(best));
    let T = N / u128::from(call.inputs[0].shape.last().max(1));
    streamed(call, [term!(FlopsVector, [n, N, m, g, T], n * N + m * g * T + N)])
}

pub(super) fn softmax(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    streamed(call, [term!(FlopsVector, [N], 5 * N)])
}

pub(super) fn top_k(call: &Call<'_>, k: u64) -> Vec<Term> {
    let (N, k) = (elements(&call.inputs[0]), u128::from(k));
    streamed(call, [term!(FlopsVector, [k, N], k * N)])
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn scores_of_sixty_four_experts() {
        let scores = activation([3, 64]);
        assert_eq!(cost(Op::Softmax, &[scores]).flops_vector, Flops::new(5 * 192));
        let choice = cost(Op::TopK { k: 6 }, &[scores]);
        assert_eq!(choice.flops_vector, Flops::new(6 * 192));
        assert_eq!(choice.bytes.activations_out, Bytes::new(3 * 6 * 8));
    }
}
