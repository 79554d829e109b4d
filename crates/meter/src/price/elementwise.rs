//! Sums and products of two tensors.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, stream};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y = a + b, or y = a * b, broadcasting",
    text: "One per output element. Each input is read once at its own size: a broadcast operand is not read again.",
    source: "counted from the definition",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    let mut terms = vec![term!(FlopsVector, [N], N)];
    terms.extend(stream(call));
    terms
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::testing::{activation, cost};

    #[test]
    fn a_broadcast_operand_is_read_at_its_own_size() {
        let cost = cost(Op::Add, &[activation([4, 1]), activation([1, 8])]);
        assert_eq!(cost.flops_vector, Flops::new(32));
        assert_eq!(cost.bytes.activations_in, Bytes::new(8 + 16));
        assert_eq!(cost.bytes.activations_out, Bytes::new(64));
    }
}
