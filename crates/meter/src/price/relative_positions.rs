//! Gathering rows of a relative-position table.

use super::{Call, Derivation, streamed};
use crate::term::Term;

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y[i, j] = table[i - j + keys - 1]",
    text: "No FLOPs. The table is read once and a row is written for every query and key position.",
    source: "Li et al. 2022, MViTv2, section 4.1",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    streamed(call, [])
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Op};

    use crate::price::sample::{cost, weight};

    #[test]
    fn every_pair_gets_a_row() {
        let cost = cost(Op::RelativePositions { queries: 14, keys: 14 }, &[weight([27, 64])]);
        assert_eq!(cost.bytes.weights, Bytes::new(27 * 64 * 2));
        assert_eq!(cost.bytes.activations_out, Bytes::new(14 * 14 * 64 * 2));
    }
}
