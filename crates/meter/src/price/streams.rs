//! Hyper-connections: streams of hidden states that are collapsed into one for a block and mixed with what it gives.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, elements, streamed};
use crate::term::{Term, term};

pub(super) const COLLAPSE: Derivation = Derivation {
    definition: "y = sum over N streams of weight * stream, for hidden states of width O",
    text: "One multiplication and one addition for each element of the streams.",
    source: "Xie et al. 2026, mHC: Manifold-Constrained Hyper-Connections; transformers, DeepseekV4HyperConnection",
};

pub(super) const MIX: Derivation = Derivation {
    definition: "streams = weights * x + M^T streams, where M is N x N and made doubly stochastic by i Sinkhorn \
                 iterations",
    text: "N multiply-adds for each element of the streams, plus one multiplication and one addition for the added \
           term. An iteration divides by sums of rows and of columns, four operations for each element of M.",
    source: "Xie et al. 2026, mHC: Manifold-Constrained Hyper-Connections; transformers, DeepseekV4DecoderLayer",
};

pub(super) fn collapse(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.inputs[0]);
    streamed(call, [term!(FlopsVector, [N], 2 * N)])
}

pub(super) fn mix(call: &Call<'_>, iterations: u64) -> Vec<Term> {
    let streams = &call.inputs[0];
    let (B, S, N, O) = (dim(streams, 0), dim(streams, 1), dim(streams, 2), dim(streams, 3));
    let i = u128::from(iterations);
    streamed(
        call,
        [
            term!(FlopsMatrix, [B, S, N, O], 2 * B * S * N * N * O),
            term!(FlopsVector, [B, S, N, O, i], 2 * B * S * N * O + 4 * B * S * N * N * i),
        ],
    )
}

#[cfg(test)]
mod tests {
    use types::{Flops, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn four_streams_of_eight_worked_by_hand() {
        let (streams, weights, x) = (activation([1, 3, 4, 8]), activation([1, 3, 24]), activation([1, 3, 8]));
        let collapsed = cost(Op::CollapseStreams, &[streams, weights]);
        assert_eq!((collapsed.flops_matrix, collapsed.flops_vector), (Flops::ZERO, Flops::new(2 * 96)));
        let mixed = cost(Op::MixStreams { iterations: 20 }, &[streams, weights, x]);
        assert_eq!(mixed.flops_matrix, Flops::new(2 * 3 * 16 * 8));
        assert_eq!(mixed.flops_vector, Flops::new(2 * 96 + 4 * 3 * 16 * 20));
    }
}
