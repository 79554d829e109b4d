//! Table look-ups, and putting image features among token embeddings.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, read, write};
use crate::term::{Term, term};

pub(super) const LOOKUP: Derivation = Derivation {
    definition: "y[r] = table[ids[r]]",
    text: "No FLOPs. Only the R rows that are looked up are read, not the table; the ids are read and the rows \
           written.",
    source: "counted from the definition",
};

pub(super) const REPLACE_ROWS: Derivation = Derivation {
    definition: "base[p] = rows[n] for the n-th position p where the mask is true",
    text: "No FLOPs. In place: the rows and the mask are read and the rows are written; the other positions are \
           unchanged.",
    source: "counted from the definition; the published model uses masked_scatter_ in place",
};

pub(super) const ADD_ROWS: Derivation = Derivation {
    definition: "base[p] += rows[n] for the n-th position p where the mask is true",
    text: "One addition per element of the rows. In place: the rows, the same part of the base and the mask are read, \
           and the sums are written.",
    source: "counted from the definition",
};

pub(super) fn add_rows(call: &Call<'_>) -> Vec<Term> {
    let [rows, mask] = [&call.inputs[1], &call.inputs[2]];
    let N = elements(rows);
    vec![term!(FlopsVector, [N], N), read(rows), read(rows), read(mask), write(rows)]
}

pub(super) fn lookup(call: &Call<'_>) -> Vec<Term> {
    let [ids, table] = [&call.inputs[0], &call.inputs[1]];
    let (R, O, b) = (elements(ids), u128::from(table.shape.last()), u128::from(table.dtype.bits()));
    vec![term!(Weights, [R, O, b], R * O * b / 8), read(ids), write(&call.output)]
}

pub(super) fn replace_rows(call: &Call<'_>) -> Vec<Term> {
    let [rows, mask] = [&call.inputs[1], &call.inputs[2]];
    vec![read(rows), read(mask), write(rows)]
}

#[cfg(test)]
mod tests {
    use types::{Bytes, DType, Flops, Op, Spec};

    use crate::price::sample::{activation, cost, weight};

    #[test]
    fn a_lookup_reads_rows_and_not_the_table() {
        let ids = Spec { dtype: DType::Int64, ..activation([1, 3]) };
        let cost = cost(Op::Embedding, &[ids, weight([129_280, 1280])]);
        assert_eq!(cost.bytes.weights, Bytes::new(3 * 1280 * 2));
        assert_eq!(cost.bytes.activations_in, Bytes::new(24));
        assert_eq!(cost.flops(), Flops::ZERO);
    }

    #[test]
    fn replacing_rows_leaves_the_other_positions_alone() {
        let mask = Spec { dtype: DType::Bool, ..activation([1, 100]) };
        let cost = cost(Op::ReplaceRows, &[activation([1, 100, 8]), activation([10, 8]), mask]);
        assert_eq!(cost.bytes.activations_in, Bytes::new(160 + 100));
        assert_eq!(cost.bytes.activations_out, Bytes::new(160));
    }
}
