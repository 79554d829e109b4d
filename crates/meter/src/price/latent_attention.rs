//! Attention over latent vectors that are keys and values of every head at once.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y = softmax(scale * (q c^T + r k^T)) c, for B batches of H heads, S queries, T latent vectors c of width L \
                 and rotated keys k of width R",
    text: "Scores take L + R multiply-adds per pair, weighted latent vectors L. Softmax and scale take six FLOPs per \
           pair. Latent vectors and keys have no heads: each is read once for all of them, and scores stay on chip. \
           Pairs above the diagonal are skipped.",
    source: "DeepSeek-AI 2024, DeepSeek-V2, section 2.1 and appendix C: the expanding matrices absorbed",
};

pub(super) fn terms(call: &Call<'_>, causal: bool) -> Vec<Term> {
    let [q, turned, latents] = [&call.inputs[0], &call.inputs[1], &call.inputs[2]];
    let (B, H, S, L) = (dim(q, 0), dim(q, 1), dim(q, 2), dim(q, 3));
    let (T, R) = (dim(latents, 2), dim(turned, 3));
    let P = if causal { S * (T - S) + S * (S + 1) / 2 } else { S * T };
    streamed(
        call,
        [
            term!(FlopsMatrix, [B, H, P, L, R], 2 * B * H * P * (L + R)),
            term!(FlopsMatrix, [B, H, P, L], 2 * B * H * P * L),
            term!(FlopsVector, [B, H, P], 6 * B * H * P),
        ],
    )
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{activation, cached, cost};

    #[test]
    fn one_query_of_deepseek_v3_reads_each_latent_vector_once() {
        // 128 heads, 512 + 64 wide: 2 * 128 * 1000 * (576 + 512) = 278,528,000 FLOPs at 1000 positions, and 1000 * 576
        // elements of two bytes, whatever the heads.
        let op = Op::LatentAttention { causal: true, scale: 1.0 };
        let (query, turned) = (activation([1, 128, 1, 512]), activation([1, 128, 1, 64]));
        let cost = cost(op, &[query, turned, cached([1, 1, 1000, 512]), cached([1, 1, 1000, 64])]);
        assert_eq!(cost.flops_matrix, Flops::new(278_528_000));
        assert_eq!(cost.bytes.kv_read, Bytes::new(1_152_000));
    }
}
