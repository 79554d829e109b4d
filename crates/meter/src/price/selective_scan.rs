//! Mamba: a state-space layer whose every channel has decays of its own.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, streamed};
use crate::term::{Quantity, Symbols, Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "h = exp(dt * A) * h + dt * b * x; y = h c + D * x, position by position, for B batches of C channels with a \
                 state of N each",
    text: "Reading the state is a matmul of N multiply-adds for each channel and position. Discretising and writing it \
           take seven operations for each element and position. The state is kept in single precision: it is written \
           once per pass, and read once by a single position.",
    source: "Gu and Dao 2023, Mamba, section 3.3; transformers, mamba_selective_scan and mamba_selective_state_update",
};

/// Bytes of an element of the state.
const SINGLE: u128 = 4;

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let (x, to) = (&call.inputs[0], &call.inputs[2]);
    let (B, S, C, N) = (dim(x, 0), dim(x, 1), dim(x, 2), dim(to, 2));
    let state = |quantity: Quantity| Term {
        quantity,
        formula: "4 * B * C * N",
        symbols: Symbols::new([("B", B), ("C", C), ("N", N)]),
        value: SINGLE * B * C * N,
    };
    let mut terms = vec![
        term!(FlopsMatrix, [B, S, C, N], 2 * B * S * C * N),
        term!(FlopsVector, [B, S, C, N], 7 * B * S * C * N),
        state(Quantity::KvWrite),
    ];
    if S == 1 {
        terms.push(state(Quantity::KvRead));
    }
    streamed(call, terms)
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Cost, Flops, Op};

    use crate::price::sample::{activation, cost, weight};

    fn scan(positions: u64) -> Cost {
        let (x, state) = (activation([1, positions, 12]), activation([1, positions, 4]));
        cost(Op::SelectiveScan, &[x, x, state, state, weight([12, 4]), weight([12])])
    }

    #[test]
    fn every_position_reads_the_state_of_every_channel() {
        assert_eq!(scan(1).flops_matrix, Flops::new(2 * 12 * 4));
        assert_eq!(scan(50).flops_matrix, Flops::new(50 * 2 * 12 * 4));
    }

    #[test]
    fn the_state_is_written_once_a_pass_and_read_by_a_single_position() {
        let state = Bytes::new(4 * 12 * 4);
        assert_eq!((scan(1).bytes.kv_read, scan(1).bytes.kv_write), (state, state));
        assert_eq!((scan(50).bytes.kv_read, scan(50).bytes.kv_write), (Bytes::ZERO, state));
    }
}
