//! Mamba-2: a state-space layer with one decay a head, computed chunk by chunk.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use types::AttentionKind;

use super::{Call, Derivation, dim, streamed};
use crate::term::{Quantity, Symbols, Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "h = exp(dt * A) * h + dt * x b^T; y = h c + D * x, position by position, for B batches of H heads of width P \
                 with a state of N for each element; b and c are shared by the heads of one of G groups",
    text: "Many positions are processed in chunks of C, n of them, the last one padded: b with c takes C^2 N \
           multiply-adds per chunk, the weights with x C^2 P, and writing and reading the state C P N each. The \
           published code computes the first for every head and passes states on by a matmul over all chunks, (n + \
           1)^2 P N. Fused kernels compute it once per group and pass states on in sequence, which is vector work. One \
           position takes five operations for each element of the state beside the matmul that reads it. The state is \
           kept in single precision: it is written once per pass, and read once by a single position.",
    source: "Dao and Gu 2024, Transformers are SSMs, section 6 and listing 1; transformers, mamba2_chunk_scan and \
             mamba2_selective_state_update; mamba_ssm, ssd_combined and ssd_bmm",
};

/// Bytes of an element of the state.
const SINGLE: u128 = 4;

pub(super) fn terms(call: &Call<'_>, chunk: u64) -> Vec<Term> {
    let (x, to) = (&call.inputs[0], &call.inputs[1]);
    let (B, S, H, P) = (dim(x, 0), dim(x, 1), dim(x, 2), dim(x, 3));
    let (G, N) = (dim(to, 2), dim(to, 3));
    let state = |quantity: Quantity| Term {
        quantity,
        formula: "4 * B * H * P * N",
        symbols: Symbols::new([("B", B), ("H", H), ("P", P), ("N", N)]),
        value: SINGLE * B * H * P * N,
    };
    let mut terms = if S == 1 {
        vec![
            term!(FlopsMatrix, [B, H, P, N], 2 * B * H * P * N),
            term!(FlopsVector, [B, H, P, N], 5 * B * H * P * N),
            state(Quantity::KvRead),
        ]
    } else {
        let C = u128::from(chunk);
        let n = S.div_ceil(C);
        let mut terms = vec![
            term!(FlopsMatrix, [B, H, n, C, P], 2 * B * H * n * C * C * P),
            term!(FlopsMatrix, [B, H, n, C, P, N], 4 * B * H * n * C * P * N),
            term!(FlopsVector, [B, H, n, C], 3 * B * H * n * C * C),
        ];
        terms.extend(match call.attention {
            AttentionKind::Eager => [
                term!(FlopsMatrix, [B, H, n, C, N], 2 * B * H * n * C * C * N),
                term!(FlopsMatrix, [B, H, n, P, N], 2 * B * H * (n + 1) * (n + 1) * P * N),
            ],
            AttentionKind::Flash => [
                term!(FlopsMatrix, [B, G, n, C, N], 2 * B * G * n * C * C * N),
                term!(FlopsVector, [B, H, n, P, N], 2 * B * H * n * P * N),
            ],
        });
        terms
    };
    terms.push(state(Quantity::KvWrite));
    streamed(call, terms)
}

#[cfg(test)]
mod tests {
    use types::{AttentionKind, Bytes, Cost, Flops, Op, Spec};

    use crate::price::sample::{activation, cost, cost_of_kind, weight};

    /// Four heads of 6 in two groups, with a state of 8.
    fn inputs(positions: u64) -> Vec<Spec> {
        let shared = activation([1, positions, 2, 8]);
        let steps = activation([1, positions, 4]);
        vec![activation([1, positions, 4, 6]), shared, shared, steps, weight([4]), weight([4]), weight([4])]
    }

    fn scan(positions: u64) -> Cost {
        cost(Op::StateSpace { chunk: 16 }, &inputs(positions))
    }

    #[test]
    fn two_chunks_worked_by_hand() {
        // 20 positions are two chunks of 16. A head: b with c 2 * 256 * 8, weights with x 2 * 256 * 6, the state 2 * 2 * 16 * 48,
        // three boundaries 9 * 48 multiply-adds.
        let each = 2 * (2 * 256 * 8 + 2 * 256 * 6 + 2 * 2 * 16 * 48 + 9 * 48);
        assert_eq!(scan(20).flops_matrix, Flops::new(4 * each));
        assert_eq!(scan(20).bytes.kv_read, Bytes::ZERO);
        assert_eq!(scan(20).bytes.kv_write, Bytes::new(4 * 4 * 48));
    }

    #[test]
    fn fused_kernels_share_scores_in_a_group_and_grow_with_the_length() {
        let flash = |positions| {
            cost_of_kind(Op::StateSpace { chunk: 16 }, &inputs(positions), AttentionKind::Flash).flops_matrix
        };
        let each = 2 * (2 * 256 * 6 + 2 * 2 * 16 * 48);
        assert_eq!(flash(20), Flops::new(4 * each + 2 * 2 * 2 * 256 * 8));
        assert_eq!(flash(320).get(), 10 * flash(32).get());
    }

    #[test]
    fn one_position_reads_and_writes_the_state() {
        assert_eq!(scan(1).flops_matrix, Flops::new(2 * 4 * 48));
        assert_eq!((scan(1).bytes.kv_read, scan(1).bytes.kv_write), (Bytes::new(4 * 4 * 48), Bytes::new(4 * 4 * 48)));
    }
}
