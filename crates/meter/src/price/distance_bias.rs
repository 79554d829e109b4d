//! Scores of positions by their distance.

use super::{Call, Derivation, streamed};
use crate::term::Term;

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y[h, i, j] = table[row(j - i)][h]",
    text: "No FLOPs: rows are found with integers. The table is read once and a score is written for every head, query and \
           key.",
    source: "Raffel et al. 2020, Exploring the Limits of Transfer Learning, section 2.1",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    streamed(call, [])
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{cost, weight};

    #[test]
    fn every_head_query_and_key_gets_a_score() {
        let op = Op::DistanceBias { queries: 1, keys: 50, furthest: 128, both_ways: false };
        let cost = cost(op, &[weight([32, 8])]);
        assert_eq!(cost.bytes.weights, Bytes::new(32 * 8 * 2));
        assert_eq!(cost.bytes.activations_out, Bytes::new(8 * 50 * 2));
        assert_eq!(cost.flops(), Flops::ZERO);
    }
}
