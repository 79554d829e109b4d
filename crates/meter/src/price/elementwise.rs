//! Elementwise additions and multiplications.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y = a + b, or y = a * b, broadcasting",
    text: "One per output element. Each input is read once at its own size: a broadcast operand is not read again.",
    source: "counted from the definition",
};

pub(super) const SCALE: Derivation =
    Derivation { definition: "y = x * constant", text: "One per element.", source: "counted from the definition" };

pub(super) const SOFTCAP: Derivation = Derivation {
    definition: "y = limit * tanh(x / limit)",
    text: "Three per element: a division, tanh as one, a multiplication.",
    source: "counted from the definition; Bello et al. 2016, Neural Combinatorial Optimization, section 5",
};

pub(super) fn scale(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    streamed(call, [term!(FlopsVector, [N], N)])
}

pub(super) fn softcap(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    streamed(call, [term!(FlopsVector, [N], 3 * N)])
}

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    streamed(call, [term!(FlopsVector, [N], N)])
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn constants_and_caps_stream_their_input_once() {
        let scaled = cost(Op::Scale { factor: 3.0 }, &[activation([4, 8])]);
        assert_eq!((scaled.flops_vector, scaled.bytes.total()), (Flops::new(32), Bytes::new(128)));
        let capped = cost(Op::Softcap { limit: 30.0 }, &[activation([4, 8])]);
        assert_eq!((capped.flops_vector, capped.bytes.total()), (Flops::new(96), Bytes::new(128)));
    }

    #[test]
    fn a_broadcast_operand_is_read_at_its_own_size() {
        let cost = cost(Op::Add, &[activation([4, 1]), activation([1, 8])]);
        assert_eq!(cost.flops_vector, Flops::new(32));
        assert_eq!(cost.bytes.activations_in, Bytes::new(8 + 16));
        assert_eq!(cost.bytes.activations_out, Bytes::new(64));
    }
}
