//! Choosing the positions that sparse attention sees.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "the positions t with the largest sum over H heads of w[s, h] * relu(q[s, h] k[t] * scale), for each of S \
                 queries and T keys of width D",
    text: "Every query is multiplied with every key, D multiply-adds per pair and head, and heads are summed by \
           weight, one multiply-add per pair and head. relu and scale take two FLOPs per pair and head; finding the \
           largest takes one per pair. Keys are read once for all heads.",
    source: "DeepSeek-AI 2025, DeepSeek-V3.2-Exp, section 2.1; transformers, DeepseekV32Indexer",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let (q, k) = (&call.inputs[0], &call.inputs[1]);
    let (B, H, S, D, T) = (dim(q, 0), dim(q, 1), dim(q, 2), dim(q, 3), dim(k, 2));
    streamed(
        call,
        [
            term!(FlopsMatrix, [B, H, S, T, D], 2 * B * H * S * T * D),
            term!(FlopsMatrix, [B, H, S, T], 2 * B * H * S * T),
            term!(FlopsVector, [B, H, S, T], 2 * B * H * S * T + B * S * T),
        ],
    )
}

#[cfg(test)]
mod tests {
    use types::{Flops, Op};

    use crate::price::sample::{activation, cached, cost};

    #[test]
    fn one_query_of_deepseek_v3_2_scores_every_key() {
        // 64 heads of 128 and 1000 keys: 2 * 64 * 1000 * (128 + 1).
        let inputs = [activation([1, 64, 1, 128]), cached([1, 1, 1000, 128]), activation([1, 1, 64])];
        assert_eq!(cost(Op::IndexPositions { keep: 2048 }, &inputs).flops_matrix, Flops::new(16_512_000));
    }
}
